"""Queries in SQL, as operators over batches of any cut, against one query over all rows."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import polars as pl
import pytest
from arrivals import bag, query
from hypothesis import given, settings
from hypothesis import strategies as st

from levelwind.frontend import parse_network
from levelwind.operators.rows import TIME
from levelwind.runtime.coordinator import Coordinator
from levelwind.runtime.inprocess import InProcess
from levelwind.runtime.memory import forget
from levelwind.runtime.program import Layout
from levelwind.runtime.sinks import ParquetSink
from levelwind.runtime.staging import DEAD_LETTERS

SECOND = 1_000_000
SCHEMA = {"ts": "timestamp", "k": "string", "v": "bigint"}
NODES = ("n1", "n2")
# By name: the query, and what DuckDB is asked; None where that is the same text. It has no window(…):
# w stands for the window's start in microseconds, of tumbling windows of 4 s.
TUMBLING = "(SELECT *, epoch_us(ts) // 4000000 * 4000000 AS w FROM {})"
SLIDING = (
    "(SELECT a.*, (epoch_us(ts) // 1000000 - i) * 1000000 AS w FROM a CROSS JOIN range(3) r(i))"  # 3 s by 1 s
)
CASES: dict[str, tuple[str, str | None]] = {
    "kept": (
        "SELECT * FROM a WHERE v > 1 OR k IS NULL",
        "SELECT epoch_us(ts), k, v FROM a WHERE v > 1 OR k IS NULL",
    ),
    "mapped": ("SELECT upper(K) AS u, v * 2 + 1 AS d FROM a WHERE NOT (v > 3 AND k = 'x')", None),
    "nested": (
        "WITH c AS (SELECT k, v * 2 AS d FROM a WHERE v < 5) "
        "SELECT t.d + 1 AS e FROM (SELECT d, k FROM c WHERE d > 2) t WHERE t.k = 'x'",
        None,
    ),
    "united": (
        "SELECT k, v FROM a WHERE v > 2 UNION ALL SELECT k, -v FROM b UNION ALL (SELECT 'z', v FROM a)",
        None,
    ),
    "counted": (
        "SELECT k, count(*) AS n, sum(v) AS s FROM a GROUP BY k, window(ts, '4 seconds')",
        f"SELECT k, count(*), sum(v)::bigint FROM {TUMBLING.format('a')} GROUP BY k, w",
    ),
    "bounded": (
        "SELECT window, max(v) - min(v) AS r FROM a WHERE v IS NOT NULL GROUP BY window(ts, '4 seconds')",
        f"SELECT w, w + 4000000, max(v) - min(v) FROM {TUMBLING.format('a')} WHERE v IS NOT NULL GROUP BY w",
    ),
    "slid": (
        "SELECT v % 2 AS odd, count(k) AS n, count(*) + 1 AS m, window.end AS e FROM a"
        " GROUP BY 1, window(ts, '3 seconds', '1 second') HAVING m > 2 AND sum(v) < 9",
        f"SELECT v % 2, count(k), count(*) + 1, w + 3000000 FROM {SLIDING}"
        " GROUP BY v % 2, w HAVING count(*) > 1 AND sum(v) < 9",
    ),
    "grouped": (
        "SELECT upper(k) AS k FROM b GROUP BY upper(k), window(ts, INTERVAL 4 SECONDS)",
        f"SELECT upper(k) FROM {TUMBLING.format('b')} GROUP BY upper(k), w",
    ),
    "twice": (
        "SELECT sum(n) AS n, count(*) AS g FROM counted GROUP BY window(window_time, '8 seconds')",
        f"SELECT sum(n)::bigint, count(*) FROM (SELECT k, w, count(*) AS n FROM {TUMBLING.format('a')}"
        " GROUP BY k, w) GROUP BY w // 8000000",
    ),
    "paired": (
        "SELECT x.k, x.v, y.v AS w FROM a x JOIN b y ON x.k = y.k"
        " AND x.ts BETWEEN y.ts - INTERVAL 2 SECONDS AND y.ts + INTERVAL 2 SECONDS"
        " WHERE x.v > 1 AND x.v <> y.v",
        None,
    ),
    "after": (
        "SELECT x.v, y.v AS w FROM a x, b y"
        " WHERE y.ts > x.ts AND y.ts - x.ts <= INTERVAL '1500' MILLISECONDS",
        None,
    ),
    "three": (
        "SELECT x.v, y.v AS w, z.v AS u FROM a x JOIN b y ON x.ts = y.ts JOIN a z"
        " ON z.ts >= y.ts AND z.ts <= x.ts + INTERVAL 1 SECOND AND z.k = x.k",
        None,
    ),
    "windows": (
        "SELECT x.k, x.n, y.n AS m FROM"
        " (SELECT k, count(*) AS n, window FROM a GROUP BY k, window(ts, '4 seconds')) x"
        " JOIN (SELECT k, count(*) AS n, window FROM b GROUP BY k, window(ts, '4 seconds')) y"
        " ON x.window_end = y.window_end AND x.k = y.k",
        "SELECT x.k, x.n, y.n FROM"
        f" (SELECT k, w, count(*) AS n FROM {TUMBLING.format('a')} GROUP BY k, w) x JOIN"
        f" (SELECT k, w, count(*) AS n FROM {TUMBLING.format('b')} GROUP BY k, w) y"
        " ON x.w = y.w AND x.k = y.k",
    ),
}
COLUMNS = {"kept": ["ts", "k", "v"], "bounded": ["window_start", "window_end", "r"]}


def network():
    stream = {"schema": SCHEMA, "time": "ts"}
    told = {
        "streams": {"a": stream, "b": stream},
        "queries": {name: sql for name, (sql, _) in CASES.items()},
        "outputs": {name: {"input": name} for name in CASES},
    }
    return parse_network(told).network


NETWORK = network()
LAYOUT = Layout(NETWORK)
PLACEMENT = {box.name: NODES[number % 2] for number, box in enumerate(LAYOUT.boxes)}


@st.composite
def rows(draw):
    """A stream in order of time, by half seconds, so that rows of one time are common."""
    drawn = draw(
        st.lists(
            st.tuples(
                st.integers(0, 24),
                st.sampled_from(["x", "y", "Y", None]),
                st.one_of(st.none(), st.integers(0, 6)),
            ),
            max_size=14,
        )
    )
    drawn.sort(key=lambda row: row[0])
    times = pl.Series([t * SECOND // 2 for t, _, _ in drawn], dtype=pl.Int64)
    return pl.DataFrame(
        {
            "ts": times.cast(TIME),
            "k": pl.Series([k for _, k, _ in drawn], dtype=pl.String),
            "v": pl.Series([v for _, _, v in drawn], dtype=pl.Int64),
        }
    )


def answers(a, b, cuts):
    """The rows of every query, as found in its sink."""
    folder = Path(tempfile.mkdtemp())
    try:
        forget()
        sinks = {name: ParquetSink(str(folder / (name or "dead"))) for name in (*CASES, DEAD_LETTERS)}
        coordinator = Coordinator(
            LAYOUT,
            NODES,
            PLACEMENT,
            directory=str(folder / "checkpoint"),
            executor=InProcess(),
            sinks=sinks,
            clock=lambda: 0.0,
        )
        coordinator.recover()
        bounds = [0, *cuts, 25]
        for number, low in enumerate(bounds[:-1]):
            inside = (
                pl.col("ts")
                .to_physical()
                .is_between(low * SECOND // 2, bounds[number + 1] * SECOND // 2, closed="left")
            )
            coordinator.step([[("a", a.filter(inside))], [("b", b.filter(inside))]], batch=number)
        coordinator.close()
        found = {}
        for name in (*CASES, DEAD_LETTERS):
            files = sorted((folder / (name or "dead")).glob("*.parquet"))
            found[name] = pl.concat([pl.read_parquet(file) for file in files]) if files else None
        return found
    finally:
        shutil.rmtree(folder)


@settings(max_examples=25)
@given(rows(), rows(), st.lists(st.integers(1, 24), max_size=3, unique=True).map(sorted))
def test_answers(a, b, cuts):
    found = answers(a, b, cuts)
    assert found.pop(DEAD_LETTERS) is None
    for name, frame in found.items():
        sql, asked = CASES[name]
        time = LAYOUT.types[NETWORK.outputs[name].input].time
        columns = [column.name for column in NETWORK.operators[name].schema if column.name != time]
        expected = bag(query(asked or sql, a=a, b=b))
        if frame is None:
            assert not expected, name
            continue
        assert time in frame.columns
        told = frame.select(COLUMNS.get(name, columns))
        times = [
            pl.col(name).to_physical() for name, kind in told.schema.items() if isinstance(kind, pl.Datetime)
        ]
        assert bag(told.with_columns(times).rows()) == expected, name


@pytest.mark.parametrize("name", CASES)
def test_every_query_ends_in_its_own_operator(name):
    own = [operator for operator in NETWORK.operators.values() if operator.properties["query"] == name]
    assert own[-1].name == name
    assert all(operator.name.startswith(f"{name}.") for operator in own[:-1])
