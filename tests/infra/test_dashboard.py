"""The dashboard: valid, without overlaps, and every metric one that AWS or a function publishes.

A wrong name or dimension would draw an empty graph, silently: what is published is listed here by hand.
"""

import json
from itertools import combinations
from typing import Any, Final

import pytest

from spillway import keys
from stacks.config import STAGES
from stacks.costs import PRICES
from tests.infra.synthesis import ROOT, Synthesis, functions, of_type

_TABLE: Final = frozenset({"TableName"})
_INDEX: Final = _TABLE | {"GlobalSecondaryIndexName"}
_THROTTLES: Final = {
    f"{kind}{reason}ThrottleEvents"
    for kind in ("Read", "Write")
    for reason in (
        "KeyRangeThroughput",
        "ProvisionedThroughput",
        "MaxOnDemandThroughput",
        "AccountLimit",
    )
}
_UNITS: Final = {
    f"{state}{kind}CapacityUnits"
    for state in ("Consumed", "Provisioned")
    for kind in ("Read", "Write")
}
# Namespace: metrics, and the sets of dimensions that each comes with.
AWS: Final[dict[str, tuple[set[str], set[frozenset[str]]]]] = {
    "AWS/DynamoDB": (_THROTTLES | _UNITS, {_TABLE, _INDEX}),
    "AWS/Lambda": (
        {"Duration", "Errors", "Invocations", "Throttles"},
        {frozenset({"FunctionName"})},
    ),
    "AWS/ApiGateway": ({"4xx", "5xx", "Count", "Latency"}, {frozenset({"ApiId"})}),
    "AWS/DAX": (
        {
            "CPUUtilization",
            "CacheMemoryUtilization",
            "ErrorRequestCount",
            "FaultRequestCount",
            "ItemCacheHits",
            "ItemCacheMisses",
            "QueryCacheHits",
            "QueryCacheMisses",
        },
        {frozenset({"ClusterId"})},
    ),
}
# What functions count by themselves, as `service` and name.
OWN: Final = {
    ("ingest", "EventsAccepted"),
    ("ingest", "EventsRejected"),
    ("ingest", "GrowthStopped"),
    ("ingest", "LayoutsGrown"),
    ("query", "DaxFailures"),
    ("scaler", "CapacityBoundReached"),
    ("scaler", "DecisionsNotCarriedOut"),
    ("scaler", "GrowthStopped"),
    ("scaler", "LayoutsGrown"),
    ("scaler", "LayoutsShrunk"),
    ("scaler", "ProvisionedThroughputRaised"),
    ("scaler", "WarmThroughputRaised"),
}


def _text(node: Any) -> str:
    """Return a template's value as text: references by what they refer to."""
    if isinstance(node, str):
        return node
    if "Fn::Join" in node:
        return "".join(_text(part) for part in node["Fn::Join"][1])
    ((_, of),) = node.items()
    return of if isinstance(of, str) else ".".join(of)


def _widgets(synthesis: Synthesis) -> list[Any]:
    (dashboard,) = of_type(synthesis.service, "AWS::CloudWatch::Dashboard")
    found: list[Any] = json.loads(_text(dashboard["Properties"]["DashboardBody"]))["widgets"]
    return found


def _titled(synthesis: Synthesis, title: str) -> Any:
    (found,) = (
        w for w in _widgets(synthesis) if w["properties"].get("title", "").startswith(title)
    )
    return found


def _metrics(widget: Any) -> list[tuple[str, str, dict[str, str], Any]]:
    """Return (namespace, name, dimensions, options) of each metric; expressions are none."""
    found = []
    for row in widget["properties"].get("metrics", ()):
        *words, options = row if isinstance(row[-1], dict) else [*row, {}]
        if words:
            namespace, name, *pairs = words
            dimensions = dict(zip(pairs[::2], pairs[1::2], strict=True))
            found.append((namespace, name, dimensions, options))
    return found


