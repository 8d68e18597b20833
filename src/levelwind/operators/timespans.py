"""Event times less and plus a span, in whole microseconds, without ever leaving 64 bits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from levelwind.operators.rows import BEGINNING, END

Numbers = npt.NDArray[np.int64]


def microseconds(seconds: float) -> int:
    """A span of time in whole microseconds, at most what 64 bits hold.

    Examples
    --------
    >>> microseconds(0.1), microseconds(1e300) == END
    (100000, True)
    """
    return END if seconds * 1e6 >= END else round(seconds * 1e6)


def minus(times: Numbers, span_us: int | Numbers) -> Numbers:
    """Times less a span that is not negative, held at the first time there is."""
    bounded: Numbers = np.maximum(times, BEGINNING + span_us)
    return bounded - span_us


def plus(times: Numbers, span_us: int | Numbers) -> Numbers:
    """Times and a span that is not negative, held at the last time there is."""
    bounded: Numbers = np.minimum(times, END - span_us)
    return bounded + span_us
