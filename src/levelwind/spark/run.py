"""A network on Spark: one streaming query reads all sources, and every batch is a step of the coordinator."""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from levelwind.errors import InputError, LevelwindError, Problem, RunError, input_error
from levelwind.model import Cluster, Network
from levelwind.operators.rows import row_types
from levelwind.rewrite import Shared
from levelwind.runtime.commits import Version
from levelwind.runtime.compatibility import check_commit, fingerprints
from levelwind.runtime.coordinator import Coordinator, Move, Step
from levelwind.runtime.program import Layout
from levelwind.runtime.sinks import Discard, ParquetSink, Sink
from levelwind.runtime.sources import OWN_FORMATS
from levelwind.runtime.staging import DEAD_LETTERS
from levelwind.spark.decoding import KAFKA, check_kafka_source, read_stream
from levelwind.spark.executor import SparkExecutor
from levelwind.spark.filelog import forget_unplanned
from levelwind.spark.hosts import Binding
from levelwind.spark.intake import Intake, select_schema
from levelwind.spark.kafka import KafkaSink, check_connector, check_kafka_sink, kafka_sink
from levelwind.spark.localfiles import checkpoint_address
from levelwind.spark.session import start_session
from levelwind.spark.sinks import ConsoleSink, SparkSink
from levelwind.spark.sources.bundle import BUNDLE, Bundled, BundleSource, bundle_options
from levelwind.spark.sources.registration import register

