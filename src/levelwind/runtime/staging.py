"""Rows that leave the network, written aside until their step is committed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pyarrow.parquet as parquet

from levelwind.operators.rows import ORDER, Rejected
from levelwind.runtime.messages import Staged

# The name under which dead letters are staged; no output can have it.
DEAD_LETTERS = ""


class Stage:
    """Writes one task's rows for outputs and dead letters; nothing is seen before the commit."""

    def __init__(self, folders: Mapping[str, str], name: str) -> None:
        self._folders = folders
        self._name = name
        self._dead: list[pl.DataFrame] = []
        self.staged: list[Staged] = []
        self.files: list[Path] = []

    def put(self, output: str, rows: pl.DataFrame, rank: int) -> None:
        """Rows of an output; ``rank`` orders what several producers put out.

        An output without a folder is counted, not written: nobody will read it.
        """
        if not self._folders[output]:
            self.staged.append(Staged(output, "", rows.height, rank))
            return
        folder = Path(self._folders[output])
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self._name}-{len(self.staged)}.parquet"
        parquet.write_table(as_written(rows).to_arrow(), path)
        self.files.append(path)
        self.staged.append(Staged(output, str(path), rows.height, rank))

    def reject(self, operator: str, rejected: Rejected) -> None:
        """Rows that an operator could not process."""
        if DEAD_LETTERS in self._folders:
            self._dead.append(dead_letters(operator, rejected))

    def close(self) -> None:
        """Write the dead letters, all in one file."""
        if self._dead:
            self.put(DEAD_LETTERS, pl.concat(self._dead), 0)


def as_written(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows as sinks get them: without the hidden rank, ``_`` for the dot in names."""
    if ORDER in rows.columns:
        rows = rows.drop(ORDER)
    if any("." in name for name in rows.columns):
        rows = rows.rename({name: name.replace(".", "_") for name in rows.columns if "." in name})
    return rows


def dead_letters(operator: str, rejected: Rejected) -> pl.DataFrame:
    """Bad rows in one form for all operators: who refused them, why, and the row as JSON."""
    return pl.DataFrame(
        {
            "operator": pl.repeat(operator, rejected.rows.height, dtype=pl.String, eager=True),
            "reason": rejected.reasons.cast(pl.String),
            "row": as_json(rejected.rows),
        }
    )


def as_json(rows: pl.DataFrame) -> pl.Series:
    """Each row as a JSON object."""
    rows = as_written(rows)
    if rows.width == 0:
        return pl.repeat("{}", rows.height, dtype=pl.String, eager=True)
    columns = [_as_text(pl.col(name), kind).alias(name) for name, kind in rows.schema.items()]
    return rows.select(pl.struct(columns).struct.json_encode().alias("row")).to_series()


def _as_text(value: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """With Base64 for bytes, as Spark has it in JSON: Polars has no form for them."""
    if isinstance(kind, pl.Binary):
        return value.bin.encode("base64")
    if "Binary" not in str(kind):
        return value
    if isinstance(kind, pl.List):
        return value.list.eval(_as_text(pl.element(), kind.inner))  # type: ignore[arg-type]
    if isinstance(kind, pl.Struct):
        parts = [(part.name, part.dtype) for part in kind.fields]
        fields = [_as_text(value.struct.field(name), dtype).alias(name) for name, dtype in parts]  # type: ignore[arg-type]
        return pl.when(value.is_not_null()).then(pl.struct(fields))
    return value
