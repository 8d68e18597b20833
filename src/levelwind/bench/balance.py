"""How fast balancing decides: planners, policies and the manager, in CPU time, compilation not counted.

The headline is the correlation planner on 10 nodes with 10 operators each, against figures 5.6 and 5.7 of
seed 000 taken literally in Python (the paper: 0.5 s; 3.4 s and 54 s for 20 and 50 nodes). All work on chains
of ten operators, one chain per node, that burst at evenly spaced times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import process_time

import numpy as np

from levelwind.balance import Situation, make_policy
from levelwind.bench.literal_correlation import Literal
from levelwind.bench.result import Figure, Result, Settings, compared
from levelwind.bench.timing import interleaved
from levelwind.control import Manager
from levelwind.control.events import StatisticsReported
from levelwind.loads.arrays import Floats, Ints, sum_by
from levelwind.model import Cluster, Model, Network, Operator
from levelwind.placement.correlation import CorrelationPlanner
from levelwind.placement.evening import sources
from levelwind.placement.spreading import Spreading
from levelwind.placement.steady import SteadyPlanner
from levelwind.placement.unit_series import unit_series

NAME = "balance"
ROUNDS, SAMPLES, CHAIN = 5, 10, 10
LIMITS_MS = {10: 10.0, 20: 30.0, 50: 200.0}
MANY_LIMIT_S, PAIR_LIMIT_MS, MANAGER_LIMIT_MS = 10.0, 1.0, 50.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large the large cases are: nodes of the planners', nodes and operators of the manager's."""

    nodes: tuple[int, ...] = (10, 20, 50)
    many: int = 1000
    managed_nodes: int = 1000
    managed_operators: int = 20_000


def run(settings: Settings, *, sizes: Sizes | None = None) -> Result:
    """Measure everything, each after a first call that compiles it."""
    sizes = sizes or Sizes()
    rounds = settings.rounds(ROUNDS)
    smallest = chains(sizes.nodes[0], settings.seed)
    settings.step(f"correlation on {sizes.nodes[0]} nodes, and print taken literally")
    taken = interleaved(
        {
            "ours": lambda: _cpu_ms(lambda: CorrelationPlanner().spread(spreading(smallest), seed=0)),
            "literal": lambda: _cpu_ms(
                lambda: Literal(smallest, np.ones(sizes.nodes[0]), _free(smallest)).distribute(0.8)
            ),
        },
        rounds,
    )
    figures = [*_planners(settings, sizes, rounds)]
    many, notes = _many(settings, sizes)
    figures += [*many, *_pairs(settings, rounds), *_manager(settings, sizes, rounds)]
    return compared(
        NAME,
        taken["ours"],
        taken["literal"],
        labels=(f"correlation, {sizes.nodes[0]} nodes", "print taken literally, in Python"),
        unit="ms",
        limit=LIMITS_MS.get(sizes.nodes[0]),
        figures=tuple(figures),
        notes=notes,
        details={"rounds_ms": taken},
    )


def _planners(settings: Settings, sizes: Sizes, rounds: int) -> list[Figure]:
    figures = []
    for count in sizes.nodes:
        whole = spreading(chains(count, settings.seed))
        for planner in (CorrelationPlanner(), SteadyPlanner()):
            settings.step(f"{planner.name} on {count} nodes")
            value = _median_ms(lambda planner=planner, whole=whole: planner.spread(whole, seed=0), rounds)  # type: ignore[misc]
            label = f"{planner.name}, {count} nodes, {CHAIN * count} operators"
            figures.append(Figure(label=label, value=value, unit="ms", limit=LIMITS_MS.get(count)))
    return figures


