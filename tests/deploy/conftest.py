"""Stages are part of the stacks: importing them starts Node, the one that the project pins."""

import os

from stacks.interpreters import find_node

_NODE = find_node()
if _NODE is not None:
    os.environ.setdefault("JSII_NODE", str(_NODE))
