"""A few workers that share a list of things to do."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

__all__ = ["share"]

T = TypeVar("T")


async def share(things: Iterable[T], do: Callable[[T], Awaitable[None]], *, workers: int) -> None:
    """Do all things, `workers` at a time, each taken only when a worker is free for it.

    The first failure ends all workers and is raised.
    """
    queue = iter(things)

    async def work() -> None:
        for thing in queue:
            await do(thing)

    tasks = [asyncio.create_task(work()) for _ in range(workers)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
