import asyncio

import pytest

from local.demo.client import ApiAnswer, ApiError, Client, ClientEvent, ClientRefusal
from tests.local.demo.answers import Played, accept, client_of, event, reject

A, B, C = event("a", 0), event("b", 1), event("c", 2)


def write(client: Client, *events: ClientEvent) -> list[ClientRefusal]:
    return asyncio.run(client.write(events))


async def _pages(client: Client, **query: str) -> list[list[ClientEvent]]:
    return [page async for page in client.pages("ORD", **query)]  # type: ignore[arg-type]  # text for a literal


def test_events_that_are_accepted_are_sent_once() -> None:
    played = Played([accept(2)])
    assert write(client_of(played), A, B) == []
    assert played.sent_ids == [["a", "b"]]
    assert played.naps == []


def test_only_what_is_worth_retrying_is_sent_again_under_the_same_ids() -> None:
    answers = [
        reject(207, [(0, "throttled", True), (1, "item_too_large", False), (2, "throttled", True)]),
        reject(207, [(1, "unknown_outcome", True)]),
        accept(1),
    ]
    played = Played(answers)
    refused = write(client_of(played), A, B, C)
    assert [(each.event, each.code) for each in refused] == [(B, "item_too_large")]
    assert played.sent_ids == [["a", "b", "c"], ["a", "c"], ["c"]]


@pytest.mark.parametrize(
    "lost",
    [
        ApiAnswer(0, "connection reset"),
        ApiAnswer(429, {"message": "Too Many Requests"}),
        ApiAnswer(502, "Bad Gateway"),
        ApiAnswer(503, {"message": "Service Unavailable"}),
        ApiAnswer(504, {"message": "Endpoint request timed out"}),
    ],
    ids=lambda answer: str(answer.status),
)
def test_a_request_whose_outcome_is_unknown_is_sent_again_whole(lost: ApiAnswer) -> None:
    played = Played([lost, accept(2)])
    assert write(client_of(played), A, B) == []
    assert played.sent_ids == [["a", "b"], ["a", "b"]]


def test_the_pause_is_at_min_what_the_api_asks_for() -> None:
    throttled = reject(429, [(0, "throttled", True)], retry_after=2)
    played = Played([throttled, throttled, accept(1)])
    assert write(client_of(played, random=0.5), A) == []
    assert played.naps == [2 + 0.05, 2 + 0.1]


def test_pauses_double_up_to_the_longest_where_the_api_asks_for_none() -> None:
    played = Played([ApiAnswer(502, "")] * 8 + [accept(1)])
    assert write(client_of(played, random=1.0), A) == []
    assert played.naps == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_events_that_stay_throttled_are_returned_when_the_time_is_up() -> None:
    throttled = reject(429, [(0, "throttled", True)], retry_after=4)
    played = Played([throttled] * 9)
    refused = write(client_of(played, timeout_seconds=10), A)
    assert [(each.event, each.code) for each in refused] == [(A, "throttled")]
    assert len(played.requests) == 3
    assert sum(played.naps) <= 10


def test_a_request_that_is_refused_whole_is_an_error_that_says_why() -> None:
    too_large = ApiAnswer(413, {"error": {"code": "body_too_large", "message": "send less"}})
    with pytest.raises(ApiError, match=r"body_too_large.*413.*send less"):
        write(client_of(Played([too_large])), A)


def test_pages_follow_the_cursor_to_the_end() -> None:
    played = Played(
        [
            ApiAnswer(200, {"events": [A, B], "cursor": "x"}),
            ApiAnswer(200, {"events": [], "cursor": "y"}),  # a page may be empty and not the last
            ApiAnswer(200, {"events": [C], "cursor": None}),
        ]
    )
    pages = asyncio.run(_pages(client_of(played), order="desc"))
    assert pages == [[A, B], [], [C]]
    assert [each.query.get("cursor") for each in played.requests] == [None, "x", "y"]
    assert {each.query["order"] for each in played.requests} == {"desc"}


def test_a_read_that_fails_for_a_while_goes_on_where_it_was() -> None:
    played = Played(
        [
            ApiAnswer(200, {"events": [A], "cursor": "x"}),
            ApiAnswer(503, {"error": {"code": "storage_unavailable", "message": "later"}}, 1),
            ApiAnswer(200, {"events": [B], "cursor": None}),
        ]
    )
    assert asyncio.run(_pages(client_of(played))) == [[A], [B]]
    assert [each.query.get("cursor") for each in played.requests] == [None, "x", "x"]
    assert played.naps == [1.0]


def test_a_read_that_is_wrong_is_not_tried_again() -> None:
    wrong = ApiAnswer(
        400, {"error": {"code": "invalid_query", "message": "limit: must be 1 to 1,000"}}
    )
    with pytest.raises(ApiError, match="limit: must be"):
        asyncio.run(_pages(client_of(Played([wrong]))))


def test_one_event_that_does_not_exist_is_none_and_an_unknown_path_is_an_error() -> None:
    missing = ApiAnswer(
        404, {"error": {"code": "unknown_event", "message": "there is no such event"}}
    )
    assert asyncio.run(client_of(Played([missing])).one("ORD", A["time"], "a")) is None
    unknown = ApiAnswer(404, {"error": {"code": "unknown_path", "message": "no such path"}})
    with pytest.raises(ApiError):
        asyncio.run(client_of(Played([unknown])).one("ORD", A["time"], "a"))
