"""``levelwind.run``: a network on Spark, from Python."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from levelwind.errors import InputError, Problem
from levelwind.model import Cluster, Network, Plan, PlanStatus
from levelwind.operators.rows import BEGINNING
from levelwind.planning import plan as make_plan
from levelwind.runtime.commits import steps_of
from levelwind.runtime.coordinator import Move, RunError, Step
from levelwind.runtime.groups import groups_of
from levelwind.runtime.program import Layout, Program
from levelwind.runtime.recording import Recorder
from levelwind.runtime.rundir import FAILED, FINISHED, RUNNING, STOPPED, RunDirectory
from levelwind.runtime.sinks import ParquetSink
from levelwind.runtime.sources import check_source, source_end
from levelwind.spark.run import RunOptions, SparkRun, check_runnable


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedMove:
    """Operators that go to a node before a given step."""

    step: int
    operators: tuple[str, ...]
    target: str
    cause: str = "script"


@dataclass(kw_only=True)
class Progress:
    """What a run has done so far, for whoever shows it."""

    steps: int = 0
    rows: int = 0
    outputs: dict[str, int] = field(default_factory=dict)
    rejected: int = 0
    moves: int = 0
    seconds: list[float] = field(default_factory=list)
    last: Step | None = None

    def add(self, step: Step) -> None:
        """Count one step in."""
        self.steps += 1
        self.rows += sum(step.seen.values())
        for entry in step.commit.outbox:
            self.outputs[entry.output] = self.outputs.get(entry.output, 0) + entry.rows
        self.rejected = self.outputs.get("", 0)
        self.moves += len(step.commit.moves)
        self.seconds.append(step.wall_s)
        self.last = step


class Run:
    """A network at work. Made by `levelwind.run`; ends by `stop`, or by itself with ``until_idle``."""

    def __init__(
        self,
        network: Network,
        cluster: Cluster,
        placement: Mapping[str, str],
        *,
        directory: Path,
        checkpoint: Path,
        master: str,
        settings: Mapping[str, str],
        session: SparkSession | None,
        sources: Mapping[str, DataFrame],
        until_idle: bool,
        moves: Sequence[ScriptedMove],
        on_step: Callable[[Step], None] | None,
    ) -> None:
        self.network = network
        self.directory = RunDirectory(directory)
        self.progress = Progress()
        self._moves = list(moves)
        self._on_step = on_step
        self._recorder = Recorder(directory / "statistics")
        self._stop_asked = False
        self.spark_run = SparkRun(
            network,
            RunOptions(
                cluster=cluster,
                placement=placement,
                checkpoint=checkpoint,
                directory=directory,
                master=master,
                settings=settings,
                until_idle=until_idle,
                before_step=self._before,
                after_step=self._after,
            ),
            session=session,
            sources=sources,
        )
        self.directory.create(
            {
                "name": network.name,
                "nodes": list(cluster.names),
                "checkpoint": str(checkpoint),
                "master": master,
                "hops": network.hops,
            }
        )

    def start(self) -> Run:
        """Begin to read."""
        self._say(RUNNING)
        try:
            self.spark_run.start()
        except BaseException:
            self._say(FAILED)
            self.spark_run.end()
            raise
        return self

    @property
    def notes(self) -> list[str]:
        """What the user should know about how the run began."""
        weak = [name for name, sink in self.spark_run.sinks.items() if not sink.exactly_once and name]
        notes = list(self.spark_run.notes)
        if weak:
            notes.append(f"at least once, told apart by batch_id: {', '.join(weak)}")
        return notes

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the run; False if it still runs after ``timeout`` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            while not self.spark_run.wait(0.5 if deadline is None else min(0.5, timeout or 0.5)):
                self._heed_commands()
                if self._stop_asked:
                    self.spark_run.stop()
                    self._finish(STOPPED)
                    return True
                if deadline is not None and time.monotonic() > deadline:
                    return False
        except Exception:
            self._finish(FAILED)
            raise
        self._finish(FINISHED if not self._stop_asked else STOPPED)
        return True

    def stop(self) -> None:
        """Let the batch that runs come to its end, then stop; a later run goes on from there."""
        self._stop_asked = True
        self.spark_run.stop()
        self._finish(STOPPED)

    def move(self, operators: str | Iterable[str], target: str, *, cause: str = "asked for") -> None:
        """From the next batch on, operators (all in one act) run on another node."""
        names = [operators] if isinstance(operators, str) else list(operators)
        coordinator = self.spark_run.coordinator
        assert coordinator is not None
        coordinator.move([Move(operator=name, target=target, cause=cause) for name in names])

    def output(self, name: str) -> DataFrame:
        """The rows that an output has put out so far, as a DataFrame."""
        sink = self.spark_run.sinks.get(name)
        if not isinstance(sink, ParquetSink):
            raise InputError(
                [Problem(rule="only rows of a parquet or memory output can be read back", key=name)]
            )
        return self.spark_run.session.read.parquet(str(sink.path))

    def close(self) -> None:
        """End the session if the run started it."""
        self.spark_run.end()

    def _before(self, step: int) -> list[Move]:
        self._heed_commands()
        due = [move for move in self._moves if move.step <= step]
        self._moves = [move for move in self._moves if move.step > step]
        return [
            Move(operator=name, target=move.target, cause=move.cause)
            for move in due
            for name in move.operators
        ]

    def _heed_commands(self) -> None:
        for command in self.directory.take_commands():
            if command.command == "stop":
                self._stop_asked = True
            elif command.command == "move":
                self.move(command.operators, command.target, cause=command.cause)

    def _after(self, step: Step) -> None:
        self.progress.add(step)
        self._recorder.add(step)
        for record in step.commit.moves:
            self.directory.append_move({**_as_dict(record), "time": step.started})
        self._say(RUNNING)
        if self._on_step is not None:
            self._on_step(step)

    def _finish(self, state: str) -> None:
        self._recorder.flush()
        self._say(state)

    def _say(self, state: str) -> None:
        self.directory.write_status(status_of(self.progress, state))


def status_of(progress: Progress, state: str) -> dict[str, Any]:
    """How a run fares, in plain data."""
    status: dict[str, Any] = {
        "state": state,
        "steps": progress.steps,
        "rows": progress.rows,
        "outputs": {name: rows for name, rows in progress.outputs.items() if name},
        "dead_letters": progress.rejected,
        "moves": progress.moves,
    }
    step = progress.last
    if step is not None:
        recent = progress.seconds[-20:]
        status |= {
            "step": step.commit.step,
            "batch_seconds": step.wall_s,
            "mean_batch_seconds": sum(recent) / len(recent),
            "rows_per_second": sum(step.seen.values()) / max(step.wall_s, 1e-9),
            "placement": step.program.placement,
            "watermarks": {
                name: None if mark == BEGINNING else mark / 1e6 for name, mark in step.commit.streams.items()
            },
            "nodes": node_loads(step),
        }
    return status


def node_loads(step: Step) -> dict[str, dict[str, Any]]:
    """For each node: CPU seconds of its operators in the last step, as a share of the step's time."""
    found: dict[str, dict[str, Any]] = {
        node: {"cpu_s": 0.0, "load": 0.0, "operators": 0, "rows_in": 0} for node in step.program.nodes
    }
    for report, box in step.boxes:
        entry = found[step.program.nodes[report.node]]
        entry["cpu_s"] += box.cpu_s
        entry["operators"] += 1
        entry["rows_in"] += box.rows_in
        entry["host"] = report.host
    for entry in found.values():
        entry["load"] = entry["cpu_s"] / max(step.wall_s, 1e-9)
    return found


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
    until_idle: bool = False,
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
    until_idle
        Stop at the sources' end as of now and put out all that is open. The call returns when that is done.
    on_step
        Called after each step.
    """
    nodes = default_cluster(cluster, master)
    check_network(network, sources or {}, until_idle=until_idle)
    at = Path(run_dir) if run_dir is not None else Path(tempfile.mkdtemp(prefix="levelwind-"))
    where = Path(checkpoint) if checkpoint is not None else at / "checkpoint"
    begun = Run(
        network,
        nodes,
        _placement(network, nodes, planner, options, placement, seed),
        directory=at.absolute(),
        checkpoint=where.absolute(),
        master=master,
        settings=settings or {},
        session=spark,
        sources=sources or {},
        until_idle=until_idle,
        moves=moves,
        on_step=on_step,
    )
    if not steps_of(str(where)):
        refuse_full_sinks(begun)
    begun.start()
    if until_idle:
        begun.wait()
    return begun


def default_cluster(cluster: Cluster | int | None, master: str) -> Cluster:
    """The nodes: as given, or one per core of this machine."""
    if isinstance(cluster, Cluster):
        return cluster
    if cluster is None:
        import os

        inside = master.partition("[")[2].rstrip("]")
        cluster = int(inside) if inside.isdigit() else len(os.sched_getaffinity(0))
    return Cluster.equal(cluster)


def check_network(network: Network, sources: Mapping[str, Any], *, until_idle: bool) -> None:
    """Refuse what cannot be run before anything is started: sources, kernels, ends."""
    check_runnable(network, tuple(sources))
    problems: list[Problem] = []
    for name, stream in network.streams.items():
        if stream.source is None or name in sources:
            continue
        at = f"streams.{name}.source"
        problems += check_source(stream.source, stream.schema or (), stream.time, at=at)
        if not problems and until_idle and _is_endless(stream.source, stream.schema or (), stream.time):
            rule, hint = "a source that is read until it ends must have an end", "leave --until-idle out"
            problems.append(Problem(rule=rule, key=at, value=str(stream.source["format"]), hint=hint))
    if problems:
        raise InputError(problems)
    # Every kernel is made once here: what cannot be carried out is refused by name, before Spark starts.
    layout = Layout(network)
    program = Program.of(layout, ("n1",), {box.name: "n1" for box in layout.boxes})
    groups_of(program, 0, 0)


ENDLESS = ("rate", "rate-micro-batch", "socket")


def _is_endless(source: Mapping[str, Any], schema: Any, time: str | None) -> bool:
    kind = str(source["format"])
    if kind in ENDLESS:
        return True
    return kind in ("trace", "generator") and source_end(source, schema, time) is None


def refuse_full_sinks(begun: Run) -> None:
    """Without a checkpoint to go on from, rows from before would be taken for this run's."""
    full = [name for name, sink in begun.spark_run.sinks.items() if sink.holds_rows()]
    if full:
        rule = "a sink that already holds rows is used only with the checkpoint that they belong to"
        hint = "give that --checkpoint, or another path"
        raise InputError(
            [Problem(rule=rule, key=f"outputs.{name}" if name else "errors", hint=hint) for name in full]
        )


def _placement(
    network: Network,
    cluster: Cluster,
    planner: str,
    options: Mapping[str, Any] | None,
    placement: Mapping[str, str] | Plan | None,
    seed: int,
) -> dict[str, str]:
    if isinstance(placement, Plan):
        return dict(placement.placement)
    if placement is not None:
        return dict(placement)
    made = make_plan(network, cluster, planner, options=options, seed=seed)
    if made.status is not PlanStatus.PLACED:
        message = f"there is no plan by {planner}: {made.status.value}; {'; '.join(made.notes)}"
        raise RunError(message)
    return dict(made.placement)


def _as_dict(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}
