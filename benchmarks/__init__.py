"""Side-by-side measurements against named peers: one run, one engine, the same work."""
