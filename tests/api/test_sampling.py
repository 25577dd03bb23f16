from collections import Counter
from datetime import UTC, datetime
from random import Random

from lambdas.api.ingest_app import sample_series
from spillway import Event

TIME = datetime(2001, 1, 1, tzinfo=UTC)


def _events(**counts: int) -> list[Event]:
    return [
        Event(series=name, time=TIME, payload={}) for name, n in counts.items() for _ in range(n)
    ]


def test_each_series_is_counted_for_its_own_events_on_average() -> None:
    requests = [_events(ORD=9, DFW=1), _events(DFW=30), _events(ATL=1, ORD=1)] * 2_000
    random = Random(1).random
    counted: Counter[str | None] = Counter()
    for events in requests:
        counted[sample_series(events, random)] += len(events)
    written = {"ORD": 20_000, "DFW": 62_000, "ATL": 2_000}
    assert counted.keys() == written.keys()
    for series, number in written.items():
        assert abs(counted[series] - number) < 0.1 * number


def test_every_event_may_be_drawn_and_no_other() -> None:
    events = _events(ORD=1, DFW=1)
    assert sample_series(events, lambda: 0.0) == "ORD"
    assert sample_series(events, lambda: 1 - 2**-53) == "DFW"


def test_a_request_without_events_is_about_no_series() -> None:
    assert sample_series([], lambda: 0.0) is None
