"""CBOR as DAX speaks it, by the codec of DAX's own client."""

import socket
from collections.abc import Iterable
from typing import Any

from amazondax.CborDecoder import NoMoreData
from amazondax.CborEncoder import CborEncoder
from amazondax.DaxCborDecoder import DaxCborDecoder

__all__ = ["Decoder", "Encoder", "NoMoreData", "decode_bytes", "decode_socket", "encoded", "skip"]

Decoder = Any  # the client has no types
Encoder = Any


def decode_socket(connection: socket.socket) -> Decoder:
    """Return a decoder of what arrives on a connection; NoMoreData at its end."""

    def more(buffer: bytearray, _wanted: int) -> int:
        arrived = connection.recv(65_536)
        buffer.extend(arrived)
        return len(arrived)

    return DaxCborDecoder(more)


def decode_bytes(content: bytes) -> Decoder:
    """Return a decoder of bytes that are all there."""
    left = bytearray(content)

    def more(buffer: bytearray, _wanted: int) -> int:
        count = len(left)
        buffer.extend(left)
        left.clear()
        return count

    return DaxCborDecoder(more)


def encoded(*parts: Any) -> bytes:
    """Return plain values one after the other: numbers, text, bytes, lists, dictionaries, None."""
    encoder = CborEncoder()
    for part in parts:
        _append(encoder, part)
    return bytes(encoder.as_bytes())


def skip(decoder: Decoder, count: int) -> None:
    """Read some values and forget them."""
    for _ in range(count):
        decoder.decode_object()


def _append(encoder: Encoder, value: Any) -> None:
    match value:
        case None:
            encoder.append_null()
        case bool():
            encoder.append_boolean(value)
        case int():
            encoder.append_int(value)
        case str():
            encoder.append_string(value)
        case bytes():
            encoder.append_binary(value)
        case dict():
            encoder.append_map_header(len(value))
            _append_all(encoder, (each for pair in value.items() for each in pair))
        case list():
            encoder.append_array_header(len(value))
            _append_all(encoder, value)
        case _:
            raise TypeError(value)


def _append_all(encoder: Encoder, values: Iterable[Any]) -> None:
    for value in values:
        _append(encoder, value)
