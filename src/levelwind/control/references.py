"""What every node cost when its operators last changed."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from levelwind.loads.arrays import Floats, Ints


class References:
    """Remembers, node by node, the first cost that was seen after operators came or left.

    Which operators stand on a node is told by the sum of a word for each of them: two sets that differ have
    the same sum once in 2^64.
    """

    def __init__(self) -> None:
        self.still: int | None = None
        """Reports since operators last came to any node or left it; None if they never did."""
        self._stood: dict[str, int] = {}
        self._cost: dict[str, float] = {}
        self._words: tuple[tuple[str, ...], Ints] = ((), np.zeros(0, dtype=np.int64))

    def seen(self, operators: tuple[str, ...], index: Ints, nodes: Sequence[str], cost: Floats) -> Floats:
        """Take the costs of a report in; the reference of every node, NaN where it never changed.

        O(operators + nodes).
        """
        stood = self._stand(operators, index, len(nodes))
        self.still = None if self.still is None else self.still + 1
        for name, now, own in zip(nodes, stood, cost.tolist(), strict=True):
            before = self._stood.get(name)
            if before is not None and before != now:
                self._cost[name], self.still = own, 0
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