def _all_metrics(synthesis: Synthesis) -> list[tuple[str, str, dict[str, str], Any]]:
    return [metric for widget in _widgets(synthesis) for metric in _metrics(widget)]


def test_the_dashboard_carries_the_name_of_its_stage(synthesis: Synthesis) -> None:
    (dashboard,) = of_type(synthesis.service, "AWS::CloudWatch::Dashboard")
    # Names are unique in an account over all regions, and a stage may stand in several.
    assert dashboard["Properties"]["DashboardName"] == {
        "Fn::Join": ["", [f"Spillway-{synthesis.stage.name}-", {"Ref": "AWS::Region"}]]
    }


def test_no_widget_covers_another_or_leaves_the_page(synthesis: Synthesis) -> None:
    widgets = _widgets(synthesis)
    assert len(widgets) >= 13
    for one, other in combinations(widgets, 2):
        apart = (
            one["x"] + one["width"] <= other["x"]
            or other["x"] + other["width"] <= one["x"]
            or one["y"] + one["height"] <= other["y"]
            or other["y"] + other["height"] <= one["y"]
        )
        assert apart, (one["properties"], other["properties"])
    assert all(w["x"] >= 0 and w["x"] + w["width"] <= 24 for w in widgets)


def test_every_metric_is_one_that_is_published(synthesis: Synthesis) -> None:
    metrics = _all_metrics(synthesis)
    assert len(metrics) > 50
    for namespace, name, dimensions, _ in metrics:
        if namespace == f"Spillway/{synthesis.stage.name}":
            assert dimensions.keys() == {"service"}
            assert (dimensions["service"], name) in OWN
        else:
            names, sets = AWS[namespace]
            assert name in names
            assert frozenset(dimensions) in sets


def test_metrics_of_functions_are_ones_that_their_code_counts() -> None:
    folder = ROOT / "lambdas"
    source = "".join(path.read_text() for path in sorted(folder.rglob("*.py")))
    missing = {name for _, name in OWN if f'"{name}"' not in source}
    assert missing == set()


def test_everything_that_functions_count_for_their_stage_is_shown(cached: Synthesis) -> None:
    shown = {
        (dimensions["service"], name)
        for namespace, name, dimensions, _ in _all_metrics(cached)
        if namespace.startswith("Spillway")
    }
    assert shown == OWN


def test_dimensions_name_what_the_stage_deploys(cached: Synthesis) -> None:
    exports = {
        output["Export"]["Name"]: _text(output["Value"])
        for template in (cached.storage, cached.cache)
        if template is not None
        for output in template.find_outputs("*").values()
        if "Export" in output
    }
    deployed = {
        *cached.service.find_resources("AWS::Lambda::Function"),
        *cached.service.find_resources("AWS::ApiGatewayV2::Api"),
        *cached.storage.find_resources("AWS::DynamoDB::GlobalTable"),
    }
    if cached.cache is not None:
        deployed |= {*cached.cache.find_resources("AWS::DAX::Cluster")}
    for _, _, dimensions, _ in _all_metrics(cached):
        for name, value in dimensions.items():
            if name == "GlobalSecondaryIndexName":
                assert value in {keys.INDEX_NAME, keys.LAYOUT_INDEX_NAME}
            elif name != "service":
                assert exports.get(value, value) in deployed


@pytest.mark.parametrize(
    ("title", "dimensions"),
    [("Throttled writes of the table", _TABLE), ("Throttled writes of the index", _INDEX)],
)
def test_throttled_writes_are_told_apart_by_reason(
    synthesis: Synthesis, title: str, dimensions: frozenset[str]
) -> None:
    metrics = _metrics(_titled(synthesis, title))
    assert {name for _, name, _, _ in metrics} == {n for n in _THROTTLES if n.startswith("Write")}
    assert {frozenset(of) for _, _, of, _ in metrics} == {dimensions}
    assert {options["stat"] for _, _, _, options in metrics} == {"Sum"}


