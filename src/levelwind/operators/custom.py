"""Custom: calls a Python function of the user's on the rows of each batch.

The function is named ``module:name`` and has one of these forms, told apart by its parameters:

``f(rows)``
    Without memory. Gets a Polars frame, returns one (or an Arrow table or record batch, or a dictionary of
    columns).
``f(rows, state)``
    With memory. ``state`` is the frame it returned as state the last time, None at first; it returns the pair
    ``(rows, new state)``. To say that nothing has changed, it returns the very ``state`` it was given, which
    it must not change in place.
``f(rows, state, *, closing=False)``, ``f(rows, *, closing=False)``
    Is called once more, with no rows and ``closing=True``, when there will be no more rows.

It is called once per batch in which rows have arrived, for each instance of the operator. What is the duty
of the function's author, because nobody else can see to it:

- The rows put out must not depend on where batches are cut: of two batches in turn it must put out, in all,
  what it would put out of both in one.
- No row put out may have an event time below the input's watermark as it was before the batch: operators
  downstream take such a row for late.
- A function that returns as many rows as it got must keep them in order: the event time, where it does not
  return one, and the hidden order of rows are carried over row by row.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import polars as pl

from levelwind.errors import InputError, LevelwindError, did_you_mean, input_error
from levelwind.model import Operator
from levelwind.model.operator import Custom
from levelwind.operators.expressions.sparktypes import dtype_of
from levelwind.operators.protocol import Kernel, Stepped
from levelwind.operators.rows import END, ORDER, TIME, Arrived, Rejected, RowType
from levelwind.operators.state import Segment, State, Table

Function = Callable[..., Any]
Pair = tuple[pl.DataFrame, pl.DataFrame | None]

# The state: a table of the function's own frame, as one segment; and a mark, 1 once the function has closed.
TABLE, CLOCK, CLOSED = "custom", "clock", "closed"
# The order of rows that a function puts out when it closes: after all others.
LAST = 2**62


def make_custom(operator: Operator, inputs: Sequence[RowType]) -> Kernel:
    """The kernel of a custom operator; a function that is not there or cannot be called is an input error."""
    spec = operator.spec
    assert isinstance(spec, Custom)
    key = f"operators.{operator.name}.function"
    function = find_function(spec.function, key)
    stateful, closes = _form(spec.function, key, function)
    time = inputs[0].time
    schema: dict[str, pl.DataType | None] = {column.name: dtype_of(column.type) for column in spec.schema}
    if time is not None:
        schema.setdefault(time, TIME)
    return Caller(
        _Call(operator.name, spec.function, function, stateful=stateful),
        closes=closes,
        form=_Form(operator.name, spec.function, schema, time),
    )


def find_function(path: str, key: str) -> Function:
    """The function that ``module:name`` means; ``key`` says where it is written."""
    module_name, _, name = path.partition(":")
    if not module_name or not name:
        raise _refused(key, path, "must be 'module:name'")
    try:
        found: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        hint = f"there is no module {error.name!r}: install it, or put its folder on PYTHONPATH"
        raise _refused(key, path, "the function's module must exist", hint) from error
    except Exception as error:
        hint = f"importing {module_name!r} raised {type(error).__name__}: {error}"
        raise _refused(key, path, "the function's module must import", hint) from error
    for part in name.split("."):
        if not hasattr(found, part):
            hint = did_you_mean(part, [known for known in dir(found) if not known.startswith("_")])
            raise _refused(key, path, "the function must exist in its module", hint)
        found = getattr(found, part)
    if not callable(found):
        raise _refused(key, path, "must name a function", f"it is a {type(found).__name__}")
    function: Function = found
    return function


def _form(path: str, key: str, function: Function) -> tuple[bool, bool]:
    """Whether the function has a state, and whether it wants to be told of the end."""
    parameters = dict(inspect.signature(function).parameters)
    closes = parameters.pop("closing", None) is not None
    positional = [p for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = [p for p in parameters.values() if p.default is p.empty and p.kind == p.KEYWORD_ONLY]
    needed = [p for p in positional if p.default is p.empty]
    if not positional or len(needed) > 2 or named:
        hint = f"its parameters are {inspect.signature(function)}"
        rule = "must be a function f(rows), f(rows, state) or f(rows, state, *, closing=False)"
        raise _refused(key, path, rule, hint)
    # A second parameter that need not be given is the state only if it is called so.
    return len(needed) == 2 or (len(positional) > 1 and positional[1].name == "state"), closes


def _refused(key: str, path: str, rule: str, hint: str | None = None) -> InputError:
    return input_error(rule, key=key, value=path, hint=hint)


@dataclass(frozen=True, slots=True)
class _Call:
    """A function of either form, called as one that takes and returns rows and state."""

    operator: str
    path: str
    function: Function
    stateful: bool

    def __call__(self, rows: pl.DataFrame, state: pl.DataFrame | None, **closing: bool) -> tuple[Any, Any]:
        if not self.stateful:
            return self.function(rows, **closing), None
        returned = self.function(rows, state, **closing)
        if not isinstance(returned, tuple) or len(returned) != 2:
            message = (
                f"operator {self.operator!r}: {self.path} must return a pair, rows and state, "
                f"and returned a {type(returned).__name__}"
            )
            raise _WrongFormError(message)
        return returned


class _WrongFormError(LevelwindError):
    """The function returned something it must not, whatever the rows: no row is to blame."""


@dataclass(frozen=True, slots=True)
class _Form:
    """What the function must return: columns and their types, None where any type will do."""

    operator: str
    path: str
    schema: Mapping[str, pl.DataType | None]
    time: str | None

    def check(self, returned: Any, given: pl.DataFrame) -> pl.DataFrame:
        """The returned rows in the declared form; ``given`` are the rows the function was called with."""
        frame = self.frame(returned)
        extra = [name for name in frame.columns if name not in self.schema]
        if extra:
            declared = ", ".join(self.schema)
            raise self._wrong(extra[0], f"no such column (declared: {declared})", str(frame.schema[extra[0]]))
        columns = []
        for name, dtype in self.schema.items():
            if name in frame.columns:
                columns.append(self._typed(frame.get_column(name), dtype))
            elif name == self.time and frame.height == given.height:
                columns.append(given.get_column(name))
            else:
                found = "no such column"
                if name == self.time:
                    found += f", and {frame.height} rows for {given.height}, so it cannot be carried along"
                raise self._wrong(name, str(dtype or "a column"), found)
        if self.time is not None and columns[list(self.schema).index(self.time)].has_nulls():
            raise self._wrong(self.time, "an event time in every row", "null")
        if ORDER in given.columns:
            columns.append(_order(frame.height, given))
        return pl.DataFrame(columns)

    def frame(self, returned: Any) -> pl.DataFrame:
        """What the function returned as a Polars frame."""
        if isinstance(returned, pl.DataFrame):
            return returned
        arrow = hasattr(returned, "__arrow_c_stream__") or hasattr(returned, "__arrow_c_array__")
        problem = f"it returned a {type(returned).__name__}"
        if isinstance(returned, Mapping) or (arrow and not isinstance(returned, pl.Series)):
            try:
                return pl.DataFrame(returned)
            except Exception as error:  # columns of different lengths, values of no type
                problem = f"{problem} that is no table: {error}"
        message = (
            f"operator {self.operator!r}: {self.path} must return a frame, an Arrow table or a dictionary of "
            f"columns; {problem}"
        )
        raise LevelwindError(message)

    def _typed(self, column: pl.Series, dtype: pl.DataType | None) -> pl.Series:
        """A column in the declared type, if no value changes by that."""
        if dtype is None or column.dtype == dtype:
            return column
        found = str(column.dtype)
        if isinstance(dtype, pl.Datetime) and isinstance(column.dtype, pl.Datetime):
            # Times are UTC: one without a zone is meant so, one of another zone is the same moment.
            column = column.dt.replace_time_zone("UTC") if column.dtype.time_zone is None else column
            column = column.dt.convert_time_zone("UTC")
            column = column if dtype.time_zone else column.dt.replace_time_zone(None)
        if not _may_cast(column.dtype, dtype):
            raise self._wrong(column.name, str(dtype), found)
        cast = column.cast(dtype, strict=False)
        if not cast.cast(column.dtype, strict=False).eq_missing(column).all():
            raise self._wrong(column.name, str(dtype), f"{found}, with values that do not fit")
        return cast

    def _wrong(self, column: str, expected: str, found: str) -> LevelwindError:
        return LevelwindError(
            f"operator {self.operator!r}: {self.path} returned a wrong column {column!r}: "
            f"expected {expected}, found {found}. Hint: what it returns must match the operator's 'schema'"
        )


def _may_cast(found: pl.DataType, wanted: pl.DataType) -> bool:
    """Whether values of one type can mean those of another; numbers do not mean texts, say."""
    if isinstance(found, pl.Null) or (found.is_numeric() and wanted.is_numeric()):
        return True
    if isinstance(found, pl.Date | pl.Datetime) and isinstance(wanted, pl.Datetime):
        return True
    return isinstance(found, pl.Categorical | pl.Enum) and isinstance(wanted, pl.String)


def _order(height: int, given: pl.DataFrame) -> pl.Series:
    """The hidden order of rows put out: of as many as came in their own, else that of the last that came."""
    order = given.get_column(ORDER)
    if height == given.height:
        return order
    last = order.max() if given.height else LAST
    return pl.Series(ORDER, [last], dtype=pl.Int64).new_from_index(0, height)


@dataclass(frozen=True, slots=True)
class Caller:
    """Calls the function on every batch, and finds the rows it fails on.

    If the function raises, its rows are halved until the failing ones stand alone; these are rejected and
    the others processed, with the state that those before them have left. O(failing · log(rows)) calls.
    """

    call: _Call
    closes: bool
    form: _Form
    _nothing: dict[bool, pl.DataFrame] = field(default_factory=dict, compare=False, repr=False)

    def step(self, state: State, inputs: Sequence[Arrived]) -> Stepped:
        """What the function makes of the rows, then, after the last row, what it has left to put out."""
        rows = inputs[0].rows
        over = self.closes and inputs[0].watermark == END
        closed = self.closes and state.marks.get(CLOSED) == 1
        closing, reopened = over and not closed, closed and not over
        if not (rows.height or closing or reopened):
            return Stepped({None: self._empty(rows)}, state)
        outputs: list[pl.DataFrame] = []
        rejected: list[Rejected] = []
        held = _held(state)
        memory = held
        if rows.height:
            memory = self._work(rows, memory, outputs, rejected)
        if closing:
            memory = self._close(rows.clear(), memory, outputs)
            state = state.with_mark(CLOSED, 1)
        elif reopened:
            state = state.with_mark(CLOSED, 0)
        if memory is not held:
            state = state.with_table(TABLE, Table(CLOCK) if memory is None else _one_segment(memory))
        filled = [frame for frame in outputs if frame.height]
        out = pl.concat(filled) if len(filled) > 1 else filled[0] if filled else self._empty(rows)
        return Stepped({None: out}, state, tuple(rejected))

    def _work(
        self,
        rows: pl.DataFrame,
        memory: pl.DataFrame | None,
        outputs: list[pl.DataFrame],
        rejected: list[Rejected],
    ) -> pl.DataFrame | None:
        """Calls the function on rows, in halves where it raises; returns the state that it leaves."""
        given = None if memory is None else memory.clone()
        try:
            returned, left = self.call(_visible(rows), given)
        except (MemoryError, _WrongFormError):
            raise
        except Exception as error:
            if rows.height > 1:
                half = rows.height // 2
                memory = self._work(rows[:half], memory, outputs, rejected)
                return self._work(rows[half:], memory, outputs, rejected)
            rejected.append(Rejected(rows, pl.Series("reason", [f"{type(error).__name__}: {error}"])))
            return memory
        outputs.append(self.form.check(returned, rows))
        return self._left(memory, given, left)

    def _close(
        self, nothing: pl.DataFrame, memory: pl.DataFrame | None, outputs: list[pl.DataFrame]
    ) -> pl.DataFrame | None:
        given = None if memory is None else memory.clone()
        try:
            returned, left = self.call(_visible(nothing), given, closing=True)
        except LevelwindError:
            raise
        except Exception as error:
            message = (
                f"operator {self.call.operator!r}: {self.call.path} raised "
                f"{type(error).__name__} when closing: {error}"
            )
            raise LevelwindError(message) from error
        outputs.append(self.form.check(returned, nothing))
        return self._left(memory, given, left)

    def _left(
        self, memory: pl.DataFrame | None, given: pl.DataFrame | None, left: Any
    ) -> pl.DataFrame | None:
        """The state after a call: the very frame from before if the function returned what it was given."""
        if left is given and (given is None or (memory is not None and given.shape == memory.shape)):
            return memory
        return None if left is None else self.form.frame(left)

    def _empty(self, rows: pl.DataFrame) -> pl.DataFrame:
        ordered = ORDER in rows.columns
        if ordered not in self._nothing:
            schema = {name: dtype or pl.Null() for name, dtype in self.form.schema.items()}
            self._nothing[ordered] = pl.DataFrame(schema={**schema, ORDER: pl.Int64()} if ordered else schema)
        return self._nothing[ordered]


def _visible(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows as the function sees them: its own copy, without what is hidden."""
    return rows.drop(ORDER) if ORDER in rows.columns else rows.clone()


def _held(state: State) -> pl.DataFrame | None:
    """The frame that the function left; None before the first call."""
    return state.table(TABLE, CLOCK).read()


def _one_segment(frame: pl.DataFrame) -> Table:
    """A table that is replaced as a whole: its rows have no age, so its one segment is of time zero."""
    segment = Segment(rows=frame.height, bytes=int(frame.estimated_size()), low=0, high=0, frame=frame)
    return Table(CLOCK, (segment,))
