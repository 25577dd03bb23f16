"""The parts of an endpoint, made as options say."""

import asyncio
import gc
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from time import monotonic

from dynamoheat.model import Heat
from dynamoheat.serve.answers import throttled_call
from dynamoheat.serve.faults import Faults
from dynamoheat.serve.options import HeatOptions
from dynamoheat.serve.tables import Describe, plain_arn
from dynamoheat.serve.throttling import Throttling
from dynamoheat.serve.wire import EndpointCall, Reply

__all__ = ["make_faults", "make_throttling", "relax_collector", "steady_clock"]

Clock = Callable[[], float]


def relax_collector() -> None:
    """Let Python look for garbage in cycles a hundred times less often; for an endpoint's own process.

    The model keeps hundreds of thousands of small objects, none in cycles: looking through them took a
    sixth of the endpoint's time.
    """
    gc.freeze()
    gc.set_threshold(70_000, 50, 50)


def steady_clock() -> Clock:
    """Return a clock of epoch seconds that never steps back, whatever is done to the machine's own."""
    ahead = datetime.now(UTC).timestamp() - monotonic()  # noqa: TID251  # others take this clock
    return lambda: monotonic() + ahead


def make_throttling(
    options: HeatOptions, describe: Describe, clock: Clock, *, patience: float = 50.0
) -> Throttling | None:
    """Return the model in front of an engine, None where the options turn it off; see `Throttling`."""
    if not options.enabled:
        return None
    heat = Heat(options.to_parameters(), seed=options.seed)
    return Throttling(heat, describe, clock, patience=patience)


def make_faults(options: HeatOptions, throttling: Throttling | None) -> Faults:
    """Return the faults; exceptions that they fake name what `throttling` knows."""

    def refuse(call: EndpointCall) -> Reply:
        if throttling is None:
            return throttled_call(call, lambda _: False, plain_arn)
        return throttled_call(call, throttling.tables.is_provisioned, throttling.tables.arn)

    chance = Random(options.seed)  # noqa: S311  # a test's chance, not a secret
    return Faults(options.to_faults(), chance, asyncio.sleep, refuse)
