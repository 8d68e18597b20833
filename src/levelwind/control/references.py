"""What every node cost when its operators last changed, and how long ago that was."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from levelwind.loads.arrays import Floats, Ints


class Stillness:
    """How long operators have stood where they stand, in lengths of the window that reports look back on."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._reports = 0

    def seen(self, at_s: float, window_s: float | None, samples: int, *, moved: bool) -> float | None:
        """Take a report in; ``moved``: operators have moved since the last one, or are on their way.

        1 or more: the window holds nothing from before they moved. None: they never did. Where nobody says
        how long the window is, every report counts as a sample.
        """
        self._reports += 1
        if moved:
            self._since, self._reports = at_s, 0
        if self._since is None:
            return None
        return self._reports / samples if window_s is None else (at_s - self._since) / window_s


class References:
    """Remembers, node by node, the first cost that was seen after operators came or left.

    Which operators stand on a node is told by the sum of a word for each of them: two sets that differ have
    the same sum once in 2^64.
    """

    def __init__(self) -> None:
        self.changed = False
        """Whether operators had come to any node or left it when costs were last taken in."""
        self._stood: dict[str, int] = {}
        self._cost: dict[str, float] = {}
        self._words: tuple[tuple[str, ...], Ints] = ((), np.zeros(0, dtype=np.int64))

    def seen(self, operators: tuple[str, ...], index: Ints, nodes: Sequence[str], cost: Floats) -> Floats:
        """Take the costs of a report in; the reference of every node, NaN where it never changed.

        O(operators + nodes).
        """
        stood = self._stand(operators, index, len(nodes))
        self.changed = False
        for name, now, own in zip(nodes, stood, cost.tolist(), strict=True):
            before = self._stood.get(name)
            if before is not None and before != now:
                self._cost[name], self.changed = own, True
            self._stood[name] = now
        return np.array([self._cost.get(name, np.nan) for name in nodes])

    def _stand(self, operators: tuple[str, ...], index: Ints, count: int) -> list[int]:
        if self._words[0] is not operators:
            words = b"".join(blake2b(name.encode(), digest_size=8).digest() for name in operators)
            self._words = (operators, np.frombuffer(words, dtype=np.int64))
        total = np.zeros(count, dtype=np.int64)
        with np.errstate(over="ignore"):
            np.add.at(total, index, self._words[1])
        found: list[int] = total.tolist()
        return found
