import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from dynamoheat.serve import LOOPBACK
from dynamoheat.serve.engine import EngineConnectionPool
from dynamoheat.serve.wire import EndpointCall, Reply
from local.children import free_port

CALL = EndpointCall("GetItem", b'{"TableName": "T"}', {"X-Amz-Target": "DynamoDB_20120810.GetItem"})
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\ncontent-length: 2\r\n\r\nok"

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(handler: Handler, port: int = 0) -> AsyncGenerator[int]:
    server = await asyncio.start_server(handler, LOOPBACK, port)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    return head + await reader.readexactly(len(CALL.body))


def test_a_reply_in_single_bytes_arrives_whole() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        for byte in ANSWER:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()

    async def scenario() -> Reply:
        async with listening(drip) as port:
            return await EngineConnectionPool(LOOPBACK, port).send(CALL)

    assert asyncio.run(scenario()) == Reply(200, b"ok", {"Content-Type": "text/plain"})


def test_a_connection_serves_one_call_after_another() -> None:
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        for _ in range(3):
            await read_request(reader)
            writer.write(ANSWER)
        writer.close()

    async def scenario() -> list[int]:
        async with listening(answer) as port:
            link = EngineConnectionPool(LOOPBACK, port)
            return [(await link.send(CALL)).status for _ in range(3)]

    assert asyncio.run(scenario()) == [200, 200, 200]
    assert connections == 1


def test_a_call_that_the_engine_dies_on_may_be_retried() -> None:
    async def die(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(ANSWER[:30])
        writer.transport.abort()

    async def scenario() -> Reply:
        async with listening(die) as port:
            return await EngineConnectionPool(LOOPBACK, port).send(CALL)

    reply = asyncio.run(scenario())
    assert reply.status == 500
    assert b"InternalServerError" in reply.body


def test_a_call_waits_for_an_engine_that_starts() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    async def scenario() -> Reply:
        port = free_port()
        waiting = asyncio.create_task(EngineConnectionPool(LOOPBACK, port).send(CALL))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        async with listening(answer, port):
            return await waiting

    assert asyncio.run(scenario()).status == 200


def test_a_call_gives_up_on_an_engine_that_stays_away() -> None:
    reply = asyncio.run(EngineConnectionPool(LOOPBACK, free_port(), connect_seconds=0.1).send(CALL))
    assert reply.status == 503


def test_a_cancelled_calls_connection_is_closed_and_not_used_again() -> None:
    asked = 0
    closed = False

    async def slow_at_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked, closed
        asked += 1
        await read_request(reader)
        if asked > 1:
            writer.write(ANSWER)
            await writer.drain()
        else:
            closed = await reader.read() == b""
        writer.close()

    async def scenario() -> Reply:
        async with listening(slow_at_first) as port:
            link = EngineConnectionPool(LOOPBACK, port)
            abandoned = asyncio.create_task(link.send(CALL))
            await asyncio.sleep(0.1)
            abandoned.cancel()
            return await link.send(CALL)

    assert asyncio.run(scenario()).status == 200
    assert closed