def _many(settings: Settings, sizes: Sizes) -> tuple[list[Figure], tuple[str, ...]]:
    """Sub-domains on many nodes, and what they lose on as many as can be planned at once."""
    series = chains(sizes.many, settings.seed)
    whole = spreading(series)
    figures = []
    for planner in (CorrelationPlanner(), SteadyPlanner()):
        settings.step(f"{planner.name} on {sizes.many} nodes")
        seconds = _cpu_ms(lambda planner=planner: planner.spread(whole, seed=0)) / 1000.0  # type: ignore[misc]
        label = f"{planner.name}, {sizes.many} nodes by sub-domains"
        figures.append(Figure(label=label, value=seconds, unit="s", limit=MANY_LIMIT_S))
    settings.step("what sub-domains lose")
    middle = max(sizes.nodes)
    series = chains(middle, settings.seed)
    whole, notes = spreading(series), []
    for at_once, parts in (
        (CorrelationPlanner(domain=middle), CorrelationPlanner(domain=max(2, middle // 5))),
        (SteadyPlanner(domain=middle), SteadyPlanner(domain=max(2, middle // 5))),
    ):
        best, worse = (
            _deviation(series, planner.spread(whole, seed=0), middle) for planner in (at_once, parts)
        )
        notes.append(
            f"{at_once.name} on {middle} nodes: mean standard deviation of node loads {best:.4f} at once, "
            f"{worse:.4f} in sub-domains of {parts.domain}"
        )
    return figures, tuple(notes)


def _pairs(settings: Settings, rounds: int) -> list[Figure]:
    """A decision for one pair of nodes, each holding a chain that bursts when the other does not."""
    figures = []
    for name in ("cor_bal", "cor_re_imp", "cor_se_imp", "steady_pairs"):
        settings.step(f"{name} on a pair")
        policy, pair = make_policy(name), situation(2 * CHAIN, 2, settings.seed)
        value = _median_ms(
            lambda policy=policy, pair=pair: policy.propose(pair, rng=np.random.default_rng(0)),  # type: ignore[misc]
            max(rounds, 20),
        )
        figures.append(Figure(label=f"{name}, one pair", value=value, unit="ms", limit=PAIR_LIMIT_MS))
    return figures


def _manager(settings: Settings, sizes: Sizes, rounds: int) -> list[Figure]:
    """A report of statistics: with loads that ask for nothing, and when every node is in danger."""
    count, nodes = sizes.managed_operators, sizes.managed_nodes
    boxes = {f"o{j}": Operator(name=f"o{j}", spec=Model(series=(0.0, 0.0))) for j in range(count)}
    placement = {name: f"n{j % nodes + 1}" for j, name in enumerate(boxes)}
    figures = []
    for label, load in (("in peace", 0.5), ("every node in danger", 0.9)):
        settings.step(f"the manager on {nodes} nodes, {label}")
        series = situation(count, nodes, settings.seed, load=load).series
        manager = Manager(
            Network(operators=boxes),
            Cluster.equal(nodes),
            placement,
            policy=make_policy("steady_pairs"),
            rng=np.random.default_rng(0),
            moved_load_budget=1.0,
        )
        event = StatisticsReported(at_s=0.0, operators=tuple(boxes), series=series)
        value = _median_ms(lambda manager=manager, event=event: manager.handle(event), rounds)  # type: ignore[misc]
        text = f"a report of {count:,} operators on {nodes:,} nodes, {label}"
        figures.append(Figure(label=text, value=value, unit="ms", limit=MANAGER_LIMIT_MS))
    return figures


def chains(nodes: int, seed: int, *, load: float = 0.9) -> Floats:
    """Load series of one chain of ten operators per node, periodic, with the noise of Poisson arrivals."""
    rng = np.random.default_rng(seed)
    phase = rng.permutation(nodes) / nodes
    wave = np.where((np.arange(SAMPLES) / SAMPLES + phase[:, None]) % 1 < 0.5, 1.6, 0.4)
    wave *= rng.poisson(90, wave.shape) / 90
    share = np.cumprod(rng.uniform(0.8, 1.2, (nodes, CHAIN)), axis=1) * rng.uniform(0.8, 1.2, (nodes, 1))
    series: Floats = (share[:, :, None] * wave[:, None, :]).reshape(nodes * CHAIN, SAMPLES)
    return series * (load * nodes / series.mean(axis=1).sum())


def spreading(series: Floats) -> Spreading:
    """The chains as planners see them."""
    known, count = unit_series(series), len(series)
    own = np.zeros((count, count // CHAIN))
    own[np.arange(count), np.arange(count) // CHAIN] = known.mean
    unseen = sources(own, unseen=SteadyPlanner().unseen, samples=SAMPLES)
    return Spreading(series=known, unseen=unseen, fixed=_free(series), cpu=np.ones(count // CHAIN))


def situation(operators: int, nodes: int, seed: int, *, load: float = 0.9) -> Situation:
    """Operators in chains of ten, each chain on one node."""
    series = chains(operators // CHAIN, seed)
    return Situation(
        series=series * (load * nodes / series.mean(axis=1).sum()),
        node=np.arange(operators) // CHAIN % nodes,
        cpu=np.ones(nodes),
        movable=np.ones(operators, dtype=bool),
        unit=np.arange(operators),
        state_bytes=np.zeros(operators),
    )


def _free(series: Floats) -> Ints:
    return np.full(len(series), -1, dtype=np.int64)


def _deviation(series: Floats, nodes: Ints, count: int) -> float:
    return float(sum_by(nodes, series, count).std(axis=1).mean())


def _cpu_ms(what: Callable[[], object]) -> float:
    started = process_time()
    what()
    return 1000.0 * (process_time() - started)


def _median_ms(what: Callable[[], object], rounds: int) -> float:
    what()
    return median(_cpu_ms(what) for _ in range(rounds))
