"""One soak: a local cloud with faults, seven processes on it, its engine killed once, and a verdict on what they logged."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event as Signal
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import boto3
import msgspec

from dynamoheat.serve.options import HeatOptions
from local.children import Child, last_lines, spawn, stop
from local.cloud import Cloud, running
from local.state import ROOT
from spillway import Runtime, keys
from tests.soak.journal import Journal, entries
from tests.soak.process import read_range
from tests.soak.verdict import Verdict, judge
from tests.soak.world import SERIES, Orders, Process
from tests.support.engine_tables import create_tables

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["FAULTS", "SoakFailedError", "Soaked", "soak"]

FAULTS: Final = (
    "*:500:0.003",
    "*:503:0.003",
    "*:throttle:0.003",
    "*:latency:30ms:0.05",
    "*:reset-before:0.003",
    "*:reset-after:0.003",
    "*:lost-reply:0.001",
    "BatchWriteItem:500:0.03",
    "BatchWriteItem:throttle:0.03",
    "BatchWriteItem:latency:1500ms:0.02",  # the write lands after its writer has given up
    "BatchWriteItem:reset-before:0.03",
    "BatchWriteItem:reset-after:0.03",
    "BatchWriteItem:lost-reply:0.02",
    "UpdateItem:500:0.03",
    "UpdateItem:reset-after:0.05",
    "UpdateItem:lost-reply:0.02",
)
_NAMES: Final = (*(f"writer-{n}" for n in range(4)), "reader-0", "reader-1", "operator")
_PARTITION_WCU: Final = 20.0  # low enough that series throttle by themselves, too
_READY_SECONDS: Final = 600.0
_POLL: Final = 0.05  # seconds


class SoakFailedError(Exception):
    """The soak could not be run to its end; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Soaked:
    """What a soak did and saw.

    Attributes:
        injected: faults by kind, as the endpoint counted them.
        throttled: items of the main table that the model of partitions itself refused.
        engine_restarts: engines that took over from one that was killed.
        layout_versions: changes of all layouts, by whomever: set, grown, closed, lowered.
        copies: items of the main table beyond one an event.
    """

    verdict: Verdict
    injected: Counter[str]
    throttled: int
    engine_restarts: int
    layout_versions: int
    copies: int

    @property
    def lacking(self) -> list[str]:
        """What did not happen, without which the verdict says little."""
        kinds = {kind for kind in map(_kind, FAULTS) if not self.injected[kind]}
        happened = {
            "events were acknowledged": self.verdict.acknowledged,
            "events were read": self.verdict.events_checked,
            "ranges were read": self.verdict.reads["range"],
            "layouts changed": self.verdict.layouts_set,
            "engine was killed": self.engine_restarts,
        }
        return [f"no {what}" for what, times in happened.items() if not times] + [
            f"no fault of kind {kind}" for kind in sorted(kinds)
        ]


def soak(seconds: float, seed: int) -> Soaked:
    """Run the processes for so long, then read everything once more and judge.

    Raises:
        SoakFailedError: A process failed.
        LocalCloudError: The cloud does not start.
    """
    heat = HeatOptions(partition_wcu=_PARTITION_WCU, seed=seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="spillway-soak-")))
        cloud = stack.enter_context(running(deploys=False, heat=heat))
        client: DynamoDBClient = boto3.client("dynamodb", **cloud.client_settings())
        stack.callback(client.close)
        return _Soak(cloud, client, folder, seed).run(seconds)


