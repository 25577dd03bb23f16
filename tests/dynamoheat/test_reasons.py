from typing import Any

import pytest

from dynamoheat import Heat, ModelParameters, ThrottleReason, ThroughputSettings
from tests.dynamoheat.traffic import INDEX, TABLE, get, item, model, put, settings

SMALL = ModelParameters(partition_wcu=10, partition_rcu=10, index_buffer_seconds=1)
QUOTA = ModelParameters(
    partition_wcu=1000, partition_rcu=1000, quota_wcu=10, quota_rcu=10, index_buffer_seconds=0.001
)
ROOMY = ModelParameters(burst_seconds=0, index_buffer_seconds=0.001)


def first_refusal(heat: Heat, operation: str, request: dict[str, Any]) -> Any:
    for _ in range(100):
        admission = heat.admit(operation, request, 0.0)
        if admission.throttles:
            assert admission.is_rejected
            return admission.throttles[0]
    raise AssertionError("never throttled")


def index_query() -> dict[str, Any]:
    return {
        "TableName": TABLE,
        "IndexName": INDEX,
        "KeyConditionExpression": "kind = :k",
        "ExpressionAttributeValues": {":k": {"S": "hot"}},
    }


WRITE = ("PutItem", put(item("p", kind="hot")))
READ = ("GetItem", get("p"))
QUERY = ("Query", index_query())
FREE = ThroughputSettings()
LITTLE = ThroughputSettings(provisioned_write=10, provisioned_read=10)
MUCH = ThroughputSettings(provisioned_write=900, provisioned_read=900)
CAPPED = ThroughputSettings(max_write=10, max_read=10)


@pytest.mark.parametrize(
    ("described", "parameters", "call", "reason"),
    [
        (settings(), SMALL, WRITE, ThrottleReason.TABLE_WRITE_KEY_RANGE),
        (settings(), SMALL, READ, ThrottleReason.TABLE_READ_KEY_RANGE),
        (settings(index=FREE), SMALL, QUERY, ThrottleReason.INDEX_READ_KEY_RANGE),
        (settings(write=10), ROOMY, WRITE, ThrottleReason.TABLE_WRITE_PROVISIONED),
        (settings(write=10), ROOMY, READ, ThrottleReason.TABLE_READ_PROVISIONED),
        (settings(write=900, index=LITTLE), ROOMY, WRITE, ThrottleReason.INDEX_WRITE_PROVISIONED),
        (settings(write=900, index=LITTLE), ROOMY, QUERY, ThrottleReason.INDEX_READ_PROVISIONED),
        (settings(max_write=10), ROOMY, WRITE, ThrottleReason.TABLE_WRITE_MAXIMUM),
        (settings(max_read=10), ROOMY, READ, ThrottleReason.TABLE_READ_MAXIMUM),
        (settings(index=CAPPED), ROOMY, WRITE, ThrottleReason.INDEX_WRITE_MAXIMUM),
        (settings(index=CAPPED), ROOMY, QUERY, ThrottleReason.INDEX_READ_MAXIMUM),
        (settings(), QUOTA, WRITE, ThrottleReason.TABLE_WRITE_ACCOUNT),
        (settings(), QUOTA, READ, ThrottleReason.TABLE_READ_ACCOUNT),
        (settings(index=FREE), QUOTA, QUERY, ThrottleReason.INDEX_READ_ACCOUNT),
    ],
)  # fmt: skip
def test_each_limit_is_named_by_its_own_reason(
    described: Any,
    parameters: ModelParameters,
    call: tuple[str, dict[str, Any]],
    reason: ThrottleReason,
) -> None:
    throttle = first_refusal(model(described, parameters), *call)
    assert throttle.reason == reason
    assert throttle.resource == f"table/{TABLE}" + (f"/index/{INDEX}" if "Index" in reason else "")
    provisioned = described.provisioned
    assert (throttle.exception == "ProvisionedThroughputExceededException") == provisioned
    assert throttle.cancellation_code == (
        "ProvisionedThroughputExceeded" if provisioned else "ThrottlingError"
    )
    assert throttle.message


def test_an_indexs_hot_partition_refuses_the_tables_writes_in_the_indexs_name() -> None:
    heat = model(settings(index=FREE), SMALL)
    spread = (item(f"p{n}", kind="hot") for n in range(1000))
    refusals = [
        throttle
        for one in spread
        for throttle in heat.admit("PutItem", put(one), 0.0).throttles
        if throttle.index
    ]
    assert refusals[0].reason == ThrottleReason.INDEX_WRITE_KEY_RANGE
    assert refusals[0].resource == f"table/{TABLE}/index/{INDEX}"


def test_an_indexs_quota_is_named_where_moved_entries_use_it_up_first() -> None:
    heat = model(settings(index=FREE), QUOTA)
    for turn in range(100):
        moved = put(item("p", kind=f"k{turn}"))  # one unit of the table, two of the index
        admission = heat.admit("PutItem", moved, 0.0)
        if admission.throttles:
            assert admission.throttles[0].reason == ThrottleReason.INDEX_WRITE_ACCOUNT
            return
        heat.settle(admission, {}, 0.0)
    raise AssertionError("never throttled")


def test_the_sixteen_reasons_are_dynamodbs_and_name_their_metric() -> None:
    assert len(ThrottleReason) == 16
    assert ThrottleReason.INDEX_WRITE_KEY_RANGE.metric == "WriteKeyRangeThroughputThrottleEvents"
    assert ThrottleReason.TABLE_READ_ACCOUNT.metric == "ReadAccountLimitThrottleEvents"
    assert ThrottleReason.TABLE_WRITE_MAXIMUM.metric == "WriteMaxOnDemandThroughputThrottleEvents"
    assert len({reason.metric for reason in ThrottleReason}) == 8
