"""Damaged, foreign and forged cursors: each answer is 400 or right, none an error of the service."""

from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spillway.aggregating.query import AggregateQuery
from spillway.scanning.export_position import ExportCursors, ExportMode
from spillway.scanning.query import ReadQuery
from spillway.timestamps import format_time
from tests.api.conftest import Api
from tests.support.cursors import bad_cursors
from tests.support.fakes import NOON
from tests.support.stores import HOUR, events_every

_START, _END = NOON - 6 * HOUR, NOON + HOUR
_SPAN: Final = {"series": "ORD", "start": format_time(_START), "end": format_time(_END)}
_ROWS: Final = {"interval": "1h", "field": "n", "functions": "count,avg", "fill": "previous"}

_CUTS: Final[dict[str, dict[str, Any]]] = {
    "/v1/events": {"limit": 7},
    "/v1/aggregates": {"limit": 2},
    "/v1/export": {"max_rcu": 0.5},
}


def _query() -> ReadQuery:
    return ReadQuery.checked(
        "ORD", _START, _END, order="asc", sharding_key=None, source="auto", consistent=False
    )


def _bindings() -> dict[str, str]:
    rows = AggregateQuery.checked(
        _query(), interval=HOUR, field="n", functions=["count", "avg"], fill="previous"
    )
    export = ExportCursors(_query(), ExportMode.SHARDS)
    return {
        "/v1/events": _query().binding,
        "/v1/aggregates": rows.binding,
        "/v1/export": export._binding,  # noqa: SLF001
    }


def _asked(path: str) -> dict[str, Any]:
    return {**_SPAN, **(_ROWS if path == "/v1/aggregates" else {})}


@pytest.mark.parametrize("path", ["/v1/events", "/v1/aggregates", "/v1/export"])
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_bad_cursor_is_the_callers_error(api: Api, path: str, data: st.DataObject) -> None:
    if not api.memory.stored:
        api.memory.store.write(events_every(HOUR / 12, 60))
    asked = _asked(path)
    whole = api.get(path, asked)
    cut = api.get(path, {**asked, **_CUTS[path]})
    own = cut.headers["Spillway-Cursor"] if path == "/v1/export" else cut.body["cursor"]
    bindings = _bindings()
    others = [binding for name, binding in bindings.items() if name != path]
    cursor = data.draw(bad_cursors([own], [bindings[path], *others]))
    answer = api.get(path, {**asked, "cursor": cursor.encode(errors="surrogatepass")})
    if answer.status == 400:
        assert answer.error[0] in {"invalid_cursor", "invalid_query"}  # bytes that are no UTF-8
        return
    assert answer.status == 200
    if path == "/v1/export":
        assert answer.raw["body"] in whole.raw["body"]
        return
    name = "events" if path == "/v1/events" else "rows"
    found, all_of_them = answer.body[name], whole.body[name]
    assert found == all_of_them[len(all_of_them) - len(found) :]
