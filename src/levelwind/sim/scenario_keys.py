"""The scenario file, written down once: every key, what it holds, what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from levelwind.frontend.cluster_keys import NODE
from levelwind.frontend.containers import Key, ListOf, OneOrMore, Record
from levelwind.frontend.declared import (
    CPU_SECONDS,
    DURATION,
    POSITIVE_DURATION,
    Choice,
    Flag,
    Integer,
    JsonSchema,
    Kind,
    Number,
    Text,
)
from levelwind.frontend.document import KeyPath
from levelwind.frontend.report import BAD, Report, Said
from levelwind.sim.workloads import PHASES

MOST_NODES = 100_000


@dataclass(frozen=True, slots=True)
class Range:
    """One value, or the two bounds of a uniform distribution."""

    item: Kind

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """Both bounds, equal if a single value was given."""
        if not isinstance(value, list):
            one = self.item.read(value, path, report)
            return BAD if one is BAD else (one, one)
        if len(value) != 2:
            return report.refuse(path, "must be one value, or a list of the least and the largest", value)
        low, high = (self.item.read(item, (*path, i), report) for i, item in enumerate(value))
        if low is BAD or high is BAD:
            return BAD
        if low > high:
            return report.refuse(
                path, "the least must not be above the largest", Said(f"{value[0]}, {value[1]}")
            )
        return (low, high)

    def schema(self) -> JsonSchema:
        """A value or an array of two."""
        item = self.item.schema()
        return {"anyOf": [item, {"type": "array", "items": item, "minItems": 2, "maxItems": 2}]}


@dataclass(frozen=True, slots=True)
class NameWithOptions:
    """A name, or a mapping of ``name`` and options."""

    what: str

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """The name and the options as written."""
        if isinstance(value, dict):
            if "name" not in value:
                return report.refuse(path, f"{self.what} must have 'name'", hint="or write the name alone")
            name = Text(f"the name of {self.what}").read(value["name"], (*path, "name"), report)
            options = {key: item for key, item in value.items() if key != "name"}
            return BAD if name is BAD else (name, options)
        name = Text(f"the name of {self.what}").read(value, path, report)
        return BAD if name is BAD else (name, {})

    def schema(self) -> JsonSchema:
        """A string, or an object with a name."""
        return {"anyOf": [{"type": "string"}, {"type": "object", "required": ["name"]}]}


GENERATE = Record(
    "generate",
    {
        "chains": Key(Integer(), "number of chains, each with a stream of its own", required=True),
        "length": Key(Integer(), "operators in each chain", required=True),
        "cost": Key(Range(CPU_SECONDS), "CPU time per row, default 1ms"),
        "selectivity": Key(Range(Number()), "rows out per row in, default [0.8, 1.2]"),
    },
)

_PHASES = Key(Choice(PHASES), "where in its cycle each stream begins: even (default) | random")
KINDS = {
    "periodic": {
        "ratio": Key(Number(least=1.0), "high rate over low rate, default 4"),
        "period": Key(POSITIVE_DURATION, "high and low together, default 10s"),
        "phases": _PHASES,
    },
    "onoff": {
        "on": Key(POSITIVE_DURATION, "mean length of a burst, default 5s"),
        "off": Key(POSITIVE_DURATION, "mean length of a silence, default 5s"),
        "independent": Key(Number(), "share of the streams that follow no other, default 1/3"),
    },
    "poisson": {},
    "trace": {
        "path": Key(Text("a CSV file"), "the recording", required=True),
        "columns": Key(
            OneOrMore(Text("a column")), "which columns; streams take them in turn. Default: last"
        ),
        "values": Key(Choice(("rates", "times")), "rows per second (default), or the seconds rows came at"),
        "step": Key(POSITIVE_DURATION, "time between two samples of a rate, default 1s"),
        "phases": _PHASES,
    },
}


@dataclass(frozen=True, slots=True)
class WorkloadOfKind:
    """A workload: the keys it knows depend on its kind."""

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """The values of its keys."""
        kind = value.get("kind") if isinstance(value, dict) else None
        keys = KINDS.get(kind, {}) if isinstance(kind, str) else {}
        if isinstance(kind, str) and kind in KINDS:
            return self._record(kind, keys).read(value, path, report)
        # The other keys cannot be judged without a kind: only what is wrong with the kind is told.
        if not isinstance(value, dict):
            return report.refuse(path, "a workload must be a mapping", value, "such as {kind: poisson}")
        if kind is None:
            rule, hint = "a workload must have 'kind'", "one of " + ", ".join(KINDS)
            return report.refuse((*path, "kind"), rule, hint=hint)
        Choice(tuple(KINDS)).read(kind, (*path, "kind"), report)
        return BAD

    def schema(self) -> JsonSchema:
        """One schema per kind."""
        found = []
        for kind, keys in KINDS.items():
            schema = self._record(kind, keys).schema()
            schema["properties"]["kind"] = {"const": kind}
            found.append(schema)
        return {"oneOf": found}

    @staticmethod
    def _record(kind: str, keys: dict[str, Key]) -> Record:
        own = {"kind": Key(Choice(tuple(KINDS)), "periodic | onoff | poisson | trace", required=True), **keys}
        elsewhere = {
            key: f"a workload of kind {other}"
            for other, known in KINDS.items()
            for key in known
            if key not in own
        }
        return Record(f"a workload of kind {kind}", own, elsewhere=elsewhere)


STATISTICS = Record(
    "statistics",
    {
        "window": Key(POSITIVE_DURATION, "how far back decisions look, default 10s"),
        "samples": Key(Integer(), "samples in the window, default 10"),
    },
)
CHANGE = Record(
    "an event",
    {
        "at": Key(DURATION, "time since recording began", required=True),
        "lost": Key(Text("a node"), "a node that does not answer any more"),
        "joined": Key(NODE, "a node that can be used from then on"),
        "added": Key(OneOrMore(Text("a query")), "outputs or queries that are there from then on"),
        "removed": Key(OneOrMore(Text("a query")), "outputs or queries that are gone from then on"),
    },
    one_of=(("lost", "joined", "added", "removed"),),
)
SCENARIO = Record(
    "a scenario file",
    {
        "network": Key(Text("a network file"), "the network"),
        "generate": Key(GENERATE, "chains of operators made by chance, instead of a network"),
        "cluster": Key(Text("a cluster file"), "the cluster"),
        "nodes": Key(Integer(), "a number of equal nodes, instead of a cluster"),
        "workload": Key(WorkloadOfKind(), "how rates vary, default {kind: poisson}"),
        "load": Key(Number(least=None, above=0.0), "system load level; without it rates are as stated"),
        "start": Key(Text("random, connected or a placement file"), "where operators stand first"),
        "planner": Key(NameWithOptions("a planner"), "makes a plan after the warm-up"),
        "policy": Key(NameWithOptions("a policy"), "moves operators while it runs"),
        "statistics": Key(STATISTICS, "what planner and policy see"),
        "period": Key(POSITIVE_DURATION, "of the policy, default 1s"),
        "migration": Key(DURATION, "how long an operator is suspended when it moves, default 200ms"),
        "moved_load_budget": Key(Number(), "most load that may move per period"),
        "scheduling": Key(
            NameWithOptions("a scheduler"),
            "which waiting row a node takes next: fifo (default) | round_robin | chain | adaptive",
        ),
        "silent_after": Key(
            POSITIVE_DURATION, "nodes send heartbeats; one silent for longer is dropped. Two periods at least"
        ),
        "groups": Key(
            Text("a property of nodes"), "nodes with the same value form a group with a manager of its own"
        ),
        "warmup": Key(POSITIVE_DURATION, "before recording starts, default 20s"),
        "duration": Key(POSITIVE_DURATION, "of the recording, default 120s"),
        "clean": Key(Flag(), "the plan is in place on empty queues when recording starts; default false"),
        "events": Key(ListOf(CHANGE), "nodes lost and joined, queries added and removed"),
        "reuse": Key(Flag(), "compute equal operators over equal inputs once; default false"),
    },
    one_of=(("network", "generate"), ("cluster", "nodes")),
)


def scenario_schema() -> JsonSchema:
    """The JSON Schema (draft 2020-12) of the scenario file."""
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "title": "Levelwind scenario", **SCENARIO.schema()}
