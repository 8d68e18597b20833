"""What may be deleted: commits beyond the last few, and files that none of those names."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path

from levelwind.runtime.commits import Commit, path_of
from levelwind.runtime.storage import STATE, file_of


class Retention:
    """Keeps the files of the last few commits and deletes the others. O(segments) per commit."""

    def __init__(self, directory: str, keep: int) -> None:
        self._directory = directory
        self._keep = keep
        self._held: deque[tuple[int, set[str]]] = deque()

    def start(self, commits: Sequence[Commit]) -> None:
        """Take over the commits that are there; delete files that none of them names."""
        for commit in commits:
            self._held.append((commit.step, files_of(commit)))
        named = set().union(*(files for _, files in self._held))
        folder = Path(self._directory, STATE)
        if folder.is_dir():
            for path in folder.iterdir():
                if path.name not in named:
                    path.unlink(missing_ok=True)
        self._trim()

    def add(self, commit: Commit) -> None:
        """One more commit."""
        self._held.append((commit.step, files_of(commit)))
        self._trim()

    def _trim(self) -> None:
        while len(self._held) > self._keep:
            step, files = self._held.popleft()
            # A file is named by consecutive commits: what the next one does not name, none does.
            for name in files - self._held[0][1]:
                Path(self._directory, STATE, name).unlink(missing_ok=True)
            path_of(self._directory, step).unlink(missing_ok=True)


def clear_staging(folders: Iterable[str], commits: Iterable[Commit]) -> None:
    """Delete rows that killed attempts have staged: those that no commit names."""
    named = {path for commit in commits for entry in commit.outbox for path in entry.staged}
    for folder in folders:
        if folder and Path(folder).is_dir():
            for path in Path(folder).iterdir():
                if str(path) not in named:
                    path.unlink(missing_ok=True)


def files_of(commit: Commit) -> set[str]:
    """The state files that a commit names."""
    places = {
        file_of(segment.place)
        for record in commit.boxes.values()
        for table in record.tables.values()
        for segment in table.segments
    }
    return places | {file_of(entry.place) for entry in commit.in_flight}
