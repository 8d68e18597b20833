"""Time zones as Java reads them: offsets, regions, and its short names."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import polars as pl

_SIGNED = r"^(?:UTC|GMT|UT)?([+-])(?:(\d{1,2})(?::(\d{1,2})|:(\d{2}):(\d{2}))?|(\d{2})(\d{2})(\d{2})?)$"
_LARGEST_S = 18 * 3600
# Java's ZoneId.SHORT_IDS.
_SHORT = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
    "EST": "Etc/GMT+5",
    "MST": "Etc/GMT+7",
    "HST": "Etc/GMT+10",
}


def offset_steps(zone: str, local: str, result: str) -> list[dict[str, pl.Expr]]:
    """Steps to the microseconds by which a zone is ahead of UTC at a local time; null if there is none.

    Parameters
    ----------
    zone, local, result
        Names of columns: the zone as text, microseconds since the epoch by its clock, what is found.
    """
    name, sign = pl.col(zone), pl.col("signed").struct.field("1")
    hour, minute, second = pl.col("zone_hour"), pl.col("zone_minute"), pl.col("zone_second")
    seconds = hour * 3600 + minute * 60 + second
    sound = (pl.col("zone_seconds") <= _LARGEST_S) & (minute < 60) & (second < 60)
    ahead = pl.when(sign == "-").then(-pl.col("zone_seconds")).otherwise(pl.col("zone_seconds"))
    named = pl.map_batches([name, pl.col(local)], _regions, return_dtype=pl.Int64, is_elementwise=True)
    return [
        {"signed": name.str.extract_groups(_SIGNED)},
        {
            "zone_hour": _first("2", "6"),
            "zone_minute": _first("3", "4", "7"),
            "zone_second": _first("5", "8"),
        },
        {"zone_seconds": seconds},
        {
            result: pl.when(name.is_in(["", "Z", "UTC", "GMT", "UT"]))
            .then(pl.lit(0, dtype=pl.Int64))
            .when(sign.is_not_null())
            .then(pl.when(sound).then(ahead * 1_000_000))
            .otherwise(named)
        },
    ]


def _first(*groups: str) -> pl.Expr:
    """The one of several numbers that is there, else 0."""
    found = [pl.col("signed").struct.field(group).cast(pl.Int64, strict=False) for group in groups]
    return pl.coalesce([*found, pl.lit(0, dtype=pl.Int64)])


def _regions(sides: Sequence[pl.Series]) -> pl.Series:
    """Offsets of zones that are given by name; row by row, but only for rows that have such a zone."""
    zones, times = sides
    named = zones.str.contains("^[A-Za-z][A-Za-z0-9~/._+-]+$") & ~zones.is_in(["UTC", "GMT", "UT"])
    if not named.any():
        return pl.Series(zones.name, [None], dtype=pl.Int64).new_from_index(0, len(zones))
    found = [
        None if zone is None or time is None or not is_named else _offset(zone, time)
        for zone, time, is_named in zip(zones.to_list(), times.to_list(), named.to_list(), strict=True)
    ]
    return pl.Series(zones.name, found, dtype=pl.Int64)


def _offset(name: str, local_us: int) -> int | None:
    try:
        zone = ZoneInfo(_SHORT.get(name, name))
    except (KeyError, ValueError, OSError):
        return None
    try:
        local = datetime(1970, 1, 1, tzinfo=zone) + timedelta(microseconds=local_us)
    except OverflowError:
        return None
    offset = local.utcoffset()
    return None if offset is None else offset // timedelta(microseconds=1)
