"""Looks at processes, to see what a local cloud leaves behind."""

from pathlib import Path
from threading import Event

__all__ = ["alive", "descendants", "gone", "option_of"]


def alive(pid: int) -> bool:
    """Say whether a process runs; one that nobody has waited for yet does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def descendants(pid: int) -> set[int]:
    """Return the processes below one."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found: set[int] = set()
    rest = [pid]
    while rest:
        children = parents.get(rest.pop(), [])
        found.update(children)
        rest += children
    return found


def gone(pids: set[int], *, seconds: float = 100.0) -> bool:
    """Wait until none of the processes runs; False where some still do after a while."""
    for _ in range(round(seconds / 0.02)):
        if not any(alive(pid) for pid in pids):
            return True
        Event().wait(0.02)
    return False


def option_of(pid: int, option: str) -> str:
    """Return the value of an option on a process's command line."""
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return words[words.index(option) + 1]
