"""``levelwind.run``: a network on Spark, from Python."""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
from pyspark.sql import DataFrame, SparkSession

from levelwind.errors import InputError, Problem, RunError, input_error
from levelwind.frontend.writing import network_document
from levelwind.model import Cluster, Network, Plan, PlanStatus
from levelwind.planning import plan as make_plan
from levelwind.runtime.commits import read_commit, steps_of
from levelwind.runtime.compatibility import check_commit
from levelwind.runtime.coordinator import Move, Step
from levelwind.runtime.measured import measure, measured_network
from levelwind.runtime.moves import check_move
from levelwind.runtime.progress import Progress, status_of
from levelwind.runtime.recording import OPERATORS, STEPS, Recorder, read_statistics
from levelwind.runtime.rundir import FAILED, FINISHED, RUNNING, STOPPED, RunDirectory
from levelwind.runtime.sinks import ParquetSink
from levelwind.runtime.stand_ins import with_stand_ins
from levelwind.spark.checks import check_network, default_cluster
from levelwind.spark.run import RunOptions, SparkRun, StopAskedError

logger = logging.getLogger(__name__)
# The status is written at most this often, so that fast batches do not wait for the disk.
STATUS_S = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedMove:
    """Operators that go to a node before a given step."""

    step: int
    operators: tuple[str, ...]
    target: str
    cause: str = "script"


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
        self.cluster = cluster
        self.directory = RunDirectory(directory)
        self.progress = Progress()
        self.state = ""
        self.failure: str | None = None
        self._placement = dict(placement)
        self._moves = list(moves)
        self._asked: list[Move] = []
        self._on_step = on_step
        self._recorder = Recorder(directory / "statistics")
        self._stop_asked = False
        self._said = 0.0
        self._unsaid = False
        # Batches run in a thread of Spark's, questions come from another.
        self._lock = threading.RLock()
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

    def start(self) -> Run:
        """Begin to read."""
        options = self.spark_run.options
        self.directory.create(
            {
                "name": self.network.name,
                "nodes": list(self.cluster.names),
                "cpu": {node.name: node.cpu for node in self.cluster.nodes},
                "checkpoint": str(options.checkpoint),
                "master": options.master,
                "hops": self.network.hops,
            },
            network_document(self.network),
        )
        self._say(RUNNING)
        try:
            self.spark_run.start()
        except BaseException:
            self._say(FAILED)
            self.spark_run.end()
            raise
        return self

    @property
    def placement(self) -> dict[str, str]:
        """Where every operator stands now."""
        last = self.progress.last
        return dict(self._placement) if last is None else last.program.placement

    @property
    def status(self) -> dict[str, Any]:
        """How the run fares, as in its directory's status."""
        status = status_of(
            self.progress, self.state, network=self.network, cluster=self.cluster, placement=self.placement
        )
        return status if self.failure is None else {**status, "failure": self.failure}

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
            while not self.spark_run.wait(0.5 if timeout is None else min(0.5, timeout)):
                self._heed_commands()
                self._say_what_is_left()
                if self._stop_asked:
                    self.stop()
                    return True
                if deadline is not None and time.monotonic() > deadline:
                    return False
        except Exception as error:
            # Spark tells of any end by an exception; what came up in a batch of ours says more.
            cause = self.spark_run._failure or error
            stopped = isinstance(cause, StopAskedError)
            self._finish(STOPPED if stopped else FAILED)
            if stopped:
                return True
            raise cause from None
        self._finish(FINISHED)
        return True

    def stop(self) -> None:
        """Let the batch that runs come to its end, then stop; a later run goes on from there."""
        self._stop_asked = True
        self.spark_run.stop()
        self._finish(STOPPED)

    def give_up(self, failure: str | None = None) -> None:
        """Write down what is known and how it ended, without waiting for anything."""
        self.failure = failure
        if self._lock.acquire(timeout=1.0):
            try:
                self._finish(STOPPED if failure is None else FAILED)
            finally:
                self._lock.release()

    def move(self, operators: str | Iterable[str], target: str, *, cause: str = "asked for") -> None:
        """From the next batch on, operators (all in one act) run on another node.

        The name of a split operator stands for all its instances.
        """
        names = [operators] if isinstance(operators, str) else list(operators)
        asked = check_move(self.network, names, target, self.cluster.names)
        if asked.problems:
            raise InputError(asked.problems)
        with self._lock:
            self._asked += [Move(operator=name, target=target, cause=cause) for name in asked.operators]

    def replan(
        self, planner: str = "rod", *, options: Mapping[str, Any] | None = None, seed: int = 0, cause: str
    ) -> dict[str, str]:
        """Plan anew with what was measured, and move what changed; returns who moves where to."""
        with self._lock:
            self._recorder.flush()
        folder = self.directory.path / "statistics"
        operators, steps = read_statistics(folder, OPERATORS), read_statistics(folder, STEPS)
        if operators is None or steps is None:
            return {}
        cpu = {node.name: node.cpu for node in self.cluster.nodes}
        network = measured_network(self.network, measure(self.network, operators, steps, cpu=cpu))
        standing = self.placement
        made = make_plan(network, self.cluster, planner, options=options, seed=seed, current=standing)
        if made.status is not PlanStatus.PLACED:
            message = f"{planner} has no plan for what was measured: {made.status.value}"
            raise RunError(message)
        moved = {name: node for name, node in made.placement.items() if standing[name] != node}
        with self._lock:
            self._asked += [Move(operator=name, target=node, cause=cause) for name, node in moved.items()]
        return moved

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
        if self._stop_asked:
            message = "the run is to stop: this batch is left for the next start"
            raise StopAskedError(message)
        with self._lock:
            asked, self._asked = self._asked, []
            due = [move for move in self._moves if move.step <= step]
            self._moves = [move for move in self._moves if move.step > step]
        scripted = [
            Move(operator=name, target=move.target, cause=move.cause)
            for move in due
            for name in move.operators
        ]
        return scripted + asked

    def _heed_commands(self) -> None:
        with self._lock:
            for command in self.directory.take_commands():
                if command.command == "stop":
                    self._stop_asked = True
                elif command.command == "move":
                    try:
                        self.move(command.operators, command.target, cause=command.cause)
                    except InputError as error:
                        logger.warning("move not carried out: %s", error)

    def _after(self, step: Step) -> None:
        with self._lock:
            self.progress.add(step)
            self._recorder.add(step)
            for record in step.commit.moves:
                logger.info("%s moved from %s to %s", record.operator, record.source, record.target)
                self.directory.append_move({**msgspec.to_builtins(record), "time": step.started})
            self._unsaid = True
            if step.commit.moves:
                self._say(RUNNING)
            self._say_what_is_left()
        if self._on_step is not None:
            self._on_step(step)

    def _finish(self, state: str) -> None:
        with self._lock:
            self._recorder.flush()
            self._say(state)

    def _say_what_is_left(self) -> None:
        """Write the status of the last batch, unless one was written just now."""
        with self._lock:
            if self._unsaid and time.monotonic() - self._said >= STATUS_S:
                self._say(RUNNING)

    def _say(self, state: str) -> None:
        self.state, self._unsaid = state, False
        self.directory.write_status(self.status)
        self._said = time.monotonic()


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
        until_idle=until_idle,
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
    until_idle: bool = False,
    on_step: Callable[[Step], None] | None = None,
    seed: int = 0,
) -> Run:
    """A run that has not begun, with everything checked: nothing is started or written before its `start`.

    Takes what `run` takes.
    """
    nodes = default_cluster(cluster, master)
    as_run, made_up = with_stand_ins(network, sources or {})
    check_network(as_run, sources or {}, until_idle=until_idle)
    if run_dir is None:
        run_dir = Path(tempfile.gettempdir(), f"levelwind-{uuid4().hex[:12]}")
    at = Path(run_dir).absolute()
    where = Path(checkpoint).absolute() if checkpoint is not None else at / "checkpoint"
    if RunDirectory(at).is_running():
        rule, hint = "a run must have a directory of its own", "a run is at work in this one"
        raise input_error(rule, key="--run-dir", value=at, hint=hint)
    prepared = Run(
        as_run,
        nodes,
        _placement(network, nodes, planner, options, placement, seed),
        directory=at,
        checkpoint=where,
        master=master,
        settings=settings or {},
        session=spark,
        sources=sources or {},
        until_idle=until_idle,
        moves=moves,
        on_step=on_step,
    )
    prepared.spark_run.notes += made_up
    steps = steps_of(str(where))
    if steps:
        check_commit(read_commit(str(where), steps[-1]), prepared.spark_run.layout, nodes.names)
    else:
        refuse_full_sinks(prepared)
    return prepared


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
