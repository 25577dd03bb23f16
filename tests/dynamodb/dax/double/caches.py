"""What a node remembers: answers, for a time. Misses are answers too."""

import threading
from collections.abc import Callable, Hashable
from typing import Any

__all__ = ["AnswerCache"]

Response = dict[str, Any]


class AnswerCache:
    """Answers by request, each kept for `ttl` seconds of the clock; thread-safe.

    Attributes:
        hits: answers that were given from memory.
    """

    def __init__(self, ttl: float, now: Callable[[], float]) -> None:
        self._ttl = ttl
        self._now = now
        self._answers: dict[Hashable, tuple[float, Response]] = {}
        self._lock = threading.Lock()
        self.hits = 0

    def get(self, request: Hashable, fetch: Callable[[], Response]) -> Response:
        """Return the answer to a request, fetched if none is remembered."""
        with self._lock:
            kept = self._answers.get(request)
            if kept is not None and self._now() < kept[0]:
                self.hits += 1
                return kept[1]
        answer = fetch()
        with self._lock:
            self._answers[request] = (self._now() + self._ttl, answer)
        return answer