SPARK_CHECKPOINT = "spark"
POLL_S = 0.1


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a network is run.

    Parameters
    ----------
    cluster, placement
        The nodes, and where every operator stands at first.
    master
        Where Spark runs, if no session is given.
    checkpoint, directory
        What a restart goes on from; where statistics, logs and the like of this run go.
    until_idle
        Stop at the sources' end as of the start, and put out all that is open.
    before_step, after_step
        Called around every step: the first may change the network and ask for moves, the second sees what
        happened.
    version
        Which network this is, if it was changed by an earlier run on the checkpoint.
    """

    cluster: Cluster
    placement: Mapping[str, str]
    checkpoint: Path
    directory: Path
    master: str = "local[*]"
    settings: Mapping[str, str] = field(default_factory=dict)
    until_idle: bool = False
    before_step: Callable[[int], Sequence[Move]] | None = None
    after_step: Callable[[Step], None] | None = None
    keep: int = 3
    version: Version | None = None


class StopAskedError(LevelwindError):
    """A batch was not begun, since the run is to stop. No failure: the batch is run after the next start."""


class SparkRun:
    """One run of a network. `start` it, then `wait` for its end or `stop` it."""

    def __init__(
        self,
        shared: Shared,
        options: RunOptions,
        *,
        session: SparkSession | None = None,
        sources: Mapping[str, DataFrame] | None = None,
    ) -> None:
        self.options = options
        self.notes: list[str] = []
        self._sources = dict(sources or {})
        self._own_session = session is None
        self._given = session
        self._query: StreamingQuery | None = None
        self._failure: BaseException | None = None
        # Held while a batch runs, so that a stop never comes in the midst of one.
        self._running = threading.Lock()
        # Refusing: batches are put off. Pausing: the query is stopped and begun anew, which is no end.
        self._stopping = self._refusing = self._pausing = False
        self._lock: TextIO | None = None
        self._lay_out(shared)
        self.sinks = make_sinks(self.network, options)
        self.executor: SparkExecutor | None = None
        self._binding: Binding | None = None
        self.coordinator: Coordinator | None = None

    def _lay_out(self, shared: Shared) -> None:
        """What is computed; and the network as written, which says what operators mean, whoever computes."""
        self.network, self.layout = shared.network, Layout(shared.network)
        self.served_by = shared.served_by
        self.written = Layout(shared.written) if shared.served_by else self.layout

    @property
    def session(self) -> SparkSession:
        """The session that the run uses."""
        assert self._given is not None
        return self._given

    def start(self) -> None:
        """Start Spark if need be, recover, and begin to read."""
        nodes = self.options.cluster.names
        self._lock = lock_checkpoint(self.options.checkpoint)
        if self._given is None:
            log = self.options.directory / "spark.log"
            self._given = start_session(self.options.master, self.options.settings, log=log)
        self._connect(self.sinks.values())
        if KAFKA in _formats(self.network, self._sources):
            check_connector(self.session)
        self._binding = Binding(self.session.sparkContext, self.options.cluster)
        self._binding.wait()
        self._binding.refuse_nowhere()
        self.notes += self._binding.notes
        self.executor = SparkExecutor(self.session.sparkContext, self._binding.hosts)
        self.coordinator = Coordinator(
            self.layout,
            nodes,
            self.options.placement,
            directory=str(self.options.checkpoint),
            executor=self.executor,
            sinks=self.sinks,
            fingerprints=fingerprints(self.written),
            version=self.options.version,
            served_by=self.served_by,
            cluster=self.options.cluster,
            keep=self.options.keep,
        )
        last = self.coordinator.recover()
        if last is not None:
            self.notes += check_commit(last, self.layout, nodes, self.written)
        self._query = self._read()

    def _connect(self, sinks: Iterable[Sink]) -> None:
        for sink in sinks:
            if isinstance(sink, SparkSink):
                sink.session = self.session

    @property
    def has_begun(self) -> bool:
        """Whether anything is or was read."""
        return self._query is not None

    @property
    def placement(self) -> dict[str, str]:
        """Where every operator stands."""
        assert self.coordinator is not None
        return self.coordinator.program.placement

    @property
    def step_number(self) -> int:
        """The number of the next step."""
        assert self.coordinator is not None
        return self.coordinator.step_number

    @property
    def given_streams(self) -> tuple[str, ...]:
        """The streams that came as DataFrames."""
        return tuple(self._sources)

    def missing_nodes(self) -> frozenset[str]:
        """Nodes whose host has no executor now; those that state no host may be bound to others first."""
        assert self.executor is not None
        assert self._binding is not None
        names, missing = self.options.cluster.names, self.executor.missing()
        if self._binding.renew(missing=bool(missing)):
            self.executor.bind(self._binding.hosts)
            missing = self.executor.missing()
        return frozenset(names[number] for number in missing)

    def refuse_full_sinks(self, network: Network) -> None:
        """Refuse outputs, beside those there are, whose sinks hold rows already: they are not this run's."""
        made = make_sinks(network, self.options)
        rule, hint = "a sink that is added must not hold rows yet", "give it another path"
        problems = [
            Problem(rule=rule, key=f"outputs.{name}", hint=hint)
            for name, sink in made.items()
            if name not in self.sinks and sink.holds_rows()
        ]
        if problems:
            raise InputError(problems)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop to read between two batches; after the block, read on, streams that are new by then too.

        A batch that Spark had begun is begun anew. Not to be called from within a batch.
        """
        assert self._query is not None
        with self._running:
            self._refusing = self._pausing = True
        try:
            self._query.stop()
            yield
            if not self._stopping:
                self._refusing, self._failure = False, None
                self._query = self._read()
        finally:
            self._pausing = False

    def shed(self, shares: Mapping[str, float]) -> None:
        """From the next batch on, these operators take only such a share of their rows."""
        assert self.coordinator is not None
        self.coordinator.shed(shares)

    def change(
        self,
        shared: Shared,
        placement: Mapping[str, str],
        version: Version,
        inherited: Mapping[str, str] | None = None,
    ) -> None:
        """Between two batches: from the next one on another network runs; new streams need a pause.

        ``inherited`` has the operators that go on from the state of another, with that other.
        """
        assert self.coordinator is not None
        network = shared.network
        made = make_sinks(network, self.options)
        gone = [sink for name, sink in self.sinks.items() if name not in made]
        sinks = {name: self.sinks.get(name, sink) for name, sink in made.items()}
        self._connect(sinks.values())
        if KAFKA in _formats(network, self._sources):
            check_connector(self.session)
        self._lay_out(shared)
        self.sinks = sinks
        self.coordinator.change(
            self.layout,
            placement,
            sinks=sinks,
            fingerprints=fingerprints(self.written),
            version=version,
            served_by=self.served_by,
            inherited=inherited,
        )
        for sink in gone:
            if isinstance(sink, KafkaSink):
                sink.close()

    def _read(self) -> StreamingQuery:
        """The one query that reads all sources."""
        register(self.session)
        self.session.dataSource.register(BundleSource)
        forget_unplanned(self.options.checkpoint / SPARK_CHECKPOINT)
        intake, whole = self._united()
        assert self.executor is not None
        self.executor.read_with(intake)
        checkpoint = checkpoint_address(self.session, self.options.checkpoint / SPARK_CHECKPOINT)
        writer = whole.writeStream.foreachBatch(self._batch).option("checkpointLocation", checkpoint)
        writer = writer.queryName(self.network.name.replace(" ", "_"))
        if self.options.until_idle:
            writer = writer.trigger(availableNow=True)
        elif self.network.trigger_s is not None:
            writer = writer.trigger(processingTime=f"{self.network.trigger_s * 1e3:.0f} milliseconds")
        return writer.start()

    def _united(self) -> tuple[Intake, DataFrame]:
        """All streams as one DataFrame: those that we replay by one source, each of the others by its own."""
        streams = self.network.streams
        intake = Intake.of({name: stream.schema or () for name, stream in streams.items()})
        bundled = [
            Bundled(
                name=name,
                number=number,
                source=stream.source,
                schema=tuple((column.name, column.type) for column in stream.schema or ()),
                time=stream.time,
                columns=intake.columns[number],
            )
            for number, (name, stream) in enumerate(streams.items())
            if name not in self._sources and stream.source and stream.source["format"] in OWN_FORMATS
        ]
        ours = {member.name for member in bundled}
        frames = [intake.shaped(name, self._frame(name)) for name in streams if name not in ours]
        if bundled:
            tasks = min(len(bundled), self.session.sparkContext.defaultParallelism)
            reader = self.session.readStream.format(BUNDLE).options(**bundle_options(bundled, tasks))
            frames.append(reader.schema(intake.ddl_of([name for name in streams if name in ours])).load())
        return intake.united(frames)

    def _frame(self, name: str) -> DataFrame:
        stream = self.network.streams[name]
        given = self._sources.get(name)
        if given is not None:
            return select_schema(given, stream.schema)
        return read_stream(self.session, stream)

    def _batch(self, rows: DataFrame, batch: int) -> None:
        """One micro-batch; called by Spark in a thread of its own."""
        with self._running:
            try:
                if self._stopping or self._refusing:
                    # To return would tell Spark that the batch is done, and its rows would be lost.
                    message = "the run is to stop: this batch is left for the next start"
                    raise StopAskedError(message)
                self._step(rows, batch)
            except BaseException as error:
                self._failure = error
                raise

    def _step(self, rows: DataFrame, batch: int) -> None:
        assert self.coordinator is not None
        offsets = self._offsets(batch)
        last = self.coordinator.last
        if last is not None and last.batch is not None and batch <= last.batch:
            # Spark runs a batch again if it did not see it end; to us it is done if it is the same.
            if batch == last.batch and last.offsets and offsets != last.offsets:
                message = f"batch {batch} was committed with other source offsets than it is replayed with"
                raise RunError(message)
            return
        if self.options.before_step is not None:
            self.coordinator.move(self.options.before_step(self.coordinator.step_number))
        step = self.coordinator.step(rows, batch=batch, offsets=offsets)
        if self.options.after_step is not None:
            self.options.after_step(step)

    def _offsets(self, batch: int) -> tuple[str, ...]:
        """How far this batch reads each source, as Spark noted before it began."""
        path = self.options.checkpoint / SPARK_CHECKPOINT / "offsets" / str(batch)
        # The first lines are the log's version and settings of the batch, with its time among them.
        return tuple(path.read_text().splitlines()[2:]) if path.exists() else ()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; with ``until_idle`` also put out all that is open. False if it still runs."""
        assert self._query is not None
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._query.isActive or self._pausing:
            if deadline is not None and time.monotonic() > deadline:
                return False
            self._query.awaitTermination(1)
        if isinstance(self._failure, StopAskedError):
            return True
        if self._failure is not None:
            raise self._failure
        error = self._query.exception()
        if error is not None:
            raise RunError(str(error))
        if self.options.until_idle and not self._stopping:
            self._close()
        self._release()
        return True

    def _close(self) -> None:
        assert self.coordinator is not None
        for step in self.coordinator.close():
            if self.options.after_step is not None:
                self.options.after_step(step)

    def stop(self) -> None:
        """Let the batch that runs come to its end, then stop; a later run goes on from there."""
        with self._running:
            self._stopping = True
        if self._query is not None:
            self._query.stop()
        self._release()

    def end(self) -> None:
        """Give Spark back, if it was started for this run."""
        for sink in self.sinks.values():
            if isinstance(sink, KafkaSink):
                sink.close()
        if self._own_session and self._given is not None:
            self._given.stop()
            self._given = None
        self._release()

    def _release(self) -> None:
        """Leave the checkpoint to others."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def lock_checkpoint(checkpoint: Path) -> TextIO:
    """Keep others off a checkpoint for as long as this process lives or the file is closed."""
    checkpoint.mkdir(parents=True, exist_ok=True)
    file = open(checkpoint / "lock", "w")  # noqa: SIM115
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        rule, hint = "a checkpoint must belong to one run at a time", "another run is at work on this one"
        raise input_error(rule, key="checkpoint", value=str(checkpoint), hint=hint) from None
    return file


def make_sinks(network: Network, options: RunOptions) -> dict[str, Sink]:
    """Where each output's rows go, and dead letters."""
    sinks: dict[str, Sink] = {}
    for name, output in network.outputs.items():
        sinks[name] = _sink(name, output.sink, options)
    if network.errors.on_error == "dead_letter":
        path = options.directory / "dead_letters"
        sinks[DEAD_LETTERS] = _sink(
            "dead_letters", network.errors.sink or {"format": "parquet", "path": str(path)}, options
        )
    return sinks


