"""What a published case is: its input, its source, and the outcome with the tolerance it was given."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, isclose
from typing import Self

from dynamoheat.parameters import ModelParameters
from dynamoheat.studies.validation.trial import Trial

__all__ = ["Case", "Expected", "Figures"]

Figures = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Expected:
    """One published figure: what it is of, what was published, and the range that the model may give."""

    what: str
    published: str
    tolerance: str
    least: float = -inf
    most: float = inf

    @classmethod
    def near(cls, what: str, value: float, share: float, published: str = "") -> Self:
        """Return a figure that may be off by a share of itself."""
        least, most = value * (1 - share), value * (1 + share)
        return cls(what, published or f"{value:,g}", f"±{share:.0%}", least, most)

    @classmethod
    def exactly(cls, what: str, value: float) -> Self:
        """Return a figure that must come out as it is."""
        return cls(what, f"{value:,g}", "exact", value, value)

    @classmethod
    def noted(cls, what: str, published: str) -> Self:
        """Return a figure that was published without saying how far it may be off: shown, never out."""
        return cls(what, published, "not given")

    def holds(self, figure: float) -> bool:
        """Say whether the model's figure is within the tolerance."""
        if self.least == self.most:
            return isclose(figure, self.least, rel_tol=1e-9)
        return self.least <= figure <= self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A published case. `run` gives the model's figures of one trial, in the order of `expected`.

    `limits` and `time` scale a case that would take hours: see `Trial`. A case in which chance decides
    has `seeds` trials. With the limits at `quick` it takes a second or two.
    """

    number: str
    given: str
    source: str
    run: Callable[[Trial], Figures]
    expected: tuple[Expected, ...]
    seeds: int = 1
    limits: float = 1.0
    time: float = 1.0
    quick: float = 0.1

    def quickly(self) -> "Case":
        """Return the same at its quick scale."""
        return replace(self, limits=min(self.limits, self.quick))

    def trial(self, parameters: ModelParameters, seed: int) -> Trial:
        """Return a trial at this case's scale."""
        return Trial(parameters, seed, self.limits, self.time)
