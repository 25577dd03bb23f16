"""The coverage rule on the real parts: `python -m tests.soak --seconds 60`.

Four writers, two readers and one that grows and shrinks use the library against a local cloud that throttles and breaks
calls; its engine is killed once. Exit status 1 where a read broke the rule, with the event and the read on stderr;
2 where the soak could not be run.
"""

import argparse
import sys

from rich.console import Console
from rich.table import Table

from local.errors import LocalCloudError
from tests.soak.run import Soaked, SoakFailedError, soak

_SHOWN = 20  # violations


def _table(soaked: Soaked, seconds: float) -> Table:
    verdict = soaked.verdict
    table = Table("what", "count", title=f"{seconds:g} s on the real parts")
    table.columns[1].justify = "right"
    rows = {
        "events acknowledged": verdict.acknowledged,
        "… acknowledged once more": verdict.again,
        "… stored under more than one key": soaked.copies,
        **{f"reads checked: {kind}": times for kind, times in sorted(verdict.reads.items())},
        "events checked": verdict.events_checked,
        "layouts set (set_layout answered)": verdict.layouts_set,
        "layout versions, by whatever cause": soaked.layout_versions,
        **{f"faults: {kind}": times for kind, times in sorted(soaked.injected.items())},
        "items throttled by heat": soaked.throttled,
        "engine killed and restarted": soaked.engine_restarts,
        **{f"not done, {what}": times for what, times in sorted(verdict.failures.items())},
        "violations": len(verdict.violations),
    }
    for what, number in rows.items():
        table.add_row(what, f"{number:,}")
    return table


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="of load (%(default)g)")
    parser.add_argument("--seed", type=int, default=1, help="of all chance (%(default)s)")
    given = parser.parse_args()
    try:
        soaked = soak(given.seconds, given.seed)
    except (LocalCloudError, SoakFailedError) as error:
        parser.exit(2, f"{error}\n")
    Console().print(_table(soaked, given.seconds))
    wrong = soaked.verdict.violations[:_SHOWN] + [
        f"This run had {each}." for each in soaked.lacking
    ]
    for each in wrong:
        sys.stderr.write(each + "\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
