"""Capacity of events by stage setting: on demand with bounds, or auto scaled; table and index alike."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.table_settings import TemplateThroughput, parse_table_settings
from spillway import keys
from spillway.cdk.settings import Capacity, OnDemand, Provisioned, ScaledUnits, Units
from stacks.config import STAGES
from tests.infra.synthesis import Resource, Synthesis, synthesise, tables

SCALED = Provisioned(
    read=ScaledUnits(minimum=5, maximum=500),
    write=ScaledUnits(minimum=100, maximum=4_000, target=60, cooldown_up=30, cooldown_down=600),
    index_read=ScaledUnits(minimum=6, maximum=600, start=50),
    index_write=ScaledUnits(minimum=101, maximum=4_001, start=1_000),
)
BOUNDED = OnDemand(maximum=Units(read=3_000, write=1_000))
WARM = OnDemand(warm=Units(read=12_000, write=8_000))


def _events(folder: Path, capacity: Capacity) -> Resource:
    """Return the table of a stage with that capacity and people to tell."""
    stage = replace(STAGES["local"], capacity=capacity)
    return tables(synthesise("local", folder, stage=stage))["events"]


@pytest.fixture(scope="module")
def scaled(tmp_path_factory: pytest.TempPathFactory) -> Resource:
    return _events(tmp_path_factory.mktemp("scaled"), SCALED)


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Resource:
    return _events(tmp_path_factory.mktemp("bounded"), BOUNDED)


def _sides(table: Resource) -> dict[str, Any]:
    """Return what table and index state of reads and of writes."""
    (replica,) = table["Properties"]["Replicas"]
    (index,) = table["Properties"]["GlobalSecondaryIndexes"]
    (of_index,) = replica["GlobalSecondaryIndexes"]
    return {
        "read": replica,
        "write": table["Properties"],
        "index_read": of_index,
        "index_write": index,
    }


@pytest.mark.parametrize("side", ["read", "write", "index_read", "index_write"])
def test_auto_scaling_keeps_each_of_four_capacities_between_its_bounds(
    scaled: Resource, side: str
) -> None:
    kind = "Read" if side.endswith("read") else "Write"
    settings = _sides(scaled)[side][f"{kind}ProvisionedThroughputSettings"]
    units: ScaledUnits = getattr(SCALED, side)
    assert settings == {
        f"{kind}CapacityAutoScalingSettings": {
            "MinCapacity": units.minimum,
            "MaxCapacity": units.maximum,
            "SeedCapacity": units.start or units.minimum,
            "TargetTrackingScalingPolicyConfiguration": {
                "TargetValue": units.target,
                "ScaleOutCooldown": units.cooldown_up,
                "ScaleInCooldown": units.cooldown_down,
            },
        }
    }


def test_an_auto_scaled_table_is_provisioned_and_keeps_all_else(scaled: Resource) -> None:
    properties = scaled["Properties"]
    assert properties["BillingMode"] == "PROVISIONED"
    assert "OnDemandThroughput" not in str(properties)
    (replica,) = properties["Replicas"]
    assert replica["ContributorInsightsSpecification"]["Enabled"] is True
    (of_index,) = replica["GlobalSecondaryIndexes"]
    assert of_index["ContributorInsightsSpecification"]["Enabled"] is True


def test_the_local_cloud_reads_an_auto_scaled_tables_capacity(scaled: Resource) -> None:
    settings = parse_table_settings(scaled, "us-east-1")
    assert settings is not None
    assert settings.on_demand is False
    assert settings.table == TemplateThroughput(read=5, write=100, insights="THROTTLED_KEYS")
    assert settings.indexes[keys.INDEX_NAME] == TemplateThroughput(
        read=50, write=1_000, insights="THROTTLED_KEYS"
    )


def test_an_on_demand_maximum_bounds_table_and_index(bounded: Resource) -> None:
    sides = _sides(bounded)
    assert bounded["Properties"]["BillingMode"] == "PAY_PER_REQUEST"
    for side in ("read", "index_read"):
        assert sides[side]["ReadOnDemandThroughputSettings"] == {"MaxReadRequestUnits": 3_000}
    for side in ("write", "index_write"):
        assert sides[side]["WriteOnDemandThroughputSettings"] == {"MaxWriteRequestUnits": 1_000}
    settings = parse_table_settings(bounded, "us-east-1")
    assert settings is not None
    assert (settings.table.max_read, settings.table.max_write) == (3_000, 1_000)


def test_warm_throughput_is_named_only_where_it_is_set(bounded: Resource, tmp_path: Path) -> None:
    assert "WarmThroughput" not in str(bounded)
    properties = _events(tmp_path, WARM)["Properties"]
    (index,) = properties["GlobalSecondaryIndexes"]
    warm = {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 8_000}
    assert properties["WarmThroughput"] == index["WarmThroughput"] == warm


def test_stages_are_on_demand_unless_they_say_otherwise(synthesis: Synthesis) -> None:
    assert synthesis.stage.capacity == OnDemand()
