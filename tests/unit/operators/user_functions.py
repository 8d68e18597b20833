"""Functions as users write them, for the tests of custom operators."""

import polars as pl

NOT_A_FUNCTION = 3
calls = []


def double(rows):
    """Without memory; leaves the time column to be carried along; fails on negative numbers."""
    if (rows["n"] < 0).any():
        raise ValueError(f"negative: {rows['n'].min()}")
    return rows.select(twice=pl.col("n") * 2)


def per_row(rows):
    """Without memory, more or fewer rows than came: n copies of each."""
    return rows.select("ts", twice=pl.col("n")).filter(pl.col("twice") > 0)


def as_arrow(rows):
    return double(rows).to_arrow()


def as_batch(rows):
    return double(rows).to_arrow().to_batches()[0]


def as_dict(rows):
    return {"twice": [None if n is None else n * 2 for n in rows["n"]]}


def running(rows, state):
    """The running sum, which a negative number breaks."""
    if (rows["n"] < 0).any():
        raise ValueError("negative")
    before = 0 if state is None else state["sum"][0]
    sums = rows["n"].fill_null(0).cum_sum() + before
    return pl.DataFrame({"twice": sums}), pl.DataFrame({"sum": [sums[-1]]})


def at_the_end(rows, state, *, closing=False):
    """Keeps every row back until the end, then puts out all in order of n."""
    calls.append((rows.height, closing))
    if closing:
        kept = rows.select("ts", twice="n") if state is None else state
        return kept.sort("twice", "ts"), None
    new = rows.select("ts", twice="n")
    return new.clear(), new if state is None else pl.concat([state, new])


def noting(rows):
    """Tells which columns it sees."""
    calls.append(rows.columns)
    return rows.select(twice="n")


def first_only(rows, state):
    """Keeps its state once it has one, by returning what it was given."""
    return rows.select(twice="n"), rows.head(1) if state is None else state


def grows_in_place(rows, state):
    """Changes the frame it was given, which it must not."""
    if state is None:
        return rows.select(twice="n"), rows
    return rows.select(twice="n"), state.extend(rows)


def forgets(rows, state):
    """Has a state every other time."""
    return rows.select(twice="n"), rows if state is None else None


def closing_fails(rows, *, closing=False):
    if closing:
        raise RuntimeError("no end")
    return rows.select(twice="n")


def too_much(rows):
    raise MemoryError


def pair_missing(rows, state):
    return rows.select(twice="n")


def three(rows, state, more):
    return rows


def needs_option(rows, *, option):
    return rows


class Scores:
    """Functions may stand in a class."""

    @staticmethod
    def double(rows):
        return double(rows)
