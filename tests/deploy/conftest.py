"""Stages are part of the stacks: importing them starts Node, the one that the project pins."""

from toolchain.node import use_pinned_node

use_pinned_node()
