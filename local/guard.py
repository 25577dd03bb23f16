"""Become a command that dies with its parent: `python guard.py PARENT_PID COMMAND …`.

This script runs between a process and its child. On Linux, the child itself must ask for a signal
at its parent's death, and Python code between fork and exec is not safe beside threads. Other
systems have no such signal: there, only an orderly stop ends the command.
"""

import ctypes
import os
import signal
import sys

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1


def _die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:  # the parent died before the call above
        sys.exit(1)


def main() -> None:
    """Tie this process to the parent named in the arguments and turn into the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        _die_with(parent)
    os.execv(command[0], command)  # noqa: S606  # the caller passes a path, not a shell line


if __name__ == "__main__":
    main()
