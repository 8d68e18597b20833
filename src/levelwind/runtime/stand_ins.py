"""Networks that were written for planning can be run: streams that state no source are made up.

A stream that states a rate, or neither schema nor source nor rate, stands for rows that nobody has yet. A
generator makes them: at that rate, a series sample by sample, one a second. A network's series all have one
length; where there are any, that is also how long all its made-up streams last.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import Any

from levelwind.frontend import parse_network
from levelwind.frontend.writing import network_document
from levelwind.model import Column, Model, Network, Stream
from levelwind.model.frozen import frozen_mapping
from levelwind.operators.model import SECONDS
from levelwind.runtime.sources import GENERATOR

USUAL_RATE = 1.0
_SCHEMA, _TIME = (Column(name="ts", type="timestamp"),), "ts"


def with_stand_ins(network: Network, given: Container[str]) -> tuple[Network, list[str]]:
    """The network with a source for every stream that was meant for planning, and a note on which those are.

    Parameters
    ----------
    given
        The streams whose rows come from elsewhere.

    Raises
    ------
    InputError
        If an operator needs columns that no made-up stream has.
    """
    made = {
        name: stream
        for name, stream in network.streams.items()
        if name not in given and stream.source is None and (stream.rate or stream.schema is None)
    }
    clock = {SECONDS: Stream(name=SECONDS)} if _needs_clock(network) else {}
    if not made and not clock:
        return network, []
    seconds = _length(network)
    streams = {name: _made_up(stream, seconds) for name, stream in {**made, **clock}.items()}
    changed = replace(network, streams={**network.streams, **streams})
    # Read anew, since what operators put out depends on what the streams bring.
    return parse_network(network_document(changed)).network, _notes(made)


def _needs_clock(network: Network) -> bool:
    specs = [operator.spec for operator in network.operators.values()]
    series = any(isinstance(spec, Model) and spec.series for spec in specs)
    return series and SECONDS not in network.streams


def _length(network: Network) -> int | None:
    """How many seconds the series of a network tell of; None if it has none."""
    rates = [stream.rate for stream in network.streams.values()]
    loads = [
        operator.spec.series for operator in network.operators.values() if isinstance(operator.spec, Model)
    ]
    longest = max((len(series) for series in (*rates, *loads) if series), default=1)
    return longest if longest > 1 else None


def _made_up(stream: Stream, seconds: int | None) -> Stream:
    rate = stream.rate or (USUAL_RATE,)
    # Batches are kept short: nodes that cannot keep up fall behind, and can still be stopped.
    source: dict[str, Any] = {"format": GENERATOR, "batch": "1s"}
    if len(rate) > 1 or rate[0] == 0:
        source |= {"shape": "series", "rates": rate}
    else:
        source |= {"shape": "steady", "rate": rate[0]}
    if seconds is not None:
        source["duration"] = f"{seconds}s"
    if stream.schema is None:
        stream = replace(stream, schema=_SCHEMA, time=_TIME)
    return replace(stream, source=frozen_mapping(source))


def _notes(made: dict[str, Stream]) -> list[str]:
    rated = [f"{name} ({_rate(stream.rate)})" for name, stream in made.items() if stream.rate]
    unrated = [name for name, stream in made.items() if not stream.rate]
    if unrated:
        rated.append(f"{', '.join(unrated)} (no rate stated: {USUAL_RATE:g} row/s each)")
    return [f"made up, since they state no source: {', '.join(rated)}"] if rated else []


def _rate(rate: tuple[float, ...]) -> str:
    return f"{rate[0]:g} rows/s" if len(rate) == 1 else f"{len(rate)} rates, one a second"