class _Soak:
    def __init__(self, cloud: Cloud, client: "DynamoDBClient", folder: Path, seed: int) -> None:
        self._cloud = cloud
        self._client = client
        self._folder = folder
        self._seed = seed
        self._table, self._layouts = create_tables(client, "soak")

    def run(self, seconds: float) -> Soaked:
        self._ask("PUT", "/heat/faults", list(FAULTS))
        restarts = self._load(seconds)
        injected = self._ask("GET", "/heat/faults")["injected"]
        throttled = self._ask("GET", "/heat")["tables"][self._table]["throttled"]
        self._ask("PUT", "/heat/faults", [])
        versions = self._read_all()
        paths = self._folder.glob("*.jsonl")
        verdict = judge({path.stem: entries(path) for path in sorted(paths)})
        stored = list(self._stored())
        by_kind: Counter[str] = Counter()
        for text, times in injected.items():
            by_kind[_kind(text)] += times
        return Soaked(
            verdict=verdict,
            injected=by_kind,
            throttled=round(sum(throttled.values())),
            engine_restarts=restarts,
            layout_versions=versions,
            copies=len(stored) - len(set(stored)),
        )

    def _load(self, seconds: float) -> int:
        """Run all processes at the same time and kill the engine in the middle; return how many took over."""
        with ExitStack() as stack:
            children = {}
            for number, name in enumerate(_NAMES):
                child = spawn(self._command(name, number), log=self._log(name), cwd=ROOT)
                stack.callback(stop, child)
                children[name] = child
            self._wait_until_ready(children)
            until = monotonic() + seconds
            temporary = self._folder / "until.new"
            temporary.write_text(str(until))
            temporary.replace(self._folder / "until")
            Signal().wait(seconds / 2)
            restarts = self._kill_engine()
            for name, child in children.items():
                self._wait_for_end(name, child, until + 600)
        return restarts

    def _command(self, name: str, number: int) -> list[str]:
        told = msgspec.json.encode(self._orders(name, self._seed * 100 + number)).decode()
        return [sys.executable, "-m", "tests.soak.process", told]

    def _orders(self, name: str, seed: int) -> Orders:
        return Orders(
            endpoint_url=self._cloud.endpoint_url,
            table=self._table,
            layouts=self._layouts,
            folder=str(self._folder),
            name=name,
            seed=seed,
        )

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _wait_until_ready(self, children: dict[str, Child]) -> None:
        deadline = monotonic() + _READY_SECONDS
        missing = set(children)
        while missing:
            missing = {name for name in missing if not (self._folder / f"{name}.jsonl").exists()}
            for name in missing:
                if children[name].poll() is not None or monotonic() > deadline:
                    raise SoakFailedError(f"{name} does not start: {last_lines(self._log(name))}")
            Signal().wait(_POLL)

    def _kill_engine(self) -> int:
        killed = self._cloud.engine_pid
        os.kill(killed, signal.SIGKILL)
        for _ in range(round(_READY_SECONDS / _POLL)):
            if self._cloud.engine_pid != killed:
                return 1
            Signal().wait(_POLL)
        return 0

    def _wait_for_end(self, name: str, child: Child, deadline: float) -> None:
        try:
            status = child.wait(max(0.0, deadline - monotonic()))
        except subprocess.TimeoutExpired:
            raise SoakFailedError(f"{name} does not end.") from None
        if status != 0:
            raise SoakFailedError(f"{name} failed: {last_lines(self._log(name), 20)}")

    def _read_all(self) -> int:
        """Read every series whole, from both ends and from the index, now that all is quiet; return the versions."""
        orders = self._orders("end", self._seed * 100 + 99)
        versions = 0
        with Journal(orders.journal(orders.name)) as journal:
            process = Process(orders, self._client, journal)
            now = datetime.fromtimestamp(Runtime().now(), UTC)
            start, end = now - timedelta(hours=3), now + timedelta(minutes=1)
            for series in SERIES:
                for order, source in (("asc", "table"), ("desc", "table"), ("asc", "index")):
                    read_range(process, series, start, end, limit=1_000, order=order, source=source)
                layout = process.store(series).layout(series)
                versions += layout.version if layout else 0
        return versions

    def _stored(self) -> Iterator[tuple[str, str]]:
        """Yield the identity of every item in the main table."""
        pages = self._client.get_paginator("scan").paginate(
            TableName=self._table, ConsistentRead=True
        )
        for page in pages:
            for item in page["Items"]:
                key, sort_key = item[keys.PARTITION_KEY]["S"], item[keys.SORT_KEY]["S"]
                yield keys.parse_partition_key(key).series, sort_key

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        connection = HTTPConnection(urlsplit(self._cloud.endpoint_url).netloc, timeout=200)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


def _kind(fault: str) -> str:
    return fault.split(":")[1]
