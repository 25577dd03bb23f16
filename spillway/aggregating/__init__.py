"""Aggregates: what a field's numbers come to, interval by interval, from one pass over a range."""
