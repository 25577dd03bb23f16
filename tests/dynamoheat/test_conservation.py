"""Laws of the model under any traffic: nothing is admitted that no bucket held, nothing is lost."""

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dynamoheat import Admission, Heat, ModelParameters, ProvisionedThroughput, Resource
from dynamoheat.charges import units_of
from tests.dynamoheat.traffic import INDEX, TABLE, batch, item, model, put, settings

LIMITS = ModelParameters(
    partition_wcu=5, partition_rcu=15, on_demand_partitions=2, quota_wcu=30, time_scale=600
)
LARGEST = 3.0  # write units of an item, 6 in a transaction
KEYS = ("a", "b", "c", "d")


@dataclass(frozen=True)
class Step:
    after: float
    operation: str
    request: dict[str, Any]


@st.composite
def items(draw: st.DrawFn) -> dict[str, Any]:
    return item(
        draw(st.sampled_from(KEYS)),
        draw(st.sampled_from("stuvwxyz")),
        draw(st.sampled_from([None, "k", "l"])),
        draw(st.sampled_from([0, 900, 2_900])),
    )


def transaction(puts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"TransactItems": [{"Put": {"TableName": TABLE, "Item": one}} for one in puts]}


def reads(keys: list[dict[str, Any]]) -> dict[str, Any]:
    wanted = [{"pk": one["pk"], "sk": one["sk"]} for one in keys]
    return {"RequestItems": {TABLE: {"Keys": wanted, "ConsistentRead": True}}}


CALLS = st.one_of(
    st.tuples(
        st.just("BatchWriteItem"),
        st.lists(items(), min_size=1, max_size=8).map(lambda i: batch(*i)),
    ),
    st.tuples(
        st.just("TransactWriteItems"), st.lists(items(), min_size=1, max_size=4).map(transaction)
    ),
    st.tuples(st.just("BatchGetItem"), st.lists(items(), min_size=1, max_size=8).map(reads)),
)
STEPS = st.lists(
    st.builds(
        lambda after, call: Step(after, *call), st.sampled_from([0.0, 0.01, 0.1, 0.5, 3.0]), CALLS
    ),
    max_size=60,
)
TABLES = st.sampled_from(
    [
        settings(index=ProvisionedThroughput()),
        settings(maximum_write=8, index=ProvisionedThroughput(maximum_write=4)),
        settings(
            write=6, read=9, index=ProvisionedThroughput(provisioned_write=3, provisioned_read=3)
        ),
        settings(write=6, read=9, local=True),
    ]
)


def run(heat: Heat, steps: list[Step]) -> tuple[list[Admission], float]:
    now, done = 0.0, []
    for step in steps:
        now += step.after
        admission = heat.admit(step.operation, step.request, now)
        if not admission.throttled:
            heat.settle(admission, {}, now)
        done.append(admission)
    return done, now


def could_hold(resource: Resource, elapsed: float, debt: float) -> float:
    """What a resource's buckets held at first plus what they were refilled by."""
    return min(
        (
            limit.bucket.rate * elapsed + limit.bucket.depth + debt
            for limit in resource.writes.limits
        ),
        default=0.0,
    )


@given(TABLES, STEPS)
def test_admitted_units_never_exceed_what_buckets_held_plus_refill(
    described: Any, steps: Any
) -> None:
    heat = model(described, LIMITS)
    _, elapsed = run(heat, steps)
    for resource in heat.table(TABLE).resources():
        buffer = (
            0.0 if resource.index is None else LIMITS.index_buffer_seconds * LIMITS.partition_wcu
        )
        debt = buffer + 4 * 2 * LARGEST  # of a transaction that met full buckets
        consumed = resource.meter.total.consumed_write
        assert consumed <= could_hold(resource, elapsed, debt)
        partitions = len(resource.partitions)
        assert consumed <= partitions * (LIMITS.partition_wcu * (elapsed + 1) + debt)


@given(TABLES, STEPS)
def test_consumed_and_throttled_are_together_what_was_requested(described: Any, steps: Any) -> None:
    heat = model(described, LIMITS)
    admissions, _ = run(heat, steps)
    for write in (True, False):
        taken = sum(one.units for one in admissions if one.asked.write is write)
        meters = [resource.meter.total for resource in heat.table(TABLE).resources()]
        counted = sum(m.consumed_write if write else m.consumed_read for m in meters)
        assert abs(counted - taken) < 1e-6
        refused = sum(m.refused_write if write else m.refused_read for m in meters)
        wanted = sum(
            units_of(work)
            for one in admissions
            if one.asked.write is write
            for work, verdict in zip(one.asked.works, one.verdicts, strict=True)
            if verdict is not None
        )
        assert abs(refused - wanted) < 1e-6


@given(TABLES, STEPS)
def test_throttle_events_are_the_refused_items(described: Any, steps: Any) -> None:
    heat = model(described, LIMITS)
    admissions, _ = run(heat, steps)
    events = sum(
        sum(resource.meter.total.throttled.values()) for resource in heat.table(TABLE).resources()
    )
    assert events == sum(len(one.throttles) for one in admissions)
    requests = heat.resource(TABLE).meter.total.requests
    assert sum(requests.values()) == sum(one.throttled for one in admissions)


@given(TABLES, STEPS, st.sampled_from(KEYS))
def test_a_refused_item_takes_no_token(described: Any, steps: Any, key: str) -> None:
    heat = model(described, LIMITS)
    _, now = run(heat, steps)
    before = heat.snapshot(now)
    admission = heat.admit("PutItem", {"TableName": TABLE, "Item": item(key, "s", "k")}, now)
    if admission.throttles:
        after = heat.snapshot(now)
        for state in (before["tables"][TABLE], after["tables"][TABLE]):
            state.pop("throttled")
            for part in (state, *state["indexes"].values()):
                part.pop("throttled", None)
                for partition in part["partitions"]:
                    partition.pop("throttled")
        assert after == before


@given(TABLES, STEPS)
def test_cancelling_gives_back_exactly_what_was_taken(described: Any, steps: Any) -> None:
    heat = model(described, LIMITS)
    _, now = run(heat, steps)
    totals = [resource.meter.total.consumed_write for resource in heat.table(TABLE).resources()]
    admission = heat.admit("PutItem", {"TableName": TABLE, "Item": item("a", "s", "k")}, now)
    heat.cancel(admission, now)
    after = [resource.meter.total.consumed_write for resource in heat.table(TABLE).resources()]
    assert all(abs(a - b) < 1e-6 for a, b in zip(after, totals, strict=True))


@given(TABLES, STEPS)
def test_a_batch_is_admitted_as_its_items_would_be_one_by_one(described: Any, steps: Any) -> None:
    batched, single = model(described, LIMITS), model(described, LIMITS)
    now = 0.0
    for step in steps:
        now += step.after
        if step.operation == "BatchWriteItem":
            verdicts = batched.admit(step.operation, step.request, now).verdicts
            puts = [entry["PutRequest"]["Item"] for entry in step.request["RequestItems"][TABLE]]
            assert verdicts == [single.admit("PutItem", put(one), now).verdicts[0] for one in puts]
    seen = [heat.snapshot(now)["tables"][TABLE]["partitions"] for heat in (batched, single)]
    assert seen[0] == seen[1]


@given(STEPS)
def test_equal_calls_give_equal_states(steps: Any) -> None:
    states = []
    for _ in range(2):
        heat = model(settings(index=ProvisionedThroughput()), LIMITS)
        _, now = run(heat, steps)
        states.append(heat.snapshot(now))
    assert states[0] == states[1]
    assert INDEX in states[0]["tables"][TABLE]["indexes"]
