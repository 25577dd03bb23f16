import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import count

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from local.demo.client import ApiAnswer, ApiError, Transport

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def ask(handler: Handler, seconds: list[float], *, stopped: bool = False) -> ApiAnswer:
    ticks: Iterator[int] = count()

    async def send() -> ApiAnswer:
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
    assert answer == ApiAnswer(429, ["/api/v1/events", "é #", [1], "application/json"], 3.0)
    assert seconds == [1]


def test_an_answer_that_is_no_json_is_its_text() -> None:
    answer = ask(_html, [])
    assert (answer.status, answer.message, answer.code) == (502, "<h1>Bad Gateway</h1>", "http_502")
    assert answer.is_retryable


def test_a_connection_that_breaks_is_an_answer_worth_retrying_and_not_timed() -> None:
    seconds: list[float] = []
    answer = ask(_reset, seconds)
    assert (answer.status, answer.is_retryable, seconds) == (0, True, [])


def test_an_api_out_of_reach_is_an_answer_worth_retrying() -> None:
    answer = ask(_echo, [], stopped=True)
    assert (answer.status, answer.is_retryable) == (0, True)


def test_an_answer_that_is_not_the_apis_becomes_one_short_line() -> None:
    services = {f"service-{n}": "available\n" for n in range(500)}
    message = str(ApiError(ApiAnswer(502, {"services": services})))
    assert message.startswith("http_502 (status 502): {'services': ")
    assert len(message) < 600
    assert len(message.splitlines()) == 1
