from __future__ import annotations

import pytest

from levelwind.frontend import parse_bandwidth, parse_bytes, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("2s", 2),
        ("10m", 600),
        ("1h", 3600),
        ("1d", 86400),
        ("100us", 1e-4),
        ("1.5 s", 1.5),
        ("0s", 0),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("value", [5, 2.5, "5", "1e3", ".5"])
def test_a_bare_number_is_no_duration(value: object) -> None:
    with pytest.raises(ValueError, match="needs a unit"):
        parse_duration(value)


@pytest.mark.parametrize(
    "value", ["", "s", "-1s", "2 parsecs", "1s2", "nan", None, True, [], "1" * 400 + "s"]
)
def test_no_duration(value: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(value)


@pytest.mark.parametrize(
    ("text", "amount"), [("2GB", 2e9), ("1KiB", 1024), ("80B", 80), (80, 80), ("1.5MB", 1.5e6), ("3kB", 3000)]
)
def test_bytes(text: object, amount: float) -> None:
    assert parse_bytes(text) == amount


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), 10**400, "2Gb", "GB", None])
def test_no_bytes(value: object) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_bytes(value)


@pytest.mark.parametrize(
    ("text", "amount"), [("100Mbps", 12.5e6), ("1Gbps", 125e6), ("8bps", 1), ("8kbps", 1000)]
)
def test_bandwidth_is_in_bytes_per_second(text: str, amount: float) -> None:
    assert parse_bandwidth(text) == amount


@pytest.mark.parametrize("value", [100, "100", "100MB", "100mbps"])
def test_no_bandwidth(value: object) -> None:
    with pytest.raises(ValueError, match="bandwidth"):
        parse_bandwidth(value)
