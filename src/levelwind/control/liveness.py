"""Who has been heard of, and who has been silent for too long."""

from __future__ import annotations

from collections.abc import Collection
from itertools import takewhile


class Pulse:
    """The last sign of life of every node. Times are those of the manager's events, and never go back.

    A node that was never heard of counts from when it was first expected. None for ``silent_after_s``:
    silence means nothing.
    """

    def __init__(self, silent_after_s: float | None) -> None:
        self._silent_after_s = silent_after_s
        self._heard: dict[str, float] = {}  # those heard of longest ago first
        self.unready: set[str] = set()

    def beat(self, node: str, at_s: float, *, ready: bool) -> None:
        """A node has said that it lives, and whether it can work."""
        self._heard.pop(node, None)
        self._heard[node] = at_s
        (self.unready.discard if ready else self.unready.add)(node)

    def forget(self, node: str) -> None:
        """A node is gone: when it comes back, it counts from then."""
        self._heard.pop(node, None)
        self.unready.discard(node)

    def silent(self, expected: Collection[str], now_s: float) -> list[str]:
        """Those of the expected nodes that have been silent for too long. O(those found)."""
        limit = self._silent_after_s
        if limit is None:
            return []
        if len(self._heard) < len(expected):
            for node in expected:
                self._heard.setdefault(node, now_s)
        late = takewhile(lambda item: now_s - item[1] > limit, self._heard.items())
        return [node for node, _ in late]
