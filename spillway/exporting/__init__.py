"""Exporting: all events of a range in bulk, each once, shard by shard, by blocks of shards or in turns."""
