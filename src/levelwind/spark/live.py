"""A network at work on Spark: watched, moved, balanced, changed and stopped while it runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession

from levelwind.control import TopManager
from levelwind.control.replanning import plan_anew
from levelwind.control.roster import make_roster
from levelwind.errors import InputError, Problem
from levelwind.frontend.addition import extended
from levelwind.frontend.writing import network_document
from levelwind.model import Cluster, Network
from levelwind.rewrite import Shared, split
from levelwind.rewrite.removal import without
from levelwind.rewrite.reuse import inherited, shared_anew
from levelwind.rewrite.windows import with_windows
from levelwind.runtime.changes import (
    ADD,
    REMOVE,
    WINDOWS,
    Change,
    as_kept,
    difference,
    digest,
    new_streams,
    refused_streams,
    store,
)
from levelwind.runtime.commits import Version
from levelwind.runtime.coordinator import Move, Step
from levelwind.runtime.inheriting import origin
from levelwind.runtime.managing import Balancing, Steward, warm_up
from levelwind.runtime.measured import measure, measured_network
from levelwind.runtime.moves import check_move
from levelwind.runtime.progress import Progress, status_of
from levelwind.runtime.recording import OPERATORS, STEPS, Recorder, read_statistics
from levelwind.runtime.rundir import FAILED, FINISHED, RUNNING, STOPPED, Command, RunDirectory
from levelwind.runtime.sinks import ParquetSink
from levelwind.spark.checks import check_network
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
        version: Version | None,
        shared: Shared | None = None,
        master: str,
        settings: Mapping[str, str],
        session: SparkSession | None,
        sources: Mapping[str, DataFrame],
        until_idle: bool,
        moves: Sequence[ScriptedMove],
        balancing: Balancing,
        seed: int,
        on_step: Callable[[Step], None] | None,
    ) -> None:
        self.network = network
        # What runs: the network with equal operators computed once, or as it is written if not shared.
        self.shared = shared or Shared.alone(network)
        self._reuse = shared is not None
        self.cluster = cluster
        self.directory = RunDirectory(directory)
        self.progress = Progress()
        self.state = ""
        self.failure: str | None = None
        self._placement = dict(placement)
        # Moves by the names of operators as written: who computes for them may change until then.
        self._moves = list(moves)
        self._asked: list[Move] = []
        self._balancing, self._seed = balancing, seed
        self._steward: Steward | None = None
        self._origin = digest(network) if version is None else version.origin
        # Changes asked for, with the network after each; and those that the next commit makes real.
        self._changes: list[tuple[Change, Network]] = []
        self._made: list[Change] = []
        self._on_step = on_step
        self._recorder = Recorder(directory / "statistics")
        self._stop_asked = False
        self._said = 0.0
        self._unsaid = False
        # Batches run in a thread of Spark's, questions come from another.
        self._lock = threading.RLock()
        self.spark_run = SparkRun(
            self.shared,
            RunOptions(
                cluster=cluster,
                placement=placement,
                checkpoint=checkpoint,
                directory=directory,
                version=version,
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
                "policy": None if self._balancing.policy is None else self._balancing.policy.name,
            },
            network_document(self.network),
        )
        self._say(RUNNING)
        try:
            if self._balancing.policy is not None:
                warm_up(self._balancing.policy, self.shared.network, self.cluster)
            self.spark_run.start()
        except BaseException:
            self._say(FAILED)
            self.spark_run.end()
            raise
        return self

    @property
    def has_begun(self) -> bool:
        """Whether anything is or was read."""
        return self.spark_run.has_begun

    @property
    def placement(self) -> dict[str, str]:
        """Where every operator stands now, or the one that computes its rows."""
        last = self.progress.last
        standing = dict(self._placement) if last is None else last.program.placement
        names = (operator.name for operator in split(self.network).operators)
        served = {name: self.shared.serving(name) for name in names if name not in standing}
        return standing | {name: standing[by] for name, by in served.items() if by in standing}

    @property
    def status(self) -> dict[str, Any]:
        """How the run fares, as in its directory's status."""
        status = status_of(
            self.progress, self.state, network=self.network, cluster=self.cluster, placement=self.placement
        )
        if self._steward is not None:
            status["manager"] = self._steward.footprint
            if self._steward.alarms:
                status["alarms"] = list(self._steward.alarms)
            if self._steward.shares:
                status["shares"] = dict(self._steward.shares)
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
                self._change_streams()
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

    def add(self, added: Path | Mapping[str, Any], *, base: Path | None = None) -> tuple[str, ...]:
        """From the next batch on, run what a file (or a mapping of its shape) adds; returns its outputs.

        What runs already stays as and where it is. Everything wrong with the addition is told at once, and
        then nothing has changed. If there are streams in it, reading stops for a moment between two batches.
        """
        outputs = self._add(added, base)
        self._change_streams()
        return outputs

    def _add(
        self, added: Path | Mapping[str, Any], base: Path | None = None, id: str = ""
    ) -> tuple[str, ...]:
        with self._lock:
            before = self._coming
            after = extended(before, added, base=base, cluster=self.cluster)
            options, given = self.spark_run.options, self.spark_run.given_streams
            problems = refused_streams(before, after, given)
            if problems:
                raise InputError(problems)
            check_network(after, given, until_idle=options.until_idle)
            make_roster(after, self.cluster)
            self.spark_run.refuse_full_sinks(after)
            return self._ask_change(Change(ADD, id=id), after)

    def remove(self, queries: str | Iterable[str], *, id: str = "") -> tuple[str, ...]:
        """From the next batch on, run without these outputs or SQL queries; returns the outputs that go.

        Operators that no other output uses go with them, and so does their state, unless it is shared: then
        one of those that share it goes on with it.
        """
        with self._lock:
            after = without(self._coming, [queries] if isinstance(queries, str) else queries)
            return self._ask_change(Change(REMOVE, id=id), after)

    def change_windows(self, join: str, windows_s: Mapping[str, float], *, id: str = "") -> None:
        """From the next batch on, a multijoin has other windows, in seconds, for some of its inputs.

        Groups whose last member comes from then on go by them; rows that the old windows gave up do not come
        back.
        """
        with self._lock:
            after = with_windows(self._coming, join, windows_s)
            self._ask_change(Change(WINDOWS, id=id), after, operators=(join,))

    @property
    def _coming(self) -> Network:
        """The network after all changes that were asked for."""
        return self._changes[-1][1] if self._changes else self.network

    def _ask_change(
        self, change: Change, after: Network, *, operators: tuple[str, ...] = ()
    ) -> tuple[str, ...]:
        if self.spark_run.coordinator is not None:
            # Before it is promised: what a manager cannot take is refused now, and the run goes on.
            self._managed().check(after)
        outputs, only_in_one = difference(self._coming, after)
        change = msgspec.structs.replace(change, outputs=outputs, operators=operators or only_in_one)
        self._changes.append((change, as_kept(after)))
        return outputs

    def replan(
        self, planner: str = "rod", *, options: Mapping[str, Any] | None = None, seed: int = 0, cause: str
    ) -> dict[str, str]:
        """Plan anew with what was measured, and move what changed; returns who moves where to.

        Batches go on while the planner works.
        """
        with self._lock:
            self._recorder.flush()
        folder = self.directory.path / "statistics"
        operators, steps = read_statistics(folder, OPERATORS), read_statistics(folder, STEPS)
        if operators is None or steps is None:
            return {}
        cpu = {node.name: node.cpu for node in self.cluster.nodes}
        with self._lock:
            steward = self._managed()

        def ask(usable: tuple[str, ...], attempt: int) -> Mapping[str, str]:
            with self._lock:
                running, manager = self.shared.network, steward.manager
                stands = manager.placement
                homes = manager.homes if isinstance(manager, TopManager) else None
            return plan_anew(
                measured_network(running, measure(running, operators, steps, cpu=cpu)),
                self.cluster,
                planner,
                usable=usable,
                stands=stands,
                groups=self._balancing.groups,
                homes=homes,
                options=options,
                seed=seed + attempt - 1,
            )

        return steward.plan(ask, cause, lock=self._lock)

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
            steward = self._managed()
            steward.watch(self.spark_run.missing_nodes())
            if not self._has_new_streams():
                self._make_changes(steward, step)
            asked, self._asked = self._asked, []
            due = [move for move in self._moves if move.step <= step]
            self._moves = [move for move in self._moves if move.step > step]
            scripted = [
                Move(operator=name, target=move.target, cause=move.cause)
                for move in due
                for name in move.operators
            ]
            for decision in steward.decisions():
                self.directory.append_decision({"step": step, **decision})
            self.spark_run.shed(steward.shares)
            by_name = [
                replace(move, operator=self.shared.serving(move.operator)) for move in (*scripted, *asked)
            ]
            # The last word on an operator counts: what somebody asks for goes before what a policy proposes.
            return [*steward.moves(), *by_name]

    def _managed(self) -> Steward:
        """The manager, from the first batch on: a checkpoint knows better than the plan who stands where."""
        if self._steward is None:
            standing = self.spark_run.placement
            network = self.shared.network
            self._steward = Steward(network, self.cluster, standing, self._balancing, seed=self._seed)
        return self._steward

    def _has_new_streams(self) -> bool:
        return bool(new_streams(self.network, self._coming))

    def _change_streams(self) -> None:
        """Make changes that bring new streams: Spark's query has to begin anew, which a batch cannot do."""
        if self._has_new_streams():
            with self.spark_run.paused(), self._lock:
                self._make_changes(self._managed(), self.spark_run.step_number)

    def _make_changes(self, steward: Steward, step: int) -> None:
        """Between two batches; the commit of the second makes them real."""
        for change, network in self._changes:
            after = shared_anew(network, self.shared) if self._reuse else Shared.alone(network)
            heirs = inherited(self.shared, after)
            standing = self.spark_run.placement
            came_from = {each.name: origin(each.name, heirs) for each in split(after.network).operators}
            standing |= {name: standing[old] for name, old in came_from.items() if old in standing}
            try:
                placement = steward.change(after.network, standing)
            except InputError as error:
                # It could be made when it was asked for; changes before it, or a node, left no room for it.
                self._refuse(change.command, change.id, error)
                continue
            kept = store(self.spark_run.options.checkpoint, network)
            version = Version(network=kept, origin=self._origin)
            self.spark_run.change(after, placement, version, heirs)
            self.network, self.shared = network, after
            self._made.append(msgspec.structs.replace(change, step=step))
        self._changes = []

    def _heed_commands(self) -> None:
        with self._lock:
            for command in self.directory.take_commands():
                if command.command == "stop":
                    self._stop_asked = True
                    continue
                try:
                    self._heed(command)
                except InputError as error:
                    self._refuse(command.command, command.id, error)

    def _refuse(self, command: str, id: str, error: InputError) -> None:
        logger.warning("%s not carried out: %s", command, error)
        self.directory.append_change(Change(command, id=id, time=time.time(), refused=str(error)))

    def _heed(self, command: Command) -> None:
        if command.command == "move":
            self.move(command.operators, command.target, cause=command.cause)
        elif command.command == ADD:
            self._add(command.added, Path(command.base), command.id)
        elif command.command == REMOVE:
            self.remove(command.queries, id=command.id)
        elif command.command == WINDOWS:
            self.change_windows(command.operators[0], command.windows_s, id=command.id)

    def _after(self, step: Step) -> None:
        with self._lock:
            self.progress.add(step)
            self._recorder.add(step)
            self._managed().saw(step)
            for decision in self.progress.decided:
                logger.info("%s: %s", decision["operator"], decision["reason"])
                self.directory.append_decision({"step": step.commit.step, "time": step.started, **decision})
            self._note_changes(step)
            for record in step.commit.moves:
                logger.info("%s moved from %s to %s", record.operator, record.source, record.target)
                self.directory.append_move({**msgspec.to_builtins(record), "time": step.started})
            self._unsaid = True
            if step.commit.moves or self._made or self.progress.decided:
                self._say(RUNNING)
            self._made = []
            self._say_what_is_left()
        if self._on_step is not None:
            self._on_step(step)

    def _note_changes(self, step: Step) -> None:
        """Write down what the commit of this step has made real."""
        if self._made:
            self.directory.write_network(network_document(self.network))
        for change in self._made:
            logger.info("%s of %s: %d operators", change.command, change.outputs, len(change.operators))
            self.directory.append_change(msgspec.structs.replace(change, time=step.started))
            self.progress.changes.append(change)

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
