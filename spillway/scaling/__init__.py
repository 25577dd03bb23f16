"""Scaling: how many shards a series' traffic needs, and when its layout changes."""
