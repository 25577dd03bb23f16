"""Reading: ordered pages over all shards that may hold a range."""