def _expressions(widget: Any) -> dict[str, str]:
    rows = (row[-1] for row in widget["properties"]["metrics"])
    return {row["label"]: row["expression"] for row in rows if "expression" in row}


def test_expressions_use_metrics_that_are_there(synthesis: Synthesis) -> None:
    for widget in _widgets(synthesis):
        known = {options.get("id") for *_, options in _metrics(widget)}
        for expression in (
            _expressions(widget).values() if "metrics" in widget["properties"] else ()
        ):
            words = expression.replace("(", " ").replace(")", " ").replace(",", " ").split()
            used = {w for w in words if w[0].islower()}
            assert used
            assert used <= known


def _value(expression: str, values: dict[str, float]) -> float:
    """Evaluate a weighted sum of filled metrics, as CloudWatch would."""
    total = 0.0
    for term in expression.split(" + "):
        filled, weight = term.split(" * ")
        name = filled.removeprefix("FILL(").removesuffix(", 0)")
        total += values.get(name, 0.0) * float(weight)
    return total


def test_the_estimate_multiplies_units_and_prices(cached: Synthesis) -> None:
    widget = _titled(cached, "Cost estimate")
    by_label = _expressions(widget)
    ids = {(name, len(of), options["id"]) for _, name, of, options in _metrics(widget)}
    writes = {i: 1e6 for name, _, i in ids if name == "ConsumedWriteCapacityUnits"}
    reads = {i: 1e6 for name, _, i in ids if name == "ConsumedReadCapacityUnits"}
    # Events, layouts and an index each, and usage.
    assert _value(by_label["writes"], writes) == pytest.approx(5 * PRICES.million_writes)
    assert _value(by_label["reads"], reads) == pytest.approx(5 * PRICES.million_reads)
    memory = {f["MemorySize"] for f in functions(cached).values()}
    (megabytes,) = memory
    calls = {i: 1e6 for name, _, i in ids if name == "Invocations"}
    assert _value(by_label["functions"], calls) == pytest.approx(4 * PRICES.million_calls)
    hours = {i: 3.6e6 for name, _, i in ids if name == "Duration"}  # an hour in milliseconds
    hour = 3_600 * PRICES.gigabyte_second * megabytes / 1_024
    assert _value(by_label["functions"], hours) == pytest.approx(4 * hour, rel=1e-6)
    assert _value(by_label["API"], {"api": 1e6}) == pytest.approx(PRICES.million_requests)


def test_dax_is_shown_where_it_is_deployed_only(synthesis: Synthesis) -> None:
    titles = [widget["properties"].get("title", "") for widget in _widgets(synthesis)]
    shown = [title for title in titles if title.startswith("DAX")]
    assert len(shown) == (0 if synthesis.stage.cache is None else 3)
    assert (
        "DAX" in json.dumps(_titled(synthesis, "Cost")["properties"].get("annotations", ""))
    ) is (synthesis.stage.cache is not None)


def test_dax_costs_what_its_nodes_cost_a_month() -> None:
    nodes = {name: stage.cache.nodes for name, stage in STAGES.items() if stage.cache is not None}
    assert {n: PRICES.dax_month("dax.t3.small", count) for n, count in nodes.items()} == {
        "dev": pytest.approx(29.2),
        "prod": pytest.approx(87.6),
    }
    assert PRICES.dax_month("dax.r5.large", 3) is None


def test_the_hottest_series_are_counted_by_what_ingest_logs(synthesis: Synthesis) -> None:
    query = _titled(synthesis, "Hottest series")["properties"]["query"]
    group = functions(synthesis)["ingest"]["LoggingConfig"]["LogGroup"]["Ref"]
    assert query.startswith(f"SOURCE '{group}' | ")
    assert "sum(accepted) as events" in query
    assert "by series" in query
    ingest = (ROOT / "lambdas" / "api" / "ingest_app.py").read_text()
    assert '{"accepted": result.accepted, "rejected_codes": codes, "series": series}' in ingest
    assert '"wrote events"' in ingest
