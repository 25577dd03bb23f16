"""The scaler through the whole deployed service: hot keys, alarms, topics, the function, layouts. Writers grow nothing here.

Partitions take 20 units a second, and a minute of metrics, alarms and schedule lasts a second.
"""

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import pairwise
from random import Random
from time import monotonic
from typing import Final

import pytest

from dynamoheat.serve.options import HeatOptions
from local.cloud import running
from tests.control.messages import message
from tests.control.world import alarm
from tests.e2e.load import Deployed, Watch, until

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("deployed")]

PARTITION: Final = 20.0
RATE: Final = 40.0  # events a second: twice what a partition takes
HOT: Final = "Events-HotWrites"
INDEX_HOT: Final = "EventsIndex-HotWrites"
CALM: Final = 3.0  # seconds, of as many minutes


@pytest.fixture(scope="module")
def deployed() -> Generator[Deployed]:
    heat = HeatOptions(
        partition_wcu=PARTITION, time_scale=60, parameters=("on_demand_partitions=16",)
    )
    context = {"writers_grow": "false", "alarm_threshold": "1", "alarm_periods": "1"}
    with running(heat=heat, context=context) as cloud:
        yield Deployed(cloud, PARTITION)


@pytest.fixture(autouse=True)
def calm(deployed: Deployed) -> None:
    until(lambda: not deployed.is_on(HOT) and not deployed.is_on(INDEX_HOT))


@contextmanager
def report(title: str) -> Iterator[Watch]:
    watch = Watch(monotonic(), [])
    yield watch
    print(f"\n{title}", *watch.lines, sep="\n  ")  # noqa: T201  times are what is shown


def await_quiet(deployed: Deployed, *, index: bool = False) -> None:
    """Wait for some minutes of metrics in which no key range throttled."""
    until(lambda: deployed.throttled(deployed.now() - CALM - 1, index=index) == 0)


def test_hot_series_grow_by_alarm_and_further_ones_by_the_schedule_while_it_lasts(
    deployed: Deployed,
) -> None:
    began, starts = deployed.now(), deployed.starts(HOT)
    with (
        report("One series hot, then another") as watch,
        deployed.traffic("first", RATE, over_http=True),
    ):
        until(lambda: deployed.throttled(began - 1))
        watch.note("the first series throttles, by CloudWatch's metric")
        until(lambda: deployed.is_on(HOT))
        watch.note("the alarm is on")
        until(lambda: deployed.counts("first")[0] >= 8)
        watch.note(f"the first series has {deployed.counts('first')} shards and index shards")
        assert deployed.is_on(HOT)
        with deployed.traffic("second", RATE):
            watch.note("the second series gets as many writes")
            until(lambda: deployed.counts("second")[0] >= 8)
            watch.note(f"the second series has {deployed.counts('second')}, by the schedule")
            assert deployed.starts(HOT) == starts + 1
            await_quiet(deployed)
            watch.note(f"nothing has throttled for {CALM:g} s; both go on")
    for series in ("first", "second"):
        decision = deployed.layout(series).decisions[0]
        assert (decision.before, decision.after) == ((1, 1), (8, 8))
        assert decision.why == "alarm: key ranges of the table throttle"
        assert "throttled" in decision.evidence


def test_heat_on_the_index_alone_grows_its_shards_alone(deployed: Deployed) -> None:
    deployed.store.set_layout("aggregated", shards=64, index_shards=1)
    with report("An index hot") as watch, deployed.traffic("aggregated", RATE):
        until(lambda: deployed.is_on(INDEX_HOT))
        watch.note("the alarm of the index is on")
        until(lambda: deployed.counts("aggregated")[1] >= 8)
        watch.note(f"the series has {deployed.counts('aggregated')} shards and index shards")
        await_quiet(deployed, index=True)
        watch.note(f"nothing has throttled for {CALM:g} s")
    by_hand, grown = deployed.layout("aggregated").decisions[:2]
    assert by_hand.why == "set by hand"
    assert (grown.before, grown.after) == ((64, 1), (64, 8))
    assert grown.why == "alarm: key ranges of the index throttle"


