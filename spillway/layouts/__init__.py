"""Layouts: the shard counts of a series, their epochs, and where they are kept."""
