"""Kafka as a sink: rows as JSON messages, at least once by Spark's writer or exactly once in transactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, create_map, lit, struct, to_json

from levelwind.errors import Problem, RunError
from levelwind.runtime.commits import Published
from levelwind.runtime.durable import write_whole
from levelwind.spark.decoding import KAFKA
from levelwind.spark.sinks import SparkSink

TOPIC, SERVERS, KEY, TRANSACTIONAL = "topic", "kafka.bootstrap.servers", "key", "transactional"
PREFIX = "kafka."
BATCH, ROW = "batch_id", "batch_row"
# Times to the microsecond: a window's time is its end less one.
WRITTEN = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC"}
CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"


def kafka_sink(name: str, options: Mapping[str, Any], directory: str) -> KafkaSink:
    """The sink that the options ask for."""
    asked = str(options.get(TRANSACTIONAL, False)).lower() == "true"
    return (TransactionalKafkaSink if asked else KafkaSink)(name, options, directory)


def check_kafka_sink(sink: Mapping[str, Any], columns: Sequence[str], at: str) -> list[Problem]:
    """What is wrong with a Kafka sink for rows of these columns (as sinks get them)."""
    problems = [
        Problem(rule="a Kafka sink must state it", key=f"{at}.{name}")
        for name in (SERVERS, TOPIC)
        if not sink.get(name)
    ]
    key = sink.get(KEY)
    if key is not None and key not in columns:
        hint = f"there are {', '.join(columns)}"
        problems.append(Problem(rule="must be a column", key=f"{at}.{KEY}", value=str(key), hint=hint))
    if str(sink.get(TRANSACTIONAL, False)).lower() not in ("true", "false"):
        told = str(sink[TRANSACTIONAL])
        problems.append(Problem(rule="must be true or false", key=f"{at}.{TRANSACTIONAL}", value=told))
    return problems


class KafkaSink(SparkSink):
    """Messages by Spark's writer: a row's columns as a JSON object, with ``batch_id`` and ``batch_row``.

    The two are the same if a row is written again after a crash, so a reader that keeps the first of each
    sees every row once. With the option ``key``, that column is the message's key.
    """

    def __init__(self, name: str, options: Mapping[str, Any], directory: str) -> None:
        own = (KEY, TRANSACTIONAL)
        super().__init__(name, {key: value for key, value in options.items() if key not in own}, directory)
        self._key = options.get(KEY)

    def publish(self, step: int, published: Published) -> None:
        """Write the rows of a step, unless it is known that they were written."""
        staged = [path for path in published.staged if Path(path).exists()]
        if staged and not self._is_marked(step):
            self._send(step, staged)
            write_whole(self._mark, str(step).encode())
        for path in staged:
            Path(path).unlink(missing_ok=True)

    def holds_rows(self) -> bool:
        """Never, whatever is in the topic: others may write to it, and none of it is ours to judge.

        So a run without the checkpoint of an earlier one is not refused, as it is by a directory that has
        files. Recovery does not depend on it: what was written is known by the mark in the checkpoint, or by
        the note in Kafka. But ``batch_id`` then begins at 0 again, so a reader that tells repeats apart by it
        needs a topic for each checkpoint.
        """
        return False

    def close(self) -> None:
        """Nothing is held between steps."""

    def _is_marked(self, step: int) -> bool:
        return self._mark.exists() and int(self._mark.read_text()) >= step

    def _send(self, step: int, staged: Sequence[str]) -> None:
        messages = self._messages(step, staged)
        messages.write.format(KAFKA).options(**self._options).save()

    def _messages(self, step: int, staged: Sequence[str]) -> DataFrame:
        """``key`` and ``value`` of each row, as text."""
        assert self.session is not None
        rows = self.session.read.parquet(*staged)
        counts = [parquet.read_metadata(path).num_rows for path in staged]
        # A row's number in the step: those of the files before its own, and its place in that.
        before = dict(zip((Path(path).name for path in staged), accumulate([0, *counts]), strict=False))
        start = create_map(*(lit(part) for pair in before.items() for part in pair))
        number = start[col("_metadata.file_name")] + col("_metadata.row_index")
        columns = [col(f"`{name}`") for name in rows.columns]
        value = to_json(struct(*columns, lit(step).alias(BATCH), number.alias(ROW)), WRITTEN)
        key = col(f"`{self._key}`").cast("string") if self._key else lit(None).cast("string")
        return rows.select(key.alias("key"), value.alias("value"))


class TransactionalKafkaSink(KafkaSink):
    """Exactly once, to readers of committed messages: a step is a transaction, which also notes the step.

    The note is the offset of a consumer group that nobody reads with; it stands in Kafka if and only if the
    step's messages do. The driver sends them all, so this is for results rather than for floods.
    """

    exactly_once = True

    def __init__(self, name: str, options: Mapping[str, Any], directory: str) -> None:
        super().__init__(name, options, directory)
        self._identity = self._mark.with_name(f"{self._mark.name}.producer")
        self._producer: Any = None

    def close(self) -> None:
        """Let go of the connection."""
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def _send(self, step: int, staged: Sequence[str]) -> None:
        if self._producer is None:
            self._connect()
            # Only now: a step that was under way when an earlier run died is decided by connecting.
            if self._noted() > step:
                return
        producer, topic, kafka = self._producer, self._options[TOPIC], self._kafka
        producer.beginTransaction()
        try:
            for message in self._messages(step, staged).collect():
                producer.send(kafka.clients.producer.ProducerRecord(topic, message.key, message.value))
            note = self._java.java.util.HashMap()
            note.put(
                kafka.common.TopicPartition(topic, 0), kafka.clients.consumer.OffsetAndMetadata(step + 1)
            )
            group = kafka.clients.consumer.ConsumerGroupMetadata(self._name_in_kafka())
            producer.sendOffsetsToTransaction(note, group)
            producer.commitTransaction()
        except BaseException:
            # What was sent is not committed, and the next connection takes it back.
            self.close()
            raise

    def _connect(self) -> None:
        settings = self._settings()
        settings.put("transactional.id", self._name_in_kafka())
        text = self._kafka.common.serialization.StringSerializer
        self._producer = self._kafka.clients.producer.KafkaProducer(settings, text(), text())
        self._producer.initTransactions()

    def _noted(self) -> int:
        """One more than the last step that is in Kafka; 0 if there is none."""
        name, topic = self._name_in_kafka(), self._options[TOPIC]
        admin = self._kafka.clients.admin.Admin.create(self._settings())
        try:
            found = admin.listConsumerGroupOffsets(name).partitionsToOffsetAndMetadata().get()
            note = found.get(self._kafka.common.TopicPartition(topic, 0))
        finally:
            admin.close()
        return 0 if note is None else int(note.offset())

    def _settings(self) -> Any:
        settings = self._java.java.util.HashMap()
        for name, value in self._options.items():
            if name.startswith(PREFIX):
                settings.put(name.removeprefix(PREFIX), value)
        return settings

    @property
    def _java(self) -> Any:
        assert self.session is not None
        return self.session._jvm

    @property
    def _kafka(self) -> Any:
        return self._java.org.apache.kafka

    def _name_in_kafka(self) -> str:
        """The sink's name to the broker, the same after a restart from the same checkpoint."""
        if not self._identity.exists():
            write_whole(self._identity, f"levelwind-{uuid4().hex}".encode())
        return self._identity.read_text()


def check_connector(session: SparkSession) -> None:
    """Refuse to go on without Spark's Kafka connector, and say how to get it."""
    loader = session._jvm.Thread.currentThread().getContextClassLoader()
    if loader.getResource("org/apache/spark/sql/kafka010/KafkaSourceProvider.class") is None:
        message = (
            "Spark has no Kafka connector. Hint: --conf spark.jars.packages="
            f"{CONNECTOR}:{session.version}, or its jars in --conf spark.jars"
        )
        raise RunError(message)
