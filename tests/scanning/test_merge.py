from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from spillway.layouts.model import Layout
from spillway.scanning.copies import drop_copies
from spillway.scanning.merge import OrderedMerge
from spillway.scanning.partitions import ScanPartition
from spillway.scanning.query import ReadQuery
from spillway.scanning.streams import PartitionStream, StoredEvent
from tests.support.fakes import NOON
from tests.support.layouts import epoch, layout_of
from tests.support.stores import HOUR

NAMES = [f"2026-06-01T11:00:00.00000{n}Z#{n}" for n in range(10)]


class _Pages:
    """Answers queries from prepared pages of sort keys, and notes which partitions were asked."""

    def __init__(self, pages: Mapping[str, list[list[int]]]) -> None:
        self._pages = pages
        self.asked: list[str] = []

    def __call__(self, _: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        key = request["ExpressionAttributeValues"][":p"]["S"]
        self.asked.append(key)
        at = int(request.get("ExclusiveStartKey", {}).get("page", {"N": "0"})["N"])
        pages = self._pages[key]
        items = [
            {"PK": {"S": key}, "SK": {"S": NAMES[n]}, "payload": {"S": "{}"}} for n in pages[at]
        ]
        response: dict[str, Any] = {"Items": items}
        if at + 1 < len(pages):
            reached = NAMES[pages[at][-1]] if pages[at] else NAMES[0]
            response["LastEvaluatedKey"] = {"page": {"N": str(at + 1)}, "SK": {"S": reached}}
        return response


class _Batch(NamedTuple):
    records: list[StoredEvent]
    position: str | None


def _batches(
    pages: _Pages, partitions: Iterable[ScanPartition], *, descending: bool = False, bounds: int = 1
) -> Iterator[_Batch]:
    """Yield the batches of a merge whose rounds each fetch the blocking streams."""
    query = ReadQuery.checked(
        "ORD",
        NOON - HOUR,
        NOON,
        order="desc" if descending else "asc",
        sharding_key=None,
        source="table",
        consistent=False,
    )
    merge = OrderedMerge(
        iter(partitions),
        lambda partition: PartitionStream(pages, "events", query, partition),
        descending=descending,
    )
    while merge.streams:
        for stream in merge.streams:
            if stream.blocks_merge:
                stream.fetch(100)
        yield _Batch(merge.take_final(), merge.position)
        merge.open_next(bounds)


def _merged(batches: Iterable[_Batch]) -> list[int]:
    return [NAMES.index(record.sort_key) for batch in batches for record in batch.records]


def _partitions(*keys: str, bound: str = NAMES[0][:27]) -> list[ScanPartition]:
    return [ScanPartition(key, bound, on_index=False) for key in keys]


def test_partitions_become_one_sorted_sequence() -> None:
    pages = _Pages({"a": [[0, 3], [6, 9]], "b": [[1, 2], [4]], "c": [[]], "d": [[5, 7, 8]]})
    assert _merged(_batches(pages, _partitions("a", "b", "c", "d"))) == list(range(10))


def test_descending_pages_become_one_descending_sequence() -> None:
    pages = _Pages({"a": [[9, 6], [3, 0]], "b": [[4], [2, 1]], "d": [[8, 7, 5]]})
    batches = _batches(pages, _partitions("a", "b", "d"), descending=True)
    assert _merged(batches) == list(range(9, -1, -1))


def test_a_page_is_fetched_only_where_it_holds_the_merge_up() -> None:
    pages = _Pages({"a": [[0], [1], [2]], "b": [[8], [9]]})
    batches = _batches(pages, _partitions("a", "b"))
    assert _merged([next(batches)]) == [0]
    assert sorted(pages.asked) == ["a", "b"]
    assert _merged([next(batches)]) == [1]
    assert sorted(pages.asked) == ["a", "a", "b"]


def test_an_empty_page_with_a_position_is_not_the_end() -> None:
    pages = _Pages({"a": [[], [], [5]], "b": [[6]]})
    assert _merged(_batches(pages, _partitions("a", "b"))) == [5, 6]


def test_copies_are_neighbours_in_one_run() -> None:
    pages = _Pages({"a": [[0, 1], [2]], "b": [[1, 2], [3]], "c": [[1]]})
    batches = list(_batches(pages, _partitions("a", "b", "c")))
    assert _merged(batches) == [0, 1, 1, 1, 2, 2, 3]
    for batch in batches:
        assert not {r.sort_key for r in batch.records} & {
            r.sort_key for other in batches if other is not batch for r in other.records
        }


def test_each_run_tells_up_to_where_everything_was_given_out() -> None:
    pages = _Pages({"a": [[0, 3], [6]], "b": [[1, 5], [7]]})
    seen: list[str] = []
    for batch in _batches(pages, _partitions("a", "b")):
        seen += [record.sort_key for record in batch.records]
        missing = [name for n, name in enumerate(NAMES) if n not in {2, 4, 8, 9}]
        assert batch.position is None or [n for n in missing if n <= batch.position] == seen
    assert len(seen) == 6


def test_later_partitions_stay_closed_until_the_merge_reaches_them() -> None:
    early, late = NAMES[0][:27], NAMES[5][:27]
    pages = _Pages({"a": [[0, 1], [2, 3]], "b": [[5], [6]]})
    partitions = [*_partitions("a", bound=early), *_partitions("b", bound=late)]
    batches = _batches(pages, partitions)
    assert _merged([next(batches), next(batches)]) == [0, 1, 2, 3]
    assert pages.asked == ["a", "a"]
    assert _merged(batches) == [5, 6]


def test_as_many_partitions_are_opened_at_once_as_asked() -> None:
    bounds = [f"2026-06-01T11:{n:02}" for n in range(10)]
    pages = _Pages({bound: [[]] for bound in bounds})
    partitions = [ScanPartition(bound, bound, on_index=True) for bound in bounds]
    rounds = [len(pages.asked) for _ in _batches(pages, partitions, bounds=4)]
    assert rounds == [1, 5, 9, 10]


def test_no_partitions_give_nothing() -> None:
    assert list(_batches(_Pages({}), [])) == []


def _record(partition: str, n: int = 0) -> StoredEvent:
    return StoredEvent(NAMES[n], partition, "{}", None)


@pytest.mark.parametrize(
    ("partitions", "kept"),
    [(["ORD#0", "ORD#1"], 1), (["ORD#1", "ORD#0"], 1), (["ORD#0", "ORD#9"], 0)],
)
def test_of_copies_the_one_under_the_newest_covering_epoch_is_kept(
    partitions: list[str], kept: int
) -> None:
    layout = _layout_whose_newest_shard_is_1()
    run = [_record(partition) for partition in partitions]
    (record,) = drop_copies(run, "ORD", layout, 0)
    assert record.partition_key == f"ORD#{kept}"


def _layout_whose_newest_shard_is_1() -> Layout:
    """Return a layout that gives the first name shard 1, and gave it shard 0 before."""
    return layout_of(epoch(1, shards=1, close=NOON), epoch(2, shards=2, low=NOON - HOUR))