def _people_hear(deployed: Deployed) -> str:
    """Subscribe a queue to the topic for people, and return its URL."""
    queue = deployed.sqs.create_queue(QueueName="people")["QueueUrl"]
    arn = deployed.sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
    of_people, of_scaler = (
        set(deployed.alarm(name)["AlarmActions"]) for name in ("Events-AccountWrites", HOT)
    )
    (topic,) = of_people - of_scaler
    deployed.sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn["Attributes"]["QueueArn"])
    return str(queue)


def _heard(deployed: Deployed, queue: str) -> set[str]:
    found: set[str] = set()
    while True:
        answer = deployed.sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)
        if not answer.get("Messages"):
            return found
        for each in answer["Messages"]:
            found.add(json.loads(json.loads(each["Body"])["Message"])["AlarmName"])
            deployed.sqs.delete_message(QueueUrl=queue, ReceiptHandle=each["ReceiptHandle"])


def test_alarms_that_no_layout_helps_change_none_and_tell_people(deployed: Deployed) -> None:
    queue = _people_hear(deployed)
    before, began = deployed.layout_versions(), deployed.now()
    limits = ("Events-AccountWrites", "Events-ProvisionedWrites", "Events-MaximumWrites", "EventsIndex-AccountWrites", "Events-HotReads")  # fmt: skip
    names = {deployed.alarm(name)["AlarmName"] for name in limits}
    for name in names:
        deployed.cloudwatch.set_alarm_state(
            AlarmName=name, StateValue="ALARM", StateReason="a test", StateReasonData="{}"
        )

    def reported() -> bool:
        log = " ".join(deployed.scaler_log(began))
        return log.count('"capacity_limited"') >= 4 and '"reads_throttled"' in log

    until(reported)
    heard: set[str] = set()

    def told() -> bool:
        heard.update(_heard(deployed, queue))
        return names <= heard

    until(told)
    assert deployed.layout_versions() == before


def _storm(deployed: Deployed, random: Random) -> list[str]:
    """Return 100 messages: alarms again and again and in any order, of others, garbage."""
    now = deployed.now()
    own = {"TableName": deployed.table}
    index = {**own, "GlobalSecondaryIndexName": "GSI1-Read-Aggregator"}
    texts = [
        message(alarm(at=now + random.uniform(-3, 1), dimensions=random.choice((own, index))))
        for _ in range(15)
    ]
    texts += [
        message(alarm("Errors", at=now, dimensions={"FunctionName": "another"})),
        message(alarm(at=now, dimensions={"TableName": "another"})),
        message(alarm(at=now, state="OK", dimensions=own)),
        "garbage", "{}", "[1, 2", "null",
    ]  # fmt: skip
    return [random.choice(texts) for _ in range(100)]


def _publish(deployed: Deployed, topic: str, texts: list[str]) -> None:
    batch = [{"Id": str(n), "Message": text} for n, text in enumerate(texts)]
    deployed.sns.publish_batch(TopicArn=topic, PublishBatchRequestEntries=batch)


def test_a_storm_of_messages_changes_a_layout_once_a_cooldown_and_fails_nowhere(
    deployed: Deployed,
) -> None:
    texts, began = _storm(deployed, Random(7)), deployed.now()
    (topic,) = deployed.alarm(HOT)["AlarmActions"]
    with report("A storm") as watch, deployed.traffic("stormy", RATE):
        # One call after the other: the emulated AWS starts a process for each message that has to wait.
        for start in range(0, len(texts), 10):
            _publish(deployed, topic, texts[start : start + 10])
        watch.note("100 messages are published, in ten calls")
        until(lambda: deployed.counts("stormy")[0] >= 8)
        await_quiet(deployed)
        watch.note(f"nothing has throttled for {CALM:g} s")
        until(lambda: sum("REPORT" in line for line in deployed.scaler_log(began)) >= 100)
        log = deployed.scaler_log(began)
        dropped = sum('"message dropped"' in line for line in log)
        watch.note(f"all have been dealt with, {dropped} of them dropped")
    assert dropped >= 20
    failures = [line for line in log if "Traceback" in line or '"level":"ERROR"' in line]
    if failures:  # a machine under load lets requests time out, which Lambda tries again
        assert '"storage failed"' in " ".join(log)
    times = [each.at for each in deployed.layout("stormy").decisions]
    assert all(after - before >= 1 for before, after in pairwise(times))
    assert len(times) <= 3
