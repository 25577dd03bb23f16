"""The HTTP API: its types, how requests are read and how answers are written."""
