"""CPU caps by control groups, version 1 or 2, whichever this machine has and lets us use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PERIOD_US = 100_000
LEAST_QUOTA_US = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlGroup:
    """A group of processes whose CPU can be capped and counted.

    Parameters
    ----------
    cpu
        The group's directory with the quota; None if the machine allows no quota.
    account
        The directory that counts CPU time: with version 1 it may be another one than `cpu`.
    version
        1 or 2, of the quota and the count alike.
    """

    cpu: Path | None
    account: Path | None
    version: int

    @property
    def directories(self) -> tuple[Path, ...]:
        """Directories that a process joins to be in the group."""
        return tuple(dict.fromkeys(path for path in (self.cpu, self.account) if path is not None))

    def cap(self, cores: float | None) -> bool:
        """Hold the group at so many cores, or lift the cap with None; False if that is not allowed."""
        if self.cpu is None:
            return False
        quota = None if cores is None else max(round(cores * PERIOD_US), LEAST_QUOTA_US)
        try:
            if self.version == 2:
                (self.cpu / "cpu.max").write_text(f"{'max' if quota is None else quota} {PERIOD_US}")
            else:
                (self.cpu / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (self.cpu / "cpu.cfs_quota_us").write_text(str(-1 if quota is None else quota))
        except OSError:
            return False
        return True

    def cpu_seconds(self) -> float | None:
        """CPU time of all that ever ran in the group; None if nothing counts it."""
        if self.account is None:
            return None
        if self.version == 1:
            return int((self.account / "cpuacct.usage").read_text()) / 1e9
        lines = (self.account / "cpu.stat").read_text().splitlines()
        counts = dict(line.split() for line in lines)
        return int(counts["usage_usec"]) / 1e6


def make_group(name: str) -> ControlGroup:
    """A new group below this process's own; one without directories where that is not allowed."""
    for parent in _parents_v1("cpu"):
        cpu = _made(parent / name, "cpu.cfs_quota_us")
        if cpu is not None:
            account = cpu if (cpu / "cpuacct.usage").exists() else None
            for other in _parents_v1("cpuacct") if account is None else ():
                account = account or _made(other / name, "cpuacct.usage")
            return ControlGroup(cpu=cpu, account=account, version=1)
    for parent in _parents_v2():
        cpu = _made(parent / name, "cpu.max", controller="cpu")
        if cpu is not None:
            return ControlGroup(cpu=cpu, account=cpu, version=2)
    return ControlGroup(cpu=None, account=None, version=2)


def _made(group: Path, needed: str, *, controller: str | None = None) -> Path | None:
    """The new directory, or None if it cannot be made or has not the file that counts."""
    try:
        group.mkdir()
    except OSError:
        return None
    if controller is not None and not (group / needed).exists():
        with suppress(OSError):
            (group.parent / "cgroup.subtree_control").write_text(f"+{controller}")
    if os.access(group / needed, os.W_OK) and os.access(group / "cgroup.procs", os.W_OK):
        return group
    with suppress(OSError):
        group.rmdir()
    return None


def _parents_v1(controller: str) -> Iterator[Path]:
    for root, kind, options in _mounts():
        if kind == "cgroup" and controller in options.split(","):
            own = next((path for names, path in _own() if controller in names.split(",")), "/")
            # Inside a container the own path may be one that only the host can see.
            yield from dict.fromkeys(path for path in (_below(root, own), root) if path.is_dir())


def _parents_v2() -> Iterator[Path]:
    for root, kind, _ in _mounts():
        if kind == "cgroup2":
            own = _below(root, next((path for names, path in _own() if not names), "/"))
            # A group with processes of its own may not hand a controller down; the one above it may.
            yield from dict.fromkeys(path for path in (own, own.parent, root) if path.is_relative_to(root))


def _below(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def _mounts() -> Iterator[tuple[Path, str, str]]:
    """(mount point, kind, options) of everything mounted."""
    with suppress(OSError):
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, point, kind, options, *_ = line.split()
            yield Path(point), kind, options


def _own() -> Iterator[tuple[str, str]]:
    """(controllers, path) of the groups that this process is in; no controllers means version 2."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            yield names, path
