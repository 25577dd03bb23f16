"""The layout table's item: what people and older tools read, and what the protocol works on."""

from typing import Any, Final

from spillway.dynamodb.port import Item
from spillway.keys import LAYOUT_INDEX_KEY, LAYOUT_KEY, TimeBucket
from spillway.layouts.model import OPEN, START, Epoch, GrowthStop, Layout, LayoutDecision
from spillway.sharding import ShardingMode

__all__ = ["SHARDED", "STOP", "decode_layout", "encode_layout", "encode_stop", "history_entry"]

STOP: Final = "growth_stopped"
SHARDED: Final = "yes"  # the one key of the sparse index


def history_entry(seconds: float, shards: int) -> str:
    """Return an entry of `shard_history`: `{epoch seconds}:{count}`."""
    return f"{seconds:.3f}:{shards}"


def encode_layout(layout: Layout) -> Item:
    """Return the item of a layout.

    `sharded`, the key of the sparse index, only for more than one shard.
    """
    current = layout.current
    item: Item = {
        LAYOUT_KEY: {"S": layout.series},
        "number_of_shards": {"N": str(current.shards)},
        "index_shards": {"N": str(current.index_shards)},
        "last_updated": {"N": f"{layout.last_updated:.3f}"},
        "version": {"N": str(layout.version)},
        "epochs": {"L": [{"M": _encode_epoch(epoch)} for epoch in layout.epochs]},
    }
    if layout.history:
        item["shard_history"] = {"SS": list(layout.history)}
    if layout.decisions:
        item["decisions"] = {"L": [{"M": _encode_decision(each)} for each in layout.decisions]}
    if max(current.shards, current.index_shards) > 1:
        item[LAYOUT_INDEX_KEY] = {"S": SHARDED}
    return item


def decode_layout(item: Item) -> Layout:
    """Read a layout item; KeyError or ValueError where it is not one of Spillway's."""
    epochs = tuple(_decode_epoch(each["M"]) for each in item["epochs"]["L"])
    if not epochs:
        raise ValueError("it has no epochs")
    return Layout(
        series=item[LAYOUT_KEY]["S"],
        version=int(item["version"]["N"]),
        last_updated=float(item["last_updated"]["N"]),
        epochs=epochs,
        history=tuple(sorted(item.get("shard_history", {}).get("SS", ()))),
        stop=_decode_stop(item),
        decisions=tuple(
            _decode_decision(each["M"]) for each in item.get("decisions", {}).get("L", ())
        ),
    )


def encode_stop(stop: GrowthStop) -> dict[str, Any]:
    """Return the attribute `growth_stopped`."""
    fields: Item = {"reason": {"S": stop.reason}, "at": {"N": f"{stop.at:.3f}"}}
    if stop.hot_sharding_keys:
        fields["hot_sharding_keys"] = {"L": [{"S": key} for key in stop.hot_sharding_keys]}
    return {"M": fields}


def _decode_stop(item: Item) -> GrowthStop | None:
    fields = item.get(STOP, {}).get("M")
    if fields is None:
        return None
    keys = fields.get("hot_sharding_keys", {}).get("L", ())
    return GrowthStop(
        reason=fields["reason"]["S"],
        at=float(fields["at"]["N"]),
        hot_sharding_keys=tuple(key["S"] for key in keys),
    )


def _encode_decision(decision: LayoutDecision) -> Item:
    fields: Item = {
        "at": {"N": f"{decision.at:.3f}"},
        "from": {"S": _counts(decision.before)},
        "to": {"S": _counts(decision.after)},
        "why": {"S": decision.why},
    }
    if decision.evidence:
        fields["evidence"] = {"S": decision.evidence}
    return fields


def _decode_decision(fields: dict[str, Any]) -> LayoutDecision:
    return LayoutDecision(
        at=float(fields["at"]["N"]),
        before=_parse_counts(fields["from"]["S"]),
        after=_parse_counts(fields["to"]["S"]),
        why=fields["why"]["S"],
        evidence=fields["evidence"]["S"] if "evidence" in fields else "",
    )


def _counts(counts: tuple[int, int]) -> str:
    """Return counts in short, shards and index shards: `8/4`."""
    return f"{counts[0]}/{counts[1]}"


def _parse_counts(text: str) -> tuple[int, int]:
    shards, _, index_shards = text.partition("/")
    return int(shards), int(index_shards)


def _encode_epoch(epoch: Epoch) -> Item:
    item: Item = {
        "id": {"N": str(epoch.id)},
        "shards": {"N": str(epoch.shards)},
        "index_shards": {"N": str(epoch.index_shards)},
        "mode": {"S": epoch.mode.value},
        "bucket": {"S": epoch.bucket.value},
        "horizon": {"N": str(epoch.horizon)},
    }
    if epoch.low != START:
        item["low"] = {"S": epoch.low}
    if epoch.close != OPEN:
        item["close"] = {"S": epoch.close}
    if epoch.earlier_shards:
        item["earlier_shards"] = {"L": [{"N": str(count)} for count in epoch.earlier_shards]}
    return item


def _decode_epoch(fields: dict[str, Any]) -> Epoch:
    return Epoch(
        id=int(fields["id"]["N"]),
        shards=int(fields["shards"]["N"]),
        index_shards=int(fields["index_shards"]["N"]),
        mode=ShardingMode(fields["mode"]["S"]),
        bucket=TimeBucket(fields["bucket"]["S"]),
        low=fields["low"]["S"] if "low" in fields else START,
        horizon=float(fields["horizon"]["N"]),
        close=fields["close"]["S"] if "close" in fields else OPEN,
        earlier_shards=tuple(
            int(each["N"]) for each in fields.get("earlier_shards", {}).get("L", ())
        ),
    )
