"""The workloads on which the two modes are compared: uniform, skewed, hot, growing, bursting, held back.

Steady loads of a partition, and of its children after a split, stay clear of the threshold of splits for heat: what is on
it splits or not by chance, in either mode.
"""

from collections.abc import Callable, Mapping
from typing import Final

from benchmarks.modes.workload import ModeStream, ModeWorkload, table
from dynamoheat import ModelParameters, TableSettings
from dynamoheat.aggregated import Sorts

__all__ = ["ZIPF", "workloads"]

ZIPF: Final = {f"k{rank}": 1 / rank for rank in range(1, 2_001)}
_TEN: Final = {f"k{number}": 1.0 for number in range(10)}
_KINDS: Final = {"a": 5.0, "b": 2.7, "c": 1.0}

Rate = Callable[[float], float]


def workloads(limits: ModelParameters, minutes: int = 60) -> list[ModeWorkload]:
    """Return them for a table of up to 40 partitions, with rates in proportion to a partition's."""
    unit = limits.partition_wcu
    minute = 60 / limits.time_scale

    def workload(
        name: str, settings: TableSettings, *streams: ModeStream, retried: bool = False
    ) -> ModeWorkload:
        seconds = round(minutes * minute)
        return ModeWorkload(
            name=name,
            streams=streams,
            settings=settings,
            parameters=limits,
            seconds=seconds,
            retried=retried,
        )

    wide = table(warm_write=40 * unit)
    hot = {"hot": 1.0}
    return [
        workload("uniform keys", wide, _steady(10 * unit)),
        workload(
            "uniform keys, too many",
            table(warm_write=40 * unit, maximum_write=6 * unit),
            _steady(9 * unit),
        ),
        workload("Zipf", wide, _steady(10.6 * unit, ZIPF)),
        workload(
            "Zipf, provisioned",
            table(write=5 * unit, warm_write=40 * unit),
            _steady(10.6 * unit, ZIPF),
        ),
        workload("a hot key", wide, _steady(3 * unit, hot), _steady(5 * unit)),
        workload(
            "a hot key, growing",
            wide,
            _steady(3 * unit, hot, Sorts.GROWING),
            _steady(5 * unit),
        ),
        workload("ten hot keys", wide, _steady(14 * unit, _TEN)),
        workload("new table, ramp", table(), ModeStream(rate=lambda now: now / minute * unit / 3)),
        workload(
            "provisioned, bursts",
            table(write=5 * unit),
            ModeStream(rate=_waves(10 * minute, 2 * unit, 12 * unit)),
        ),
        workload(
            "index holds back",
            table(indexed=True, warm_write=40 * unit),
            _indexed(2.9 * unit, _KINDS),
            _steady(unit),
        ),
        workload(
            "a hot key, read",
            wide,
            ModeStream(rate=lambda _: 10 * limits.partition_rcu / 2, keys=hot, reads=True),
        ),
        workload(
            "waves, retried",
            wide,
            ModeStream(
                rate=_waves(10 * minute, 0.1 * unit, 1.2 * unit), keys=hot, sorts=Sorts.GROWING
            ),
            _steady(5 * unit),
            retried=True,
        ),
    ]


def _steady(
    rate: float, keys: Mapping[str, float] | None = None, sorts: Sorts = Sorts.SPREAD
) -> ModeStream:
    return ModeStream(rate=lambda _: rate, keys=keys, sorts=sorts)


def _indexed(rate: float, kinds: Mapping[str, float]) -> ModeStream:
    return ModeStream(rate=lambda _: rate, kinds=kinds)


def _waves(period: float, low: float, high: float) -> Rate:
    """Two thirds of each period low, then high."""
    return lambda now: low if now % period < period * 2 / 3 else high
