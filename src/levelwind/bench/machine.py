"""Facts about the machine, without which a number of seconds says nothing."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("numpy", "scipy", "numba", "pyyaml", "levelwind")


def machine_note() -> str:
    """Cores, processor, load, versions and commit, on one line."""
    parts = [f"{os.cpu_count()} cores", _processor(), platform.platform(terse=True), _load()]
    parts.append(f"Python {platform.python_version()}")
    parts += [f"{name} {found}" for name in PACKAGES if (found := _version(name))]
    parts.append(_commit())
    return "machine: " + ", ".join(part for part in parts if part)


def load_average() -> float | None:
    """Processes that wanted a core over the last minute, where the system counts them."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def _load() -> str:
    load = load_average()
    return "" if load is None else f"load {load:.2f} at the start"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str:
    """The commit that this package's source is at; empty if it was installed from elsewhere."""
    here = Path(__file__)
    git = ("git", "-C", str(here.parent))
    try:
        known = subprocess.run(
            [*git, "ls-files", "../errors.py"], capture_output=True, text=True, check=False
        )
        if known.returncode != 0 or not known.stdout.strip():
            return ""
        found = subprocess.run(
            [*git, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return f"commit {found.stdout.strip()}" if found.returncode == 0 else ""