def _sink(name: str, told: Mapping[str, Any] | None, options: RunOptions) -> Sink:
    kind = "memory" if told is None else str(told["format"])
    checkpoint = str(options.checkpoint)
    if kind == "parquet" and told is not None:
        return ParquetSink(str(told["path"]))
    if kind == "memory":
        return ParquetSink(str(options.directory / "outputs" / name))
    if kind == "console":
        return ConsoleSink(name, checkpoint)
    if kind == "noop":
        return Discard()
    assert told is not None
    if kind == KAFKA:
        return kafka_sink(name, told, checkpoint)
    return SparkSink(name, told, checkpoint)


def _formats(network: Network, given: Container[str]) -> set[str]:
    """The formats of all sources and sinks, but for the streams that are given as DataFrames."""
    sources = [stream.source for name, stream in network.streams.items() if name not in given]
    sinks = [output.sink for output in network.outputs.values()]
    return {str(told["format"]) for told in (*sources, *sinks, network.errors.sink) if told}


def check_runnable(network: Network, given: Sequence[str] = ()) -> None:
    """Refuse a network that cannot be run, all reasons at once."""
    problems = [
        Problem(
            rule="a stream that is run must have a source",
            key=f"streams.{name}",
            hint="state its source, or a rate at which rows are made up, or give a DataFrame in Python",
        )
        for name, stream in network.streams.items()
        if stream.source is None and name not in given
    ]
    problems += [
        Problem(
            rule="a stream that is run must have a schema",
            key=f"streams.{name}",
            hint="state its columns and their types",
        )
        for name, stream in network.streams.items()
        if stream.schema is None
    ]
    problems += _check_kafka(network, given)
    if problems:
        raise InputError(problems)


def _check_kafka(network: Network, given: Sequence[str]) -> list[Problem]:
    problems: list[Problem] = []
    for name, stream in network.streams.items():
        if name not in given and stream.source is not None and stream.source["format"] == KAFKA:
            problems += check_kafka_source(stream.source, stream.schema or (), f"streams.{name}.source")
    types = row_types(network)
    for name, output in network.outputs.items():
        if output.sink and output.sink["format"] == KAFKA:
            columns = [column.replace(".", "_") for column in types[output.input].types]
            problems += check_kafka_sink(output.sink, columns, f"outputs.{name}.sink")
    if network.errors.sink and network.errors.sink["format"] == KAFKA:
        problems += check_kafka_sink(network.errors.sink, ("operator", "reason", "row"), "errors.sink")
    return problems
