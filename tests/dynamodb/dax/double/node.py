"""What a node of a DAX cluster does with the requests that Spillway's reads make of it."""

import socket
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from amazondax.AttributeValueDecoder import _decode_attribute_value
from amazondax.Constants import DaxDataRequestParam, DaxMethodIds, DaxResponseParam, Role

from spillway.dynamodb.port import Call, RefusedError, StorageError
from tests.dynamodb.dax.double.caches import AnswerCache
from tests.dynamodb.dax.double.codec import Decoder, encoded, skip
from tests.dynamodb.dax.double.conditions import KeyCondition
from tests.dynamodb.dax.double.items import Items

__all__ = ["Node"]

Request = dict[str, Any]

_SUCCESS: Final = encoded([])
_TTL: Final = 300.0
_NAMES: Final = {
    number: name[0].upper() + name.partition("_")[0][1:]
    for name, number in vars(DaxMethodIds).items()
    if name.endswith("_Id")
}
# How an error travels: a path of numbers, of which the last names DynamoDB's exception.
_ERRORS: Final = {
    "ProvisionedThroughputExceededException": 40,
    "ResourceNotFoundException": 41,
    "ValidationException": 46,
    "InternalServerErrorException": 47,
    "ThrottlingException": 50,
}


class Node:
    """Answers GetItem and Query from its caches, or by asking DynamoDB. The cluster has no other node.

    Attributes:
        calls: how often each method was called, such as `GetItem`; those it does not know included.
        items: the cache of GetItem.
        queries: the cache of Query.
        error: a code to answer every read with, None to answer properly.
    """

    def __init__(
        self, dynamodb: Call, key_names: Mapping[str, tuple[str, ...]], now: Callable[[], float]
    ) -> None:
        self._dynamodb = dynamodb
        self._travel = Items(key_names)
        self.calls: Counter[str] = Counter()
        self.items = AnswerCache(_TTL, now)
        self.queries = AnswerCache(_TTL, now)
        self.error: str | None = None

    def answer(self, decoder: Decoder, port: int) -> bytes | None:
        """Read one request and return the reply, None where it has none; ValueError for an unknown request."""
        decoder.decode_int()  # the service
        method = _NAMES[decoder.decode_int()]
        self.calls[method] += 1
        match method:
            case "AuthorizeConnection":
                skip(decoder, 5)
                return None
            case "Endpoints":
                return _SUCCESS + encoded([_endpoint(port)])
            case "DefineKeySchema":
                return _SUCCESS + encoded(self._travel.schema(_text(decoder)))
            case "DefineAttributeList":
                return _SUCCESS + encoded(self._travel.names(decoder.decode_int()))
            case "GetItem":
                return self._replied(self._get_item, decoder)
            case "Query":
                return self._replied(self._query, decoder)
        raise ValueError(f"no reader calls {method}")

    def _replied(self, operation: Callable[[Decoder], bytes], decoder: Decoder) -> bytes:
        try:
            return _SUCCESS + operation(decoder)
        except StorageError as error:
            return _failure(error.code, error.message)

    def _get_item(self, decoder: Decoder) -> bytes:
        table = _text(decoder)
        key = bytes(decoder.decode_binary())
        request: Request = {"TableName": table, "Key": self._travel.decode_key(table, key)}
        self._read_parameters(decoder, request)
        response = self.items.get((table, key), lambda: self._ask("GetItem", request))
        if "Item" not in response:
            return encoded({})
        return encoded({DaxResponseParam.Item: self._travel.encode_values(table, response["Item"])})

    def _query(self, decoder: Decoder) -> bytes:
        request: Request = {"TableName": _text(decoder)}
        request |= KeyCondition(bytes(decoder.decode_binary())).parameters()
        self._read_parameters(decoder, request)
        response = self.queries.get(repr(request), lambda: self._ask("Query", request))
        return self._page(request, response)

    def _page(self, request: Request, response: Request) -> bytes:
        table, travel = request["TableName"], self._travel
        page: dict[int, Any] = {
            DaxResponseParam.Count: response["Count"],
            DaxResponseParam.ScannedCount: response["ScannedCount"],
            DaxResponseParam.Items: [
                [travel.encode_key(table, item), travel.encode_values(table, item)]
                for item in response["Items"]
            ],
        }
        position = response.get("LastEvaluatedKey")
        if position is not None:
            page[DaxResponseParam.LastEvaluatedKey] = (
                travel.encode_index_key(position)
                if "IndexName" in request
                else travel.encode_key(table, position)
            )
        return encoded(page)

    def _ask(self, operation: str, request: Request) -> Request:
        if self.error is not None:
            raise RefusedError(self.error, "as told")
        if request.get("ConsistentRead"):
            raise ValueError("no strongly consistent reader asks DAX")
        return self._dynamodb(operation, request)

    def _read_parameters(self, decoder: Decoder, request: Request) -> None:
        if decoder.try_decode_null():
            return
        for each in decoder.decode_map_iter():
            self._read_parameter(each.decode_int(), each, request)

    def _read_parameter(self, number: int, decoder: Decoder, request: Request) -> None:
        parameter = DaxDataRequestParam
        match number:
            case parameter.ConsistentRead:
                request["ConsistentRead"] = bool(decoder.decode_object())
            case parameter.ExpressionAttributeNames | parameter.ExpressionAttributeValues:
                _forget_map(decoder, number)  # the expressions have them in place
            case parameter.Limit:
                request["Limit"] = decoder.decode_int()
            case parameter.ScanIndexForward:
                request["ScanIndexForward"] = bool(decoder.decode_int())
            case parameter.IndexName:
                request["IndexName"] = _text(decoder)
            case parameter.ExclusiveStartKey:
                request["ExclusiveStartKey"] = self._position(request, decoder)
            case parameter.ReturnConsumedCapacity:
                decoder.decode_int()  # the client always names one
            case _:
                raise ValueError(f"no reader sends parameter {number}")

    def _position(self, request: Request, decoder: Decoder) -> Request:
        content = bytes(decoder.decode_binary())
        if "IndexName" in request:
            return self._travel.decode_index_key(content)
        return self._travel.decode_key(request["TableName"], content)


def _text(decoder: Decoder) -> str:
    return bytes(decoder.decode_binary()).decode()


def _forget_map(decoder: Decoder, number: int) -> None:
    for each in decoder.decode_map_iter():
        each.decode_string()
        if number == DaxDataRequestParam.ExpressionAttributeNames:
            each.decode_string()
        else:
            _decode_attribute_value(each)


def _endpoint(port: int) -> dict[int, Any]:
    values = (1, "localhost", socket.inet_aton("127.0.0.1"), port, int(Role.LEADER), "local", 0)
    return dict(enumerate(values))


def _failure(code: str, message: str) -> bytes:
    path = [4, 37, 38, 39, _ERRORS.get(code, _ERRORS["InternalServerErrorException"])]
    return encoded(path, message, ["request-1", code, 400])
