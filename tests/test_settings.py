from typing import Any

import pytest

from spillway import Settings, ShardingMode


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"shards": 3}, "power of two"),
        ({"shards": 0}, "1 to 256"),
        ({"shards": 512}, "1 to 256"),
        ({"index_shards": 6}, "power of two"),
        ({"index_shards": 6, "mode": ShardingMode.RANDOM}, "power of two"),
        ({"shards": 257, "mode": ShardingMode.RANDOM}, "1 to 256"),
        ({"future_skew": 591}, "future_skew"),
        ({"horizon": 300}, "future_skew"),
    ],
)
def test_settings_that_would_lose_or_starve_events_are_refused(
    fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        Settings(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"shards": 256},
        {"shards": 3, "mode": ShardingMode.RANDOM},
        {"shards": 1, "index_shards": 256},
    ],
)
def test_counts_up_to_256_are_taken(fields: dict[str, Any]) -> None:
    assert Settings(**fields).shards == fields["shards"]
