"""Contributor Insights: rules by mode and key, and reports of the keys that were hot."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamoheat import Heat, IndexSettings, Key, ModelParameters, TableSettings
from dynamoheat import ThroughputSettings as Limits
from local.cloudwatch.insights import (
    ALL_KEYS,
    THROTTLED_KEYS,
    InsightRules,
    TableOrIndex,
    complete_answer,
    get_insight_rule_report,
)
from local.cloudwatch.metric_store import MetricTime
from local.cloudwatch.requests import CloudWatchError
from local.table_settings import TemplateSettings as Stated
from local.table_settings import TemplateThroughput as StatedThroughput

TABLE, INDEX = TableOrIndex("T"), TableOrIndex("T", "I")


def heat_with_table(**settings: Any) -> Heat:
    heat = Heat(ModelParameters(partition_wcu=10))
    indexes = (IndexSettings(name="I", key=Key("G")),)
    heat.create_table(TableSettings(name="T", key=Key("P", "S"), indexes=indexes, **settings), 0.0)
    return heat


def put(heat: Heat, key: str, now: float, count: int = 1, **more: str) -> None:
    for at in range(count):
        item = {"P": key, "S": str(at), **more}
        typed = {name: {"S": value} for name, value in item.items()}
        heat.admit("PutItem", {"TableName": "T", "Item": typed}, now)


def stated(table: str | None, index: str | None) -> dict[str, Stated]:
    indexes = {"I": StatedThroughput(insights=index)}
    return {"T": Stated(on_demand=True, table=StatedThroughput(insights=table), indexes=indexes)}


def rules(kinds: str, named: str, since: int) -> list[str]:
    return [f"DynamoDBContributorInsights-{kind}-{named}-{since}" for kind in kinds.split()]


def test_rules_follow_the_mode_the_keys_and_when_insights_were_enabled() -> None:
    contributors = InsightRules(heat_with_table())
    contributors.apply_templates(stated(ALL_KEYS, THROTTLED_KEYS), 12.5)
    assert list(contributors.rules(TABLE)) == rules("PKC PKT SKC SKT", "T", 12500)
    assert list(contributors.rules(INDEX)) == rules("PKT", "T-I", 12500)
    contributors.apply_templates(stated(THROTTLED_KEYS, None), 13.0)
    assert list(contributors.rules(TABLE)) == rules("PKT SKT", "T", 12500)
    assert contributors.rules(INDEX) == {}


def test_what_was_changed_by_hand_stays_until_the_template_changes() -> None:
    contributors = InsightRules(heat_with_table())
    contributors.apply_templates(stated(ALL_KEYS, None), 1.0)
    contributors.disable(TABLE)
    contributors.enable(INDEX, THROTTLED_KEYS, 2.0)
    contributors.apply_templates(stated(ALL_KEYS, None), 3.0)
    assert (contributors.mode(TABLE), contributors.mode(INDEX)) == (None, THROTTLED_KEYS)
    contributors.apply_templates(stated(THROTTLED_KEYS, None), 4.0)
    assert contributors.mode(TABLE) == THROTTLED_KEYS
    contributors.apply_templates({}, 5.0)
    assert contributors.mode(TABLE) is None


def test_rules_go_with_their_table_or_index() -> None:
    contributors = InsightRules(heat_with_table())
    contributors.apply_templates(stated(ALL_KEYS, ALL_KEYS), 1.0)
    (first, *_) = contributors.rules(INDEX)
    contributors.forget("T", "I")
    assert contributors.rule(first) is None
    assert (contributors.mode(TABLE), contributors.mode(INDEX)) == (ALL_KEYS, None)
    contributors.forget("T")
    assert contributors.mode(TABLE) is None


def test_accessed_keys_are_counted_only_where_they_are_reported() -> None:
    heat = heat_with_table()
    contributors = InsightRules(heat)
    seen = []
    for mode in (ALL_KEYS, THROTTLED_KEYS, ALL_KEYS, None):
        contributors.apply_templates(stated(mode, None), 1.0)
        seen.append(heat.resource("T").insights.counts_accessed_keys)
    assert seen == [True, False, True, False]


def answer(status: str, **more: Any) -> dict[str, Any]:
    return {"TableName": "T", "ContributorInsightsStatus": status, **more}


def test_answers_are_completed_with_mode_and_rules() -> None:
    contributors = InsightRules(heat_with_table())
    contributors.apply_templates(stated(ALL_KEYS, THROTTLED_KEYS), 1.0)
    found = complete_answer(
        answer("ENABLED", IndexName="I", ContributorInsightsRuleList=[]), contributors
    )
    assert found["ContributorInsightsMode"] == THROTTLED_KEYS
    assert found["ContributorInsightsRuleList"] == rules("PKT", "T-I", 1000)
    summaries = complete_answer({"ContributorInsightsSummaries": [answer("ENABLED")]}, contributors)
    assert summaries["ContributorInsightsSummaries"][0]["ContributorInsightsMode"] == ALL_KEYS
    off = complete_answer(answer("DISABLED", ContributorInsightsRuleList=[]), contributors)
    assert off == answer("DISABLED", ContributorInsightsRuleList=[])


class Scene:
    """A table with insights, hot in its second and fourth minute."""

    def __init__(self, **settings: Any) -> None:
        self.heat = heat_with_table(**settings)
        self.contributors = InsightRules(self.heat)
        self.contributors.apply_templates(stated(ALL_KEYS, ALL_KEYS), 0.0)

    def report(self, kind: str, place: TableOrIndex = TABLE, **more: Any) -> dict[str, Any]:
        rule = next(name for name in self.contributors.rules(place) if f"-{kind}-" in name)
        asked = {"RuleName": rule, "StartTime": 0, "EndTime": 600, "Period": 60, **more}
        return get_insight_rule_report(asked, self.contributors, MetricTime())


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    put(made.heat, "warm", 65.0, 13)
    put(made.heat, "hot", 70.0, 30)
    put(made.heat, "hot", 200.0, 12)
    return made


def test_a_report_has_the_shape_that_cloudwatch_documents(scene: Scene) -> None:
    assert scene.report("PKT") == {
        "KeyLabels": ["PartitionKey"],
        "AggregationStatistic": "Sum",
        "AggregateValue": 25,
        "ApproximateUniqueCount": 2,
        "Contributors": [
            {
                "Keys": ["hot"],
                "ApproximateAggregateValue": 22,
                "Datapoints": [
                    {"Timestamp": 60.0, "ApproximateValue": 20},
                    {"Timestamp": 180.0, "ApproximateValue": 2},
                ],
            },
            {
                "Keys": ["warm"],
                "ApproximateAggregateValue": 3,
                "Datapoints": [{"Timestamp": 60.0, "ApproximateValue": 3}],
            },
        ],
        "MetricDatapoints": [],
    }


def test_accessed_keys_are_weighted_three_a_write_unit(scene: Scene) -> None:
    found = scene.report("PKC", EndTime=120)["Contributors"]
    assert [(each["Keys"], each["ApproximateAggregateValue"]) for each in found] == [
        (["hot"], 30), (["warm"], 30),
    ]  # fmt: skip
    assert scene.report("SKC")["Contributors"][0]["ApproximateAggregateValue"] == 6


def test_whole_keys_have_two_labels(scene: Scene) -> None:
    found = scene.report("SKT", MaxContributorCount=1)
    assert found["KeyLabels"] == ["PartitionKey", "SortKey"]
    assert found["ApproximateUniqueCount"] == 23
    assert [each["Keys"] for each in found["Contributors"]] == [["hot", "10"]]


@pytest.mark.parametrize(
    ("more", "keys"),
    [
        ({"StartTime": 120}, ["hot"]),
        ({"EndTime": 60}, []),
        ({"StartTime": 61, "EndTime": 119}, ["hot", "warm"]),
        ({"StartTime": "1970-01-01T00:03:00Z", "EndTime": "1970-01-01T00:04:00"}, ["hot"]),
        ({"MaxContributorCount": 1}, ["hot"]),
    ],
)
def test_a_report_covers_its_time_and_its_count(
    scene: Scene, more: dict[str, Any], keys: list[str]
) -> None:
    assert [each["Keys"][0] for each in scene.report("PKT", **more)["Contributors"]] == keys


def test_longer_periods_add_minutes_up(scene: Scene) -> None:
    (hot, _) = scene.report("PKT", Period=300)["Contributors"]
    assert hot["Datapoints"] == [{"Timestamp": 0.0, "ApproximateValue": 22}]


def test_order_by_maximum_ranks_by_the_hottest_period(scene: Scene) -> None:
    put(scene.heat, "steady", 250.0, 21)
    put(scene.heat, "steady", 310.0, 22)
    by_sum = [each["Keys"] for each in scene.report("PKT")["Contributors"]]
    by_maximum = scene.report("PKT", OrderBy="Maximum")["Contributors"]
    assert by_sum[:2] == [["steady"], ["hot"]]
    assert [each["Keys"] for each in by_maximum[:2]] == [["hot"], ["steady"]]


def test_metrics_of_each_period_come_where_they_are_asked_for(scene: Scene) -> None:
    wanted = ["UniqueContributors", "MaxContributorValue", "Sum", "Average"]
    assert scene.report("PKT", Metrics=wanted)["MetricDatapoints"] == [
        {
            "Timestamp": 60.0,
            "UniqueContributors": 2,
            "MaxContributorValue": 20,
            "Sum": 23,
            "Average": 11.5,
        },
        {
            "Timestamp": 180.0,
            "UniqueContributors": 1,
            "MaxContributorValue": 2,
            "Sum": 2,
            "Average": 2,
        },
    ]


def test_writes_that_an_index_held_up_are_in_no_report() -> None:
    scene = Scene(throughput=Limits(warm_write=5000))
    for at in range(60):
        put(scene.heat, f"cold {at}", 1.0, G="hot")
    assert scene.heat.resource("T", "I").meter.total.write_throttle_events > 0
    for place in (TABLE, INDEX):
        assert scene.report("PKT", place)["Contributors"] == []


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"RuleName": None}, "MissingParameter"),
        ({"RuleName": "none"}, "ResourceNotFoundException"),
        ({"RuleName": 7}, "InvalidParameterValue"),
        ({"StartTime": None}, "MissingParameter"),
        ({"StartTime": "soon"}, "InvalidParameterValue"),
        ({"StartTime": 600}, "InvalidParameterValue"),
        ({"Period": None}, "MissingParameter"),
        ({"Period": 90}, "InvalidParameterValue"),
        ({"Period": 0}, "InvalidParameterValue"),
        ({"Period": 1e999}, "InvalidParameterValue"),
        ({"MaxContributorCount": 0}, "InvalidParameterValue"),
        ({"MaxContributorCount": 101}, "InvalidParameterValue"),
        ({"OrderBy": "Average"}, "InvalidParameterValue"),
        ({"Metrics": ["Most"]}, "InvalidParameterValue"),
        ({"Metrics": "Sum"}, "InvalidParameterValue"),
    ],
)
def test_odd_requests_are_refused_as_cloudwatch_does(asked: dict[str, Any], code: str) -> None:
    scene = Scene()
    with pytest.raises(CloudWatchError) as refused:
        scene.report("PKT", **asked)
    assert refused.value.code == code


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 599)), max_size=80))
def test_a_report_adds_up_to_what_was_throttled(writes: list[tuple[str, int]]) -> None:
    scene = Scene()
    for key, now in sorted(writes, key=lambda write: write[1]):
        put(scene.heat, key, float(now), 4)
    found = scene.report("PKT")
    throttled = scene.heat.resource("T").meter.total.write_throttle_events
    assert found["AggregateValue"] == throttled
    contributors = found["Contributors"]
    assert sum(each["ApproximateAggregateValue"] for each in contributors) == throttled
    for each in contributors:
        values = [point["ApproximateValue"] for point in each["Datapoints"]]
        assert sum(values) == each["ApproximateAggregateValue"]
