"""The latest image of items that were written: what a later write of the same item replaces."""

from typing import Any

from dynamoheat.items import Item

__all__ = ["ImageCache"]

Identity = tuple[str, Any]


class ImageCache:
    """Images by key, the most recently written 1 to 2 times `least`. Every operation O(1).

    A deleted item is remembered as an empty one: known to be absent.
    """

    __slots__ = ("_least", "_newer", "_older")

    def __init__(self, least: int) -> None:
        self._least = least
        self._newer: dict[Identity, Item] = {}
        self._older: dict[Identity, Item] = {}

    def __len__(self) -> int:
        return len(self._newer) + len(self._older)

    def get(self, identity: Identity) -> Item | None:
        """Return the image: an item, an empty one if known to be absent, None if not known."""
        found = self._newer.get(identity)
        return self._older.get(identity) if found is None else found

    def put(self, identity: Identity, image: Item) -> None:
        """Remember an image (empty: absent)."""
        if not self._least:
            return
        self._newer[identity] = image
        if len(self._newer) >= self._least:
            self._older, self._newer = self._newer, {}

    def forget(self, identity: Identity) -> None:
        """Say that an item may have become anything."""
        self._newer.pop(identity, None)
        self._older.pop(identity, None)
