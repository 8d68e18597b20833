"""Quantities with a unit, as people write them: ``500ms``, ``2GB``, ``100Mbps``."""

from __future__ import annotations

import re

SECONDS_PER = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
BYTES_PER = {
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("kMGT", start=1)},
    "KB": 1000,
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", start=1)},
}
BITS_PER_S_PER = {
    "bps": 1,
    **{f"{letter}bps": 1000**power for power, letter in enumerate("kMGT", start=1)},
    "Kbps": 1000,
}

_MOST = 1e300
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"


def _pattern(units: dict[str, float] | dict[str, int]) -> str:
    """A regular expression for a number and one of the units; JSON Schema uses the same text."""
    return rf"^({_NUMBER}) ?({'|'.join(sorted(units, key=len, reverse=True))})$"


DURATION_PATTERN = _pattern(SECONDS_PER)
BYTES_PATTERN = _pattern(BYTES_PER)
BANDWIDTH_PATTERN = _pattern(BITS_PER_S_PER)

_DURATION = re.compile(DURATION_PATTERN)
_BYTES = re.compile(BYTES_PATTERN)
_BANDWIDTH = re.compile(BANDWIDTH_PATTERN)


def parse_duration(text: object) -> float:
    """Seconds in a duration such as ``500ms``, ``2s``, ``10m``, ``1h``.

    Raises
    ------
    ValueError
        If it is not a duration. A number alone is refused too: whether 5 meant seconds or
        milliseconds cannot be told, and guessing wrong is silent.

    Examples
    --------
    >>> parse_duration("500ms")
    0.5
    """
    amount, unit = _split(_DURATION, text, "a duration", "500ms, 2s, 10m, 1h")
    if unit in ("us", "µs"):  # dividing is exact where multiplying by 1e-6 is one bit off
        return amount / 1e6
    return amount / 1e3 if unit == "ms" else amount * SECONDS_PER[unit]


def parse_bytes(text: object) -> float:
    """Bytes in a size such as ``2GB`` (powers of 1000) or ``2GiB`` (powers of 1024).

    A number alone counts bytes.
    """
    if isinstance(text, int | float) and not isinstance(text, bool):
        return _finite(text, "a size")
    amount, unit = _split(_BYTES, text, "a size", "80B, 512MB, 2GB")
    return amount * BYTES_PER[unit]


def parse_bandwidth(text: object) -> float:
    """Bytes per second in a rate of bits such as ``100Mbps``.

    Examples
    --------
    >>> parse_bandwidth("100Mbps")
    12500000.0
    """
    amount, unit = _split(_BANDWIDTH, text, "a bandwidth", "10kbps, 100Mbps, 1Gbps")
    return amount * BITS_PER_S_PER[unit] / 8


def format_duration(seconds: float) -> str:
    """A short duration that `parse_duration` reads back as exactly ``seconds``.

    Examples
    --------
    >>> format_duration(0.5), format_duration(120.0)
    ('500ms', '2m')
    """
    found = []
    for unit in ("d", "h", "m", "s", "ms", "us"):
        amount = seconds / SECONDS_PER[unit]
        for text in (f"{amount:.15g}{unit}", f"{amount!r}{unit}"):
            if _DURATION.match(text) and parse_duration(text) == seconds:
                found.append(text)
    if not found:
        message = f"not a duration that can be written: {seconds!r}"
        raise ValueError(message)
    return min(found, key=lambda text: ("." in text, len(text)))


def _split(pattern: re.Pattern[str], text: object, what: str, examples: str) -> tuple[float, str]:
    """The number and the unit of a text, or a ValueError that says how to write one."""
    if isinstance(text, str):
        match = pattern.match(text.strip())
        if match is not None:
            return _finite(float(match[1]), what), match[2]
        if _is_number(text):
            text = float(text)
    if isinstance(text, int | float) and not isinstance(text, bool):
        message = f"{what} needs a unit, such as {examples}"
    else:
        message = f"must be {what}, such as {examples}"
    raise ValueError(message)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _finite(amount: float, what: str) -> float:
    if not 0 <= amount <= _MOST:  # NaN fails every comparison
        message = f"must be {what} that is finite and not negative"
        raise ValueError(message)
    return float(amount)
