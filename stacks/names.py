"""The names of a stage's stacks."""

from typing import Literal

from stacks.config import Stage

__all__ = ["Kind", "stack_name", "stack_names"]

Kind = Literal["storage", "cache", "service"]


def stack_name(stage: Stage, kind: Kind) -> str:
    """Return a stack's name. It holds the stage, so stages can share an account and a region."""
    return f"Spillway-{stage.name}-{kind}"


def stack_names(stage: Stage) -> list[str]:
    """Return the names of all stacks of a stage in the order of their deployment."""
    kinds: tuple[Kind, ...] = ("storage", "cache", "service")
    return [stack_name(stage, kind) for kind in kinds if kind != "cache" or stage.cache is not None]
