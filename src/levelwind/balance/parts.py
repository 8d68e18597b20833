"""What part of its producer's rows every stream carries, as measured."""

from __future__ import annotations

import numpy as np

from levelwind.balance.facts import Wiring
from levelwind.loads.arrays import Floats

# A stream that carries so much of what its producer puts out carries all of it.
ALL = 1.0 - 1e-9


def measured_parts(wiring: Wiring, rows_in: Floats, rows_out: Floats) -> Floats:
    """The part of each stream, from rows that operators put out and rows that their readers took in.

    Nobody counts rows by stream. But what came to a reader, less what it must have got over streams that
    carry everything, came over the others; it is divided among these as is stated. Streams whose readers tell
    nothing (they read from outside, too, or the same rows twice) keep the part that is stated. O(arcs).

    Parameters
    ----------
    rows_in, rows_out
        Of each operator, in the same time.

    Examples
    --------
    Of two routes, stated as equal, the first carries a tenth of the rows:

    >>> from levelwind.balance.facts import make_wiring
    >>> stream, clear = np.array([0, 1]), np.array([False, True, True])
    >>> arcs, part = [(0, 1), (0, 2)], np.array([0.5, 0.5])
    >>> wiring = make_wiring(arcs, np.zeros(3), stream=stream, part=part, clear=clear)
    >>> measured_parts(wiring, np.array([100.0, 10.0, 90.0]), np.array([100.0, 0.0, 0.0])).tolist()
    [0.1, 0.9]
    """
    if (wiring.part >= ALL).all():
        return wiring.part
    count, streams = len(wiring.clear), len(wiring.part)
    expected = rows_out[wiring.producer] * wiring.part[wiring.stream]
    divided = wiring.part[wiring.stream] < ALL
    over_whole, over_divided = (
        np.bincount(wiring.consumer[which], weights=expected[which], minlength=count)
        for which in (~divided, divided)
    )
    tells = wiring.clear & (over_divided > 0)
    factor = np.divide(
        np.maximum(rows_in - over_whole, 0.0), over_divided, out=np.full(count, np.nan), where=tells
    )
    # All readers of a stream get the same rows: what they tell is averaged.
    told = divided & tells[wiring.consumer]
    readers = np.bincount(wiring.stream[told], minlength=streams)
    total = np.bincount(wiring.stream[told], weights=factor[wiring.consumer[told]], minlength=streams)
    mean = np.divide(total, readers, out=np.ones(streams), where=readers > 0)
    return np.minimum(wiring.part * mean, 1.0)
