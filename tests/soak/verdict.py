"""The checker: from what all processes logged to every read that broke the rule. Pure.

An event must be in every read that began after its acknowledgement was logged and whose range covers it. A read may hold
others that were sent before it ended, and nothing else; no event twice; all in order.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from spillway.keys import parse_sort_key
from tests.soak.journal import Acknowledged, Changed, Entry, Failed, Identity, Read, Sent

__all__ = ["Verdict", "judge"]

_NEVER = float("inf")
_SHOWN = 3  # events named of one read


@dataclass
class Verdict:
    """What was checked and what was found; without violations the rule held."""

    acknowledged: int = 0
    again: int = 0  # acknowledgements of events that were acknowledged before
    reads: Counter[str] = field(default_factory=Counter)  # by kind
    events_checked: int = 0
    layouts_set: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _When:
    """The first time that something was logged of an event, and by whom."""

    at: float
    by: str


def judge(journals: Mapping[str, Iterable[Entry]]) -> Verdict:
    """Check every read of every journal; journals by the name of their process."""
    return _Judge({name: list(entries) for name, entries in journals.items()}).verdict()


class _Judge:
    def __init__(self, journals: Mapping[str, list[Entry]]) -> None:
        self._journals = journals
        self._verdict = Verdict()
        self._sent: dict[Identity, _When] = {}
        self._acknowledged: dict[Identity, _When] = {}
        self._sort_keys: dict[str, list[str]] = defaultdict(list)  # acknowledged, by series

    def verdict(self) -> Verdict:
        for name, entry in self._all():
            self._take(name, entry)
        for series, sort_key in sorted(self._acknowledged):
            self._sort_keys[series].append(sort_key)
        self._verdict.acknowledged = len(self._acknowledged)
        for name, entry in self._all():
            if isinstance(entry, Read):
                self._check(name, entry)
        return self._verdict

    def _all(self) -> Iterator[tuple[str, Entry]]:
        return ((name, entry) for name, journal in self._journals.items() for entry in journal)

    def _take(self, name: str, entry: Entry) -> None:
        match entry:
            case Sent(at, events):
                _note(self._sent, events, _When(at, name))
            case Acknowledged(at, events):
                known = _note(self._acknowledged, events, _When(at, name))
                self._verdict.again += known
            case Changed():
                self._verdict.layouts_set += 1
            case Failed():
                self._take_failure(name, entry)
            case Read():
                self._verdict.reads[entry.kind] += 1

    def _take_failure(self, name: str, entry: Failed) -> None:
        self._verdict.failures[f"{entry.what}: {entry.code}"] += 1
        if not entry.retryable:
            self._verdict.violations.append(f"{name} was refused a valid event: {entry.code}")

    def _check(self, name: str, read: Read) -> None:
        counts = Counter(read.found)
        expected = set(self._expected(read))
        self._verdict.events_checked += len(expected)
        self._blame(name, read, "misses", sorted(expected - counts.keys()))
        self._blame(name, read, "doubles", [key for key, times in counts.items() if times > 1])
        self._blame(name, read, "invents", [key for key in counts if not self._may_hold(read, key)])
        self._blame(name, read, "has another payload in", read.damaged)
        ordered = sorted(read.found, reverse=read.descending)
        misplaced = [key for key, right in zip(read.found, ordered, strict=True) if key != right]
        self._blame(name, read, "misplaces", misplaced)

    def _expected(self, read: Read) -> Iterator[str]:
        """Yield the sort keys that a read must hold."""
        known = self._sort_keys[read.series]
        for at in range(bisect_left(known, read.start), bisect_left(known, read.end)):
            acknowledged = self._acknowledged[read.series, known[at]].at
            if acknowledged <= read.began and _covers(read, known[at]):
                yield known[at]

    def _may_hold(self, read: Read, sort_key: str) -> bool:
        sent = self._sent.get((read.series, sort_key))
        in_range = read.start <= sort_key < read.end and _has_key(read, sort_key)
        return in_range and sent is not None and sent.at <= read.ended

    def _blame(self, name: str, read: Read, what: str, sort_keys: list[str]) -> None:
        if not sort_keys:
            return
        told = "; ".join(self._told(read.series, each) for each in sort_keys[:_SHOWN])
        more = len(sort_keys) - _SHOWN
        told += f"; and {more} more" if more > 0 else ""
        where = f"{read.kind} read of {read.series!r} [{read.start}, {read.end})"
        where += f" sharding key {read.sharding_key!r}" if read.sharding_key else ""
        where += " descending" if read.descending else ""
        when = f"by {name} from {read.began:.3f} to {read.ended:.3f} s"
        self._verdict.violations.append(f"The {where} {when} {what} {told}.")

    def _told(self, series: str, sort_key: str) -> str:
        acknowledged = self._acknowledged.get((series, sort_key))
        if acknowledged is None:
            return f"{sort_key} (never acknowledged)"
        return f"{sort_key} (acknowledged to {acknowledged.by} at {acknowledged.at:.3f} s)"


def _note(known: dict[Identity, _When], events: Iterable[Identity], when: _When) -> int:
    """Keep the earliest time of each event; return how many were known."""
    again = 0
    for each in events:
        again += each in known
        if when.at < known.get(each, _When(_NEVER, "")).at:
            known[each] = when
    return again


def _covers(read: Read, sort_key: str) -> bool:
    """Say whether a read that covers a sort key's range also covers it: by sharding key, and up to its last page."""
    if not _has_key(read, sort_key):
        return False
    if read.complete:
        return True
    if not read.found:
        return False
    last = read.found[-1]
    return sort_key >= last if read.descending else sort_key <= last


def _has_key(read: Read, sort_key: str) -> bool:
    return read.sharding_key in {None, parse_sort_key(sort_key).sharding_key}
