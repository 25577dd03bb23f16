from hypothesis import given
from hypothesis import strategies as st

from spillway.control.hot_series import ThrottleInsights, by_series
from spillway.control.monitoring import ThrottledKey
from spillway.keys import partition_key
from tests.control.world import RULE, World
from tests.support.memory_table import EVENTS

series_names = st.text(min_size=1, max_size=5)
shards = st.integers(0, 255)


@given(st.lists(st.tuples(series_names, shards, st.integers(1, 1_000)), max_size=25))
def test_throttled_keys_are_counted_by_their_series_the_hottest_first(
    seen: list[tuple[str, int, int]],
) -> None:
    found = by_series(ThrottledKey(partition_key(name, shard), 60.0, n) for name, shard, n in seen)
    assert {name: each.total for name, each in found.items()} == {
        name: sum(n for other, _, n in seen if other == name) for name, _, _ in seen
    }
    totals = [each.total for each in found.values()]
    assert totals == sorted(totals, reverse=True)


def test_keys_of_others_are_left_out() -> None:
    strange = [ThrottledKey(key, 0.0, 9.0) for key in ("", "plain", "a#b", "#", "a#1.5")]
    assert by_series(strange) == {}


def test_throttles_count_from_the_minute_after_a_change_and_in_shards_that_there_are() -> None:
    (found,) = by_series(
        ThrottledKey(partition_key("ORD", shard), at, 10.0)
        for shard in (0, 3, 9)
        for at in (60.0, 120.0)
    ).values()
    assert found.since(0.0, 256) == {0: 20.0, 3: 20.0, 9: 20.0}
    assert found.since(60.0, 8) == {0: 20.0, 3: 20.0}
    assert found.since(60.1, 8) == {0: 10.0, 3: 10.0}
    assert found.since(120.1, 8) == {}


def test_rules_are_asked_for_every_ten_minutes_and_only_that_of_throttled_partition_keys() -> None:
    world = World()
    asked: list[str] = []

    def call(operation: str, request: object, /) -> dict[str, object]:
        asked.append(operation)
        assert request == {"TableName": EVENTS}
        return {"ContributorInsightsRuleList": world.rules}

    insights = ThrottleInsights(call, world.watched, EVENTS, world.clock.now)
    world.throttles("ORD", 0)
    for _ in range(3):
        assert list(insights.throttled(world.now - 300, world.now)) == ["ORD"]
    assert (asked, len(world.watched.asked)) == (["DescribeContributorInsights"], 3)
    world.clock.seconds += 600
    insights.throttled(world.now - 300, world.now)
    assert len(asked) == 2


def test_insights_that_are_off_or_were_off_meanwhile_name_nothing_and_are_asked_for_again() -> None:
    world = World()
    insights = ThrottleInsights(world, world.watched, EVENTS, world.clock.now)
    world.throttles("ORD", 0)
    world.rules = []
    assert insights.throttled(world.now - 300, world.now) == {}
    world.rules = [RULE + "-old"]
    assert insights.throttled(world.now - 300, world.now) == {}
    world.rules = [RULE]
    assert list(insights.throttled(world.now - 300, world.now)) == ["ORD"]
