"""Property tests try the same cases every time, so that a red run means a change; exploring is on demand."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

from levelwind import plugins

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("explore" if os.environ.get("LEVELWIND_EXPLORE") else "same")


@pytest.fixture
def bring(monkeypatch):
    """Has other packages bring these classes under an entry point, by name."""

    def brought(to, **theirs):
        found = [SimpleNamespace(name=k, load=lambda v=v: v, value=k) for k, v in theirs.items()]
        monkeypatch.setattr(plugins, "entry_points", lambda *, group, name=None: found if group == to else [])

    return brought


@pytest.fixture
def how_to_package(tmp_path_factory, monkeypatch):
    """The code of the page on cost models and policies, installed for this process and those it starts."""
    page = (Path(__file__).parent.parent / "docs/how-to/add-a-cost-model.md").read_text()
    folder = tmp_path_factory.mktemp("installed")
    known = folder / "mypackage-1.0.dist-info"
    for path, code in re.findall(r"```python\n# (\S+)\n(.*?)```", page, re.DOTALL):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(code)
    known.mkdir()
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: mypackage\nVersion: 1.0\n")
    points = ""
    for text in re.findall(r"```toml\n(.*?)```", page, re.DOTALL):
        for group, own in tomllib.loads(text)["project"]["entry-points"].items():
            points += "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in own.items()), ""])
    (known / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(folder)
    searched = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(searched))
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "mypackage"]:
        del sys.modules[name]
