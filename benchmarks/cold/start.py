"""A fresh interpreter's part of the measurement: import a handler, call it once, print the milliseconds of both.

Run by path, under `-I -S`, with nothing but the bundle to import from:
`start.py BUNDLE MODULE EVENT`; MODULE `bare` is a handler that does with boto3 what every function must: make a
client, and ask DynamoDB once.
"""

from __future__ import annotations  # `typing` is part of what is measured

import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BEGAN = time.perf_counter()


def main(bundle: str, module: str, event: str) -> None:
    """Import, call, print."""
    sys.path.insert(0, bundle)
    handler = _bare_handler() if module == "bare" else _handler(module)
    imported = time.perf_counter()
    answer = handler(_parsed(event), _LambdaContext())
    called = time.perf_counter()
    if answer is not None and answer.get("statusCode", 200) != 200:
        sys.exit(str(answer))
    print(f"\n{(imported - _BEGAN) * 1_000:.2f} {(called - imported) * 1_000:.2f}")


def _handler(module: str) -> Any:
    import importlib  # noqa: PLC0415

    return importlib.import_module(module).handler


def _bare_handler() -> Any:
    import boto3  # noqa: PLC0415

    client = boto3.client("dynamodb")

    def handler(event: Any, context: object) -> Any:
        del context
        return client.get_item(TableName=event["table"], Key={"series": {"S": "ORD"}})["Item"]

    return handler


def _parsed(event: str) -> Any:
    import json  # noqa: PLC0415  Lambda's runtime has it anyway

    return json.loads(event)


class _LambdaContext:
    """What handlers ask their context for."""

    function_name = "function"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:eu-central-1:123456789012:function:function"
    aws_request_id = "00000000-0000-0000-0000-000000000000"

    def get_remaining_time_in_millis(self) -> int:
        return 29_000


if __name__ == "__main__":
    main(*sys.argv[1:])
