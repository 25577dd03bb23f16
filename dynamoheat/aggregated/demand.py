"""Rates turned into flows: new units by the shares of today's partitions, and those that wait for another try."""

from collections.abc import Iterable

from dynamoheat.aggregated.flows import Amounts, Branch, TrafficFlow
from dynamoheat.aggregated.keys import Keys
from dynamoheat.aggregated.routes import PartitionRouter, Route
from dynamoheat.aggregated.traffic import Entries, Reads, Traffic, Writes
from dynamoheat.errors import UnknownTableError
from dynamoheat.tables import Index, Table

__all__ = ["TrafficDemand"]


class TrafficDemand:
    """Routes traffic, and keeps what is retried from one step to the next."""

    def __init__(self) -> None:
        self._router = PartitionRouter()
        self._waiting: dict[Traffic, Amounts] = {}

    def offered(self, new: Iterable[Traffic]) -> Iterable[Traffic]:
        """Return what is to be offered: what waits and what is new, each once."""
        return {**dict.fromkeys(self._waiting), **dict.fromkeys(new)}

    def waiting(self, traffic: Traffic) -> float:
        """Return the units of some traffic that wait for another try."""
        return sum(self._waiting.get(traffic, {}).values())

    def writes(self, traffic: Writes, table: Table, units: float, now: float) -> TrafficFlow:
        """Return the flow of new units, and old ones, of a table. UnknownTableError, ValueError: see `_branch`."""
        branches = tuple(
            self._branch(traffic, name, entries, table, now)
            for name, entries in traffic.indexes.items()
        )
        route = self._route(traffic.keys, table, now)
        asked, retried = self._asked(traffic, route, units)
        return TrafficFlow(traffic, route, asked, retried, traffic.growth, branches)

    def reads(self, traffic: Reads, table: Table, units: float, now: float) -> TrafficFlow:
        """Return the flow of new units, and old ones, of a table or an index that is there."""
        of = table if traffic.index is None else _index(table, traffic.index)
        route = self._route(traffic.keys, of, now)
        asked, retried = self._asked(traffic, route, units)
        return TrafficFlow(
            traffic, route, asked, retried, table.read_tokens(1.0, traffic.consistency)
        )

    def keep(self, flow: TrafficFlow) -> None:
        """Let what a flow did not get wait for the next step, if it is to be retried."""
        refused = flow.refused if flow.traffic.retried else {}
        if refused:
            self._waiting[flow.traffic] = refused
        else:
            self._waiting.pop(flow.traffic, None)

    def forget(self, table: str, index: str | None = None) -> None:
        """Lose what waits for a table, or only what has to do with one of its indexes."""
        self._waiting = {
            traffic: amounts
            for traffic, amounts in self._waiting.items()
            if traffic.table != table or (index is not None and not _uses(traffic, index))
        }

    def _route(self, keys: Keys, of: Table | Index, now: float) -> Route:
        sortable = of.sort_name is not None
        return self._router.route(keys, of.resource.partitions, now, sortable=sortable)

    def _asked(self, traffic: Traffic, route: Route, units: float) -> tuple[Amounts, float]:
        asked = {partition: units * share for partition, share in route.shares.items()}
        waiting = self._waiting.get(traffic, {})
        for partition, old in waiting.items():
            for heir, part in route.heirs(partition, old):
                asked[heir] += part
        return asked, sum(waiting.values())

    def _branch(
        self, traffic: Writes, name: str, entries: Entries, table: Table, now: float
    ) -> Branch:
        index = _index(table, name)
        if index.local:
            raise ValueError("a local index has no entries of its own: add their units to the rate")
        route = self._route(entries.keys, index, now)
        units, growth = traffic.entry_units(entries), traffic.entry_growth(entries)
        return Branch(index.resource, route, units, growth)


def _index(table: Table, name: str) -> Index:
    found = table.indexes.get(name)
    if found is None:
        raise UnknownTableError(f"{table.name}/index/{name}")
    return found


def _uses(traffic: Traffic, index: str) -> bool:
    if isinstance(traffic, Writes):
        return index in traffic.indexes
    return isinstance(traffic, Reads) and traffic.index == index
