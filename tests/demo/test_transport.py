import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import count

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from local.demo.transport import Answer, ApiError, Transport

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def ask(handler: Handler, seconds: list[float], *, stopped: bool = False) -> Answer:
    ticks: Iterator[int] = count()

    async def send() -> Answer:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        server = TestServer(app, host="127.0.0.1")
        await server.start_server()
        url = str(server.make_url("/api"))
        if stopped:
            await server.close()
        async with aiohttp.ClientSession() as session:
            transport = Transport(
                session, url, lambda: next(ticks), lambda _, took: seconds.append(took)
            )
            answer = await transport.send("POST", "/v1/events", query={"a": "é #"}, body=[1])
        await server.close()
        return answer

    return asyncio.run(send())


async def _echo(request: web.Request) -> web.StreamResponse:
    parts = [request.path, request.query["a"], await request.json(), request.content_type]
    return web.json_response(parts, status=429, headers={"Retry-After": "3"})


async def _html(_: web.Request) -> web.StreamResponse:
    return web.Response(text="<h1>Bad Gateway</h1>", status=502)


async def _reset(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def test_an_answer_brings_status_body_and_how_long_to_wait() -> None:
    seconds: list[float] = []
    answer = ask(_echo, seconds)
    assert answer == Answer(429, ["/api/v1/events", "é #", [1], "application/json"], 3.0)
    assert seconds == [1]


def test_an_answer_that_is_no_json_is_its_text() -> None:
    answer = ask(_html, [])
    assert (answer.status, answer.message, answer.code) == (502, "<h1>Bad Gateway</h1>", "http_502")
    assert answer.retryable


def test_a_connection_that_breaks_is_an_answer_worth_retrying_and_not_timed() -> None:
    seconds: list[float] = []
    answer = ask(_reset, seconds)
    assert (answer.status, answer.retryable, seconds) == (0, True, [])


def test_an_api_out_of_reach_is_an_answer_worth_retrying() -> None:
    answer = ask(_echo, [], stopped=True)
    assert (answer.status, answer.retryable) == (0, True)


def test_an_answer_that_is_none_of_the_apis_is_told_in_one_short_line() -> None:
    services = {f"service-{n}": "available\n" for n in range(500)}
    told = str(ApiError(Answer(502, {"services": services})))
    assert told.startswith("http_502 (status 502): {'services': ")
    assert len(told) < 600
    assert len(told.splitlines()) == 1
