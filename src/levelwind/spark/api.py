"""``levelwind.run``: a network on Spark, from Python."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from numpy.random import default_rng
from pyspark.sql import DataFrame, SparkSession

from levelwind.balance.protocol import Policy
from levelwind.balance.redistribution import remarks_of
from levelwind.balance.registry import make_policy
from levelwind.control import TopManager
from levelwind.control.allotment import tiered_plan
from levelwind.control.gathering import gathered
from levelwind.errors import InputError, Problem, RunError, input_error
from levelwind.model import Cluster, Network, Plan, PlanStatus
from levelwind.planning import plan as make_plan
from levelwind.rewrite import Shared, share, split
from levelwind.runtime.changes import continued
from levelwind.runtime.commits import Commit, read_commit, steps_of
from levelwind.runtime.compatibility import check_commit
from levelwind.runtime.coordinator import Step
from levelwind.runtime.inheriting import gone_on_from, inherited_from, origins, taken_over
from levelwind.runtime.managing import Balancing
from levelwind.runtime.program import Layout
from levelwind.runtime.rundir import RunDirectory
from levelwind.runtime.stand_ins import with_stand_ins
from levelwind.spark.checks import check_network, default_cluster
from levelwind.spark.live import Run, ScriptedMove

__all__ = ["Run", "ScriptedMove", "prepare", "run"]
SHOWN_SHARED = 5


def run(
    network: Network,
    cluster: Cluster | int | None = None,
    *,
    spark: SparkSession | None = None,
    sources: Mapping[str, DataFrame] | None = None,
    planner: str = "rod",
    options: Mapping[str, Any] | None = None,
    placement: Mapping[str, str] | Plan | None = None,
    master: str = "local[*]",
    settings: Mapping[str, str] | None = None,
    checkpoint: str | Path | None = None,
    run_dir: str | Path | None = None,
    moves: Sequence[ScriptedMove] = (),
    policy: str | Policy | None = None,
    period_s: float = 1.0,
    moved_load_budget: float | None = None,
    groups: str | None = None,
    until_idle: bool = False,
    reuse: bool = True,
    on_step: Callable[[Step], None] | None = None,
    seed: int = 0,
) -> Run:
    """Run a network on Spark.

    Parameters
    ----------
    cluster
        The nodes, or how many; as many as there are cores if nothing is said.
    spark, sources
        The user's session, and streaming DataFrames in the place of streams' sources.
    planner, options, placement
        Who decides where operators stand, or where they stand.
    checkpoint, run_dir
        Where a restart goes on from; where statistics, logs and outputs without a sink go.
    moves
        Moves at stated steps.
    policy, period_s, moved_load_budget
        Who proposes moves while it runs, by name or made by `levelwind.balance.make_policy`; how long a
        sample of load is, after each of which it is asked; the most mean load that may move per period.
    groups
        Property of nodes: those with the same value form a group with a manager of its own, and no query
        stands in two groups.
    until_idle
        Stop at the sources' end as of now and put out all that is open. The call returns when that is done.
    reuse
        Compute equal operators over equal inputs once. Those with ``reusable: false`` are left alone, and
        so are those that ``placement`` puts on different nodes, and all with ``groups``, where each query
        must be able to move by itself.
    on_step
        Called after each step.
    """
    begun = prepare(
        network,
        cluster,
        spark=spark,
        sources=sources,
        planner=planner,
        options=options,
        placement=placement,
        master=master,
        settings=settings,
        checkpoint=checkpoint,
        run_dir=run_dir,
        moves=moves,
        policy=policy,
        period_s=period_s,
        moved_load_budget=moved_load_budget,
        groups=groups,
        until_idle=until_idle,
        reuse=reuse,
        on_step=on_step,
        seed=seed,
    )
    begun.start()
    if until_idle:
        begun.wait()
    return begun


def prepare(
    network: Network,
    cluster: Cluster | int | None = None,
    *,
    spark: SparkSession | None = None,
    sources: Mapping[str, DataFrame] | None = None,
    planner: str = "rod",
    options: Mapping[str, Any] | None = None,
    placement: Mapping[str, str] | Plan | None = None,
    master: str = "local[*]",
    settings: Mapping[str, str] | None = None,
    checkpoint: str | Path | None = None,
    run_dir: str | Path | None = None,
    moves: Sequence[ScriptedMove] = (),
    policy: str | Policy | None = None,
    period_s: float = 1.0,
    moved_load_budget: float | None = None,
    groups: str | None = None,
    until_idle: bool = False,
    reuse: bool = True,
    on_step: Callable[[Step], None] | None = None,
    seed: int = 0,
) -> Run:
    """A run that has not begun, with everything checked: nothing is started or written before its `start`.

    Takes what `run` takes.
    """
    nodes = default_cluster(cluster, master)
    as_run, made_up = with_stand_ins(network, sources or {})
    if run_dir is None:
        run_dir = Path(tempfile.gettempdir(), f"levelwind-{uuid4().hex[:12]}")
    at = Path(run_dir).absolute()
    where = Path(checkpoint).absolute() if checkpoint is not None else at / "checkpoint"
    steps = steps_of(str(where))
    last = read_commit(str(where), steps[-1]) if steps else None
    going_on = continued(as_run, last, where)
    check_network(going_on.network, sources or {}, until_idle=until_idle)
    if RunDirectory(at).is_running():
        rule, hint = "a run must have a directory of its own", "a run is at work in this one"
        raise input_error(rule, key="--run-dir", value=at, hint=hint)
    running = () if last is None else {name.partition("[")[0] for name in last.boxes}
    shared = None
    if reuse and groups is None:
        shared = share(going_on.network, prefer=running, standing=_told(going_on.network, placement))
    as_computed = going_on.network if shared is None else shared.network
    planned = _placement(as_computed, nodes, planner, options, placement, seed, groups)
    if groups is not None:
        planned = _in_groups(as_computed, nodes, groups, planned, last)
    balancing = Balancing(
        policy=make_policy(policy) if isinstance(policy, str) else policy,
        period_s=period_s,
        moved_load_budget=moved_load_budget,
        groups=groups,
    )
    prepared = Run(
        going_on.network,
        nodes,
        planned,
        directory=at,
        checkpoint=where,
        version=going_on.version,
        shared=shared,
        master=master,
        settings=settings or {},
        session=spark,
        sources=sources or {},
        until_idle=until_idle,
        moves=moves,
        balancing=balancing,
        seed=seed,
        on_step=on_step,
    )
    told = remarks_of(balancing.policy, as_computed, nodes.nodes)
    prepared.spark_run.notes += [*going_on.notes, *made_up, *_sharing(shared), *told]
    if last is not None:
        check_commit(last, prepared.spark_run.layout, nodes.names, prepared.spark_run.written)
    else:
        refuse_full_sinks(prepared)
    return prepared


def _in_groups(
    network: Network, cluster: Cluster, groups: str, planned: dict[str, str], last: Commit | None
) -> dict[str, str]:
    """The plan with every query in one group: as planned, or where the last commit has most of it.

    Asked now, not in the first batch: a query that cannot stand in one group is bad input, no failed run.
    """
    if last is not None:
        layout = Layout(network)
        as_named = gone_on_from(last, origins(layout, last.boxes, inherited_from(last, layout)))
        stood = {name: record.node for name, record in as_named.boxes.items()}
        planned = planned | taken_over(layout, cluster.names, as_named)
        planned = gathered(network, cluster, groups, planned, stood=stood)
    TopManager(network, cluster, planned, groups=groups, policy=None, rng=default_rng(0))
    return planned


def _sharing(shared: Shared | None) -> list[str]:
    if shared is None or not shared.served_by:
        return []
    some = [f"{name} by {by}" for name, by in list(shared.served_by.items())[:SHOWN_SHARED]]
    more = len(shared.served_by) - len(some)
    return [f"computed once for all: {', '.join(some)}" + (f" and {more} more" if more else "")]


def refuse_full_sinks(begun: Run) -> None:
    """Without a checkpoint to go on from, rows from before would be taken for this run's."""
    full = [name for name, sink in begun.spark_run.sinks.items() if sink.holds_rows()]
    if full:
        rule = "a sink that already holds rows is used only with the checkpoint that they belong to"
        hint = "give that --checkpoint, or another path"
        raise InputError(
            [Problem(rule=rule, key=f"outputs.{name}" if name else "errors", hint=hint) for name in full]
        )


