"""Networks made by chance, for experiments and tests: the dissertation's random trees and chains."""

from __future__ import annotations

from collections import deque

import numpy as np

from levelwind.model import Model, Network, Operator, Port, Stream


def random_trees(
    rng: np.random.Generator,
    *,
    operators: int,
    streams: int = 5,
    cost_s: tuple[float, float] = (1e-4, 1e-3),
    selectivity: tuple[float, float] = (0.5, 1.0),
    roots: tuple[int, int] = (1, 3),
    transfer_cost_s: float = 0.0,
    row_bytes: float | None = None,
) -> Network:
    """``streams`` trees of equal size, each rooted at an input stream (seed 000, section 6.1.1).

    Breadth first, the stream and each operator get 1, 2 or 3 children with equal chance. Costs are uniform in
    ``cost_s``; half of the operators have selectivity 1, the others uniform in ``selectivity``.
    ``roots`` bounds how many operators read a stream itself, which the dissertation does not say.
    """
    boxes: dict[str, Operator] = {}
    for k in range(streams):
        size = operators // streams + (1 if k < operators % streams else 0)
        parents = deque([f"I{k + 1}"])
        room = int(rng.integers(roots[0], roots[1] + 1))  # the stream itself is the root
        for _ in range(size):
            name = f"o{len(boxes) + 1}"
            keep_all = rng.random() < 0.5
            boxes[name] = Operator(
                name=name,
                spec=Model(),
                inputs=(Port(source=parents[0]),),
                cost_s=float(rng.uniform(*cost_s)),
                selectivity=1.0 if keep_all else float(rng.uniform(*selectivity)),
                transfer_cost_s=transfer_cost_s,
                bytes=row_bytes,
            )
            parents.append(name)
            room -= 1
            if room == 0:
                parents.popleft()
                room = int(rng.integers(1, 4))
    inputs = {f"I{k + 1}": Stream(name=f"I{k + 1}", bytes=row_bytes) for k in range(streams)}
    return Network(name=f"trees-{operators}", streams=inputs, operators=boxes)


def random_chains(
    rng: np.random.Generator,
    *,
    chains: int,
    length: int,
    cost_s: tuple[float, float] = (1e-3, 1e-3),
    selectivity: tuple[float, float] = (0.8, 1.2),
) -> Network:
    """Independent chains of ``length`` operators, each fed by a stream of its own (seed 001, section 5.1.1).

    Costs and selectivities are uniform between their bounds. Operator k of chain c is named ``c3o7``.
    """
    boxes: dict[str, Operator] = {}
    for c in range(1, chains + 1):
        costs = rng.uniform(*cost_s, size=length).tolist()
        ratios = rng.uniform(*selectivity, size=length).tolist()
        for k in range(1, length + 1):
            source = f"I{c}" if k == 1 else f"c{c}o{k - 1}"
            boxes[f"c{c}o{k}"] = Operator(
                name=f"c{c}o{k}",
                spec=Model(),
                inputs=(Port(source=source),),
                cost_s=costs[k - 1],
                selectivity=ratios[k - 1],
            )
    streams = {f"I{c}": Stream(name=f"I{c}") for c in range(1, chains + 1)}
    return Network(name=f"chains-{chains}x{length}", streams=streams, operators=boxes)
