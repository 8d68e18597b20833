"""The four query plans of seed 003, written out: binary trees of joins with single-stream operators between.

The paper shows its plans as pictures only. These have its numbers of operators, streams and outputs, its
depth and its breadth: 5 operators (depth 5, breadth 1), 20 (9, 6), 40 (14, 8) and 80 (14, 16). A join puts
out two rows for each row that it takes in, in the mean: keys are drawn from as many values as make it so.
Every other operator puts out what it takes in.
"""

from __future__ import annotations

from typing import Any

SIZES = {1: 5, 2: 20, 3: 40, 4: 80}
# Numbers in the streams; keys are these modulo what makes two rows out of one.
KEYS = 1_000_000
COST_S, PAIR_COST_S = 1e-6, 2e-6
ROW_BYTES = 24


class _Builder:
    """A plan on its way: operators in the order of the data, and the rate of each."""

    def __init__(self, rate: float, window_s: float, batch_s: float) -> None:
        self.rate, self.window_s, self.batch_s = rate, window_s, batch_s
        self.streams: dict[str, Any] = {}
        self.operators: list[dict[str, Any]] = []
        self.rates: dict[str, float] = {}

    def stream(self) -> str:
        name = f"s{len(self.streams) + 1}"
        self.streams[name] = {
            "schema": {"ts": "timestamp", "x": "long"},
            "time": "ts",
            "rate": self.rate,
            "bytes": ROW_BYTES,
            "source": {
                "format": "generator",
                "shape": "steady",
                "rate": self.rate,
                "speed": "max",
                "batch": f"{self.batch_s:g}s",
                "seed": len(self.streams) + 1,
                "columns": {"x": {"kind": "uniform", "low": 0, "high": KEYS - 1}},
            },
        }
        self.rates[name] = self.rate
        return name

    def single(self, source: str, count: int = 1) -> str:
        """Filters that let everything through."""
        for _ in range(count):
            name = f"f{len(self.operators) + 1}"
            self._add(name, "filter", source, self.rates[source], input=source, where="x >= 0", selectivity=1)
            source = name
        return source

    def join(self, left: str, right: str) -> str:
        """Two rows out per row in; a map cuts the pair down to one number again."""
        ours, theirs = self.rates[left], self.rates[right]
        values = max(1, round(self.window_s * ours * theirs / (ours + theirs)))
        for side in (left, right):
            self._give_key(side, values)
        name = f"j{len(self.operators) + 1}"
        self._add(
            name,
            "join",
            left,
            2 * (ours + theirs),
            inputs=[left, right],
            within=f"{self.window_s:g}s",
            where=f"{left}.k = {right}.k",
            cost=PAIR_COST_S / values,
            selectivity=1.0 / values,
        )
        slim = f"m{len(self.operators) + 1}"
        self._add(slim, "map", name, self.rates[name], input=name, select={"x": f"{left}.x"}, selectivity=1)
        return slim

    def _give_key(self, name: str, values: int) -> None:
        """What a join reads has the join's key: of so many values, all as likely."""
        if name in self.streams:
            stream = self.streams[name]
            stream["schema"]["k"] = "long"
            stream["source"]["columns"]["k"] = {"kind": "uniform", "low": 0, "high": values - 1}
            return
        operator = next(each for each in self.operators if each["name"] == name)
        if operator["kind"] == "filter":
            del operator["where"]
            operator.update(kind="map", select={"x": "x"})
        operator["select"]["k"] = f"{operator['select']['x']} % {values}"

    def _add(self, name: str, kind: str, source: str, rate: float, **keys: Any) -> None:
        self.rates[name] = rate
        self.operators.append({"name": name, "kind": kind, "cost": COST_S, "bytes": ROW_BYTES, **keys})


def query_plan(
    number: int,
    *,
    rate: float,
    window_s: float = 10.0,
    batch_s: float = 1.0,
    duration_s: float | None = None,
) -> Any:
    """A plan as a network file's mapping.

    Parameters
    ----------
    number
        1 to 4; 0 is the five single-stream operators of figure 5.4.
    rate
        Rows per second of every stream.
    batch_s
        Seconds of stream in a batch.
    duration_s
        Where the streams end; None: never.
    """
    made = _Builder(rate, window_s, batch_s)
    if number == 0:
        roots = [made.single(made.stream(), 5)]
    elif number == 1:
        first = made.single(made.stream())
        roots = [made.join(made.join(first, made.stream()), made.stream())]
    elif number == 2:
        roots = [_twenty(made)]
    else:
        roots = [_forty(made) for _ in range(number - 2)]
    if duration_s is not None:
        for stream in made.streams.values():
            stream["source"]["duration"] = f"{duration_s:g}s"
    return {
        "name": f"plan{number}",
        "hops": "next",
        "streams": made.streams,
        "operators": made.operators,
        "outputs": {f"out{k + 1}": {"input": root} for k, root in enumerate(roots)},
    }


def side_by_side(count: int, rate: float, *, batch_s: float = 1.0) -> Any:
    """So many plans of one operator, each with a stream and an output of its own."""
    made = _Builder(rate, 10.0, batch_s)
    roots = [made.single(made.stream()) for _ in range(count)]
    return {
        "name": f"side_by_side_{count}",
        "hops": "next",
        "streams": made.streams,
        "operators": made.operators,
        "outputs": {f"out{k + 1}": {"input": root} for k, root in enumerate(roots)},
    }


def _twenty(made: _Builder) -> str:
    """Six streams, five joins on three levels."""
    leaves = [made.single(made.stream()) for _ in range(6)]
    pairs = [made.join(leaves[k], leaves[k + 1]) for k in (0, 2, 4)]
    upper = made.join(made.join(pairs[0], pairs[1]), made.single(pairs[2], 2))
    return made.single(upper, 2)


def _forty(made: _Builder) -> str:
    """Eight streams, seven joins on three levels."""
    leaves = [made.single(made.stream(), 2) for _ in range(8)]
    pairs = [made.single(made.join(leaves[k], leaves[k + 1]), 2 if k in (0, 4) else 1) for k in (0, 2, 4, 6)]
    fours = [made.join(pairs[0], pairs[1]), made.join(pairs[2], pairs[3])]
    return made.single(made.join(*fours), 4)


def depth_of(document: Any) -> int:
    """Operators on the longest path."""
    depth: dict[str, int] = {}
    for operator in document["operators"]:
        sources = operator.get("inputs") or [operator["input"]]
        depth[operator["name"]] = 1 + max(depth.get(source, 0) for source in sources)
    return max(depth.values())
