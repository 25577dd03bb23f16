"""Journals: what each process did, in lines that are only added, on the clock that all processes of a machine share."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from msgspec import Struct

__all__ = [
    "Acknowledged",
    "Changed",
    "Entry",
    "Failed",
    "Identity",
    "Journal",
    "Read",
    "Sent",
    "Tail",
    "entries",
]

Identity = tuple[str, str]
"""An event: its series and its sort key. All else of it follows from these."""


class Sent(Struct, frozen=True, tag=True):
    """Events that a writer is about to write."""

    at: float
    events: list[Identity]


class Acknowledged(Struct, frozen=True, tag=True):
    """Events that were accepted, at the latest at `at`."""

    at: float
    events: list[Identity]


class Read(Struct, frozen=True, tag=True, kw_only=True):
    """The answer of a read of [start, end), as sort keys in the order in which they came.

    Attributes:
        kind: what was called: `range`, `sharding key`, `one`, or `index`.
        complete: False where the reader stopped between two pages: the range ends with what was found.
        damaged: sort keys of those whose payload is not the one written.
    """

    began: float
    ended: float
    kind: str
    series: str
    start: str
    end: str
    found: list[str]
    descending: bool = False
    sharding_key: str | None = None
    complete: bool = True
    damaged: list[str] = []


class Changed(Struct, frozen=True, tag=True):
    """A layout that was set, as it was then in force."""

    at: float
    series: str
    version: int
    shards: int
    index_shards: int


class Failed(Struct, frozen=True, tag=True):
    """Something that was honestly not done: a rejected event, or a read at its deadline."""

    at: float
    what: str
    code: str
    retryable: bool = True


Entry = Sent | Acknowledged | Read | Changed | Failed
_decode: Callable[[bytes], Any] = msgspec.json.Decoder(Entry).decode


class Journal:
    """A journal that one process writes; what was added is visible to others before `add` returns."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    def add(self, entry: Entry) -> None:
        self._file.write(msgspec.json.encode(entry) + b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


def entries(path: Path) -> Iterator[Entry]:
    """Yield what a finished journal holds."""
    for line in path.read_bytes().splitlines():
        yield _decode(line)


class Tail:
    """The latest acknowledged events of journals that are still being written."""

    def __init__(self, paths: list[Path], most: int = 400) -> None:
        self.latest: list[Identity] = []
        self._max = most
        self._read = dict.fromkeys(paths, 0)

    def update(self) -> list[Identity]:
        """Take in what was added, and return the latest events, newest last."""
        for path, offset in self._read.items():
            with path.open("rb") as file:
                file.seek(offset)
                whole, newline, _ = file.read().rpartition(b"\n")
            self._read[path] = offset + len(whole) + len(newline)
            for line in whole.splitlines():
                entry = _decode(line)
                if isinstance(entry, Acknowledged):
                    self.latest += entry.events
        del self.latest[: -self._max]
        return self.latest