def _stated(placement: Mapping[str, str] | Plan | None) -> Mapping[str, str]:
    return placement.placement if isinstance(placement, Plan) else placement or {}


def _told(network: Network, placement: Mapping[str, str] | Plan | None) -> dict[str, tuple[str, ...]] | None:
    """Where each operator as written, in all its instances, was told to stand; None if one was not told.

    A plan that was made for the network as shared has only those that compute.
    """
    stated, told = _stated(placement), dict[str, tuple[str, ...]]()
    for each in split(network).operators:
        if each.name not in stated:
            return None
        base = each.name.partition("[")[0]
        told[base] = (*told.get(base, ()), stated[each.name])
    return told


def _placement(
    network: Network,
    cluster: Cluster,
    planner: str,
    options: Mapping[str, Any] | None,
    placement: Mapping[str, str] | Plan | None,
    seed: int,
    groups: str | None,
) -> dict[str, str]:
    """Where operators begin: as stated, else as planned. A checkpoint that is gone on from knows better.

    What is stated need not have all operators: the network may have been changed while it ran, or be computed
    without the sharing that it was planned with.
    """
    stated = _stated(placement)
    names = {operator.name for operator in split(network).operators}
    if names <= set(stated):
        return {name: node for name, node in stated.items() if name in names}
    if groups is not None:
        by_group = tiered_plan(network, cluster, groups, planner, options=options, seed=seed)
        return {name: stated.get(name, node) for name, node in by_group.items()}
    made = make_plan(network, cluster, planner, options=options, seed=seed)
    if made.status is not PlanStatus.PLACED:
        message = f"there is no plan by {planner}: {made.status.value}; {'; '.join(made.notes)}"
        raise RunError(message)
    return {name: stated.get(name, node) for name, node in made.placement.items()}
