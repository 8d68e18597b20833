"""Streams as Spark reads them, with records that are no rows set apart instead of ending the run.

A record that cannot be read as a row (a Kafka message that is not the JSON it should be, a line of a file
with a word where a number belongs) carries its text in the hidden column `CORRUPT`; where rows enter the
network it becomes a dead letter. Sound rows have a null there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import coalesce, col, concat, from_json, is_valid_utf8, lit, make_valid_utf8, when

from levelwind.errors import Problem
from levelwind.model import Column as ColumnType
from levelwind.model import Schema, Stream
from levelwind.runtime.entry import CORRUPT
from levelwind.runtime.sources import reader_options
from levelwind.spark.intake import select_schema, spark_schema

KAFKA = "kafka"
# What every Kafka message has, whatever is in it.
RECORD = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
JSON, RAW = "json", "raw"
# Options of ours; the others go to Spark.
VALUE, FROM_RECORD = "value", "record"
# Sources that bring a schema of their own and refuse one.
OWN_SCHEMA = ("rate", "rate-micro-batch", "socket", KAFKA)
# Files of text, in which there may be anything.
TEXT_FILES = ("csv", "json")
PERMISSIVE = "permissive"


def read_stream(session: SparkSession, stream: Stream) -> DataFrame:
    """A stream's source as a streaming DataFrame of its columns, with `CORRUPT` where records may be bad."""
    assert stream.source is not None
    kind = str(stream.source["format"])
    options = reader_options(stream.source, stream.time)
    reader = session.readStream.format(kind)
    if kind == KAFKA:
        for name in (VALUE, FROM_RECORD):
            options.pop(name, None)
        frame = reader.options(**options).load()
        assert stream.schema is not None
        if value_format(stream.source, stream.schema) == RAW:
            return frame.select(*(_of_record(column) for column in stream.schema))
        return _from_json(frame, stream.schema, record_columns(stream.source))
    if stream.schema is None or kind in OWN_SCHEMA:
        return select_schema(reader.options(**options).load(), stream.schema)
    schema = spark_schema(stream.schema)
    if _sets_bad_apart(kind, options):
        options["columnNameOfCorruptRecord"] = CORRUPT
        frame = reader.options(**options).schema(f"{schema}, `{CORRUPT}` string").load()
        return frame.withColumn(CORRUPT, make_valid_utf8(col(CORRUPT)))
    return select_schema(reader.options(**options).schema(schema).load(), stream.schema)


def value_format(source: Mapping[str, Any], schema: Schema) -> str:
    """How a Kafka message's value is read: as stated, else as JSON if there are columns to find in it."""
    stated = source.get(VALUE)
    if stated is not None:
        return str(stated)
    return RAW if all(column.name in RECORD for column in schema) else JSON


def record_columns(source: Mapping[str, Any]) -> tuple[str, ...]:
    """Columns that are taken from the Kafka message itself, and not out of its value."""
    stated = source.get(FROM_RECORD, ())
    names = stated.split(",") if isinstance(stated, str) else stated
    return tuple(str(name).strip() for name in names)


def check_kafka_source(source: Mapping[str, Any], schema: Schema, at: str) -> list[Problem]:
    """What is wrong with how a Kafka source is to be decoded."""
    stated = str(source.get(VALUE, JSON))
    if stated not in (JSON, RAW):
        return [Problem(rule="must be json or raw", key=f"{at}.{VALUE}", value=stated)]
    problems = []
    names = [column.name for column in schema]
    own = ", ".join(RECORD)
    for name in record_columns(source):
        if name not in RECORD or name not in names:
            rule, hint = "must name columns of the stream that every Kafka message has", f"there are {own}"
            problems.append(Problem(rule=rule, key=f"{at}.{FROM_RECORD}", value=name, hint=hint))
    if value_format(source, schema) == RAW:
        rule, hint = "a raw Kafka stream must have Kafka's own columns alone", f"there are {own}"
        problems += [
            Problem(rule=rule, key=f"{at}.{VALUE}", value=name, hint=hint)
            for name in names
            if name not in RECORD
        ]
    return problems


def _from_json(frame: DataFrame, schema: Schema, record: Sequence[str]) -> DataFrame:
    """Kafka messages with the stream's columns read out of their values."""
    text = col("value").cast("string")
    readable = make_valid_utf8(text)
    inside = tuple(column for column in schema if column.name not in record)
    # As a part of a larger object, so that anything behind the value's own end is an error too.
    whole = concat(lit('{"value":'), readable, lit("}"))
    shape = f"value struct<{_fields(inside)}>, `{CORRUPT}` string"
    read = from_json(whole, shape, {"columnNameOfCorruptRecord": CORRUPT})
    parsed = frame.withColumn("__read", read)
    broken = (
        col(f"__read.`{CORRUPT}`").isNotNull()
        | col("__read.value").isNull()
        | ~coalesce(is_valid_utf8(text), lit(True))
    )
    columns = [
        _of_record(column)
        if column.name in record
        else col(f"__read.value.`{column.name}`").alias(column.name)
        for column in schema
    ]
    # A message without a value has no text; there must be one to tell that it is bad.
    return parsed.select(*columns, when(broken, coalesce(readable, lit("null"))).alias(CORRUPT))


def _of_record(column: ColumnType) -> Column:
    """One of Kafka's own columns; keys and values are bytes, which need not be text."""
    found = col(column.name).cast(column.type)
    return (make_valid_utf8(found) if column.type == "string" else found).alias(column.name)


def _fields(schema: Schema) -> str:
    return ", ".join(f"`{column.name}`: {column.type}" for column in schema)


def _sets_bad_apart(kind: str, options: Mapping[str, str]) -> bool:
    """Whether bad records of files can be set apart: not if the user has a way of their own with them."""
    stated = {name.lower(): value.lower() for name, value in options.items()}
    return (
        kind in TEXT_FILES
        and stated.get("mode", PERMISSIVE) == PERMISSIVE
        and "columnnameofcorruptrecord" not in stated
    )
