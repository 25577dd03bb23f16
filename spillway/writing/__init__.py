"""Writing: from events to stored items, with one outcome an event."""
