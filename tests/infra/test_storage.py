"""The storage stack: what keeps data, what finds it, what it costs when nothing happens."""

from typing import Any

import pytest

from spillway import keys
from tests.infra.synthesis import GLOBAL_TABLE, Resource, Synthesis, tables

TABLES = ("events", "layouts", "usage")
THROTTLED_KEYS = {"Enabled": True, "Mode": "THROTTLED_KEYS"}


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest, synthesis: Synthesis) -> Resource:
    return tables(synthesis)[request.param]


def _replica(table: Resource) -> Any:
    (replica,) = table["Properties"]["Replicas"]
    return replica


def _types(table: Resource) -> dict[str, str]:
    definitions = table["Properties"]["AttributeDefinitions"]
    return {d["AttributeName"]: d["AttributeType"] for d in definitions}


def _index(table: Resource) -> Any:
    (index,) = table["Properties"]["GlobalSecondaryIndexes"]
    return index


def _schema(described: Any) -> list[tuple[str, str]]:
    return [(key["AttributeName"], key["KeyType"]) for key in described["KeySchema"]]


def test_the_stack_holds_three_tables_and_nothing_else(synthesis: Synthesis) -> None:
    resources = synthesis.storage.to_json()["Resources"]
    assert [r["Type"] for r in resources.values()] == [GLOBAL_TABLE] * 3


def test_tables_outlive_their_stack_in_prod_only(synthesis: Synthesis, table: Resource) -> None:
    policy = "Retain" if synthesis.stage.name == "prod" else "Delete"
    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == (policy, policy)


def test_tables_refuse_deletion_in_prod_only(synthesis: Synthesis, table: Resource) -> None:
    protected = _replica(table).get("DeletionProtectionEnabled", False)
    assert protected is (synthesis.stage.name == "prod")


def test_every_table_can_be_restored_to_any_second(table: Resource) -> None:
    recovery = _replica(table)["PointInTimeRecoverySpecification"]
    assert recovery["PointInTimeRecoveryEnabled"] is True


def test_every_table_is_on_demand_and_lives_in_the_stacks_region(table: Resource) -> None:
    assert table["Properties"]["BillingMode"] == "PAY_PER_REQUEST"
    assert _replica(table)["Region"] == {"Ref": "AWS::Region"}


def test_no_table_names_a_warm_throughput_that_deploys_would_fight_over(table: Resource) -> None:
    assert "WarmThroughput" not in str(table)


def test_no_table_has_a_fixed_name(table: Resource) -> None:
    assert "TableName" not in table["Properties"]


def test_every_table_is_tagged_with_its_stage(synthesis: Synthesis, table: Resource) -> None:
    tags = {tag["Key"]: tag["Value"] for tag in _replica(table)["Tags"]}
    assert tags == {"project": "spillway", "stage": synthesis.stage.name}


def test_events_are_keyed_by_shard_and_time(synthesis: Synthesis) -> None:
    events = tables(synthesis)["events"]
    assert _schema(events["Properties"]) == [("PK", "HASH"), ("SK", "RANGE")]
    assert _types(events) == {"PK": "S", "SK": "S", "GSI1PK": "S"}


def test_the_index_of_events_shares_the_tables_sort_key(synthesis: Synthesis) -> None:
    index = _index(tables(synthesis)["events"])
    assert index["IndexName"] == keys.INDEX_NAME == "GSI1-Read-Aggregator"
    assert _schema(index) == [(keys.INDEX_PARTITION_KEY, "HASH"), (keys.SORT_KEY, "RANGE")]
    assert index["Projection"] == {"ProjectionType": "ALL"}


def test_events_expire_by_their_attribute(synthesis: Synthesis) -> None:
    properties = tables(synthesis)["events"]["Properties"]
    assert properties["TimeToLiveSpecification"] == {
        "AttributeName": keys.EXPIRES,
        "Enabled": True,
    }


def test_throttled_keys_are_counted_on_the_table_and_on_the_index(synthesis: Synthesis) -> None:
    replica = _replica(tables(synthesis)["events"])
    assert replica["ContributorInsightsSpecification"] == THROTTLED_KEYS
    (index,) = replica["GlobalSecondaryIndexes"]
    assert index == {
        "IndexName": keys.INDEX_NAME,
        "ContributorInsightsSpecification": THROTTLED_KEYS,
    }


def test_layouts_are_keyed_by_series_and_never_expire(synthesis: Synthesis) -> None:
    layouts = tables(synthesis)["layouts"]
    assert _types(layouts) == {keys.LAYOUT_KEY: "S", keys.LAYOUT_INDEX_KEY: "S"}
    assert "TimeToLiveSpecification" not in layouts["Properties"]


def test_the_index_of_layouts_lists_sharded_series_by_their_keys(synthesis: Synthesis) -> None:
    index = _index(tables(synthesis)["layouts"])
    assert index["IndexName"] == keys.LAYOUT_INDEX_NAME
    assert _schema(index) == [(keys.LAYOUT_INDEX_KEY, "HASH"), (keys.LAYOUT_KEY, "RANGE")]
    assert index["Projection"] == {"ProjectionType": "KEYS_ONLY"}


def test_usage_is_keyed_by_series_and_window_and_expires(synthesis: Synthesis) -> None:
    usage = tables(synthesis)["usage"]
    assert _types(usage) == {keys.USAGE_KEY: "S", keys.USAGE_SORT_KEY: "N"}
    assert usage["Properties"]["TimeToLiveSpecification"] == {
        "AttributeName": keys.USAGE_EXPIRES,
        "Enabled": True,
    }


def test_the_stack_gives_out_the_names_of_its_tables(synthesis: Synthesis) -> None:
    named = {"EventsTable", "LayoutsTable", "UsageTable"}
    outputs = synthesis.storage.find_outputs("*")
    assert {name for name in outputs if not name.startswith("ExportsOutput")} == named
    assert all("Ref" in outputs[name]["Value"] for name in named)
