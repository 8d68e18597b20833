"""The command as a process: start-up, terminals, pipes, interruption, and the examples of its help."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from levelwind.cli import main as entry
from levelwind.cli.main import COMMANDS

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "levelwind.cli.main"]
COMPARE = ["compare", "examples/worked.yaml", "--nodes", "2", "--planners", "rod,random", "--seed", "1"]
GOLDEN = ROOT / "tests" / "golden" / "cli_compare_worked.txt"


def process(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **variables}
    return subprocess.run(
        [*COMMAND, *arguments], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )


def on_terminal(*arguments: str, **variables: str) -> str:
    ours, theirs = pty.openpty()
    env = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    env |= {"TERM": "xterm", "COLUMNS": "100", **variables}
    with subprocess.Popen(
        [*COMMAND, *arguments], cwd=ROOT, env=env, stdout=theirs, stderr=subprocess.DEVNULL
    ):
        os.close(theirs)
        seen = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # Linux says so when the other end is closed
                break
            if not chunk:
                break
            seen += chunk
    os.close(ours)
    return seen.decode()


def test_compare_text_is_as_recorded():
    ended = process(*COMPARE, "--format", "text", COLUMNS="100")
    if os.environ.get("LEVELWIND_REGENERATE"):
        GOLDEN.write_text(ended.stdout)
    assert ended.stdout == GOLDEN.read_text()


def test_a_terminal_gets_text_with_the_best_in_bold_and_a_pipe_json():
    seen = on_terminal(*COMPARE)
    assert "planner" in seen
    assert "\x1b[1m" in seen
    assert isinstance(json.loads(process(*COMPARE).stdout), list)


def test_no_color_leaves_no_colours():
    seen = on_terminal("planners", NO_COLOR="1")
    assert not re.search(r"\x1b\[(?:\d+;)*(?:3|4|9)\d", seen)


def test_text_in_a_pipe_has_no_escape_codes():
    assert "\x1b" not in process(*COMPARE, "--format", "text", TERM="xterm").stdout


def test_text_survives_a_narrow_encoding():
    ended = process(*COMPARE, "--format", "text", PYTHONIOENCODING="ascii")
    assert ended.returncode == 0
    assert "rod" in ended.stdout


@pytest.mark.parametrize("command", ["", *(command.__name__.replace("_", "-") for command in COMMANDS)])
def test_help_starts_without_heavy_modules(command: str):
    code = f"import sys; from levelwind.cli.main import main; main({[*command.split(), '--help']!r}); " + (
        "print(sorted({'numpy', 'pyspark', 'matplotlib', 'numba', 'sqlglot', 'yaml'} & set(sys.modules)),"
        " file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stderr.splitlines()[-1] == "[]"
    assert "Usage: levelwind" in ended.stdout
    assert "Example" in ended.stdout


def examples() -> list[str]:
    """Every example in every help: lines after ``Example(s):``, those that end with a bar joined."""
    found = []
    for function in (entry._start, *COMMANDS):
        text = (function.__doc__ or "").partition("Example")[2].partition("\n")[2]
        joined = re.sub(r"\|\n\s+", "| ", text.strip())
        found += [line.strip() for line in joined.splitlines()]
    # Runs need Spark and a run to look at: tests/spark has them. Published networks are not in the project.
    elsewhere = (
        "demo",
        "run",
        "status",
        "stats",
        "move",
        "add",
        "remove",
        "windows",
        "stop",
        "probe",
        "topology",
    )
    found = [line for line in found if line.split()[1] not in elsewhere]
    return [line for line in found if not line.startswith("levelwind reproduce") or "--list" in line]


@pytest.mark.parametrize("example", examples())
def test_examples_of_the_help_run(example: str):
    assert example.startswith("levelwind ")
    if "reproduce" in example:
        pytest.importorskip("levelwind.reproduce.registry")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        example,
        shell=True,
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout


def test_ctrl_c_while_waiting_for_input_exits_130(vague):
    command = [*COMMAND, "measure", str(vague), "--nodes", "2", "--placement", "-"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as running:
        assert running.stderr is not None
        assert running.stderr.readline().startswith("warning: ")  # the network is read, the placement is next
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=20)
    assert running.returncode == 130
    assert out == ""
    assert err.splitlines() == ["interrupted"]


def test_ctrl_c_while_planning_exits_130(run, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("levelwind.planning.plan", interrupted)
    ended = run("plan", "examples/worked.yaml", "--nodes", 2)
    assert ended.code == 130
    assert ended.out == ""


def test_a_fault_of_ours_exits_3_in_one_line(run, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        message = "no such luck"
        raise RuntimeError(message)

    monkeypatch.setattr("levelwind.planning.plan", broken)
    ended = run("plan", "examples/worked.yaml", "--nodes", 2)
    assert ended.code == 3
    assert ended.err.startswith("failed: RuntimeError: no such luck")
    monkeypatch.setenv("LEVELWIND_TRACEBACK", "1")
    assert "Traceback" in run("plan", "examples/worked.yaml", "--nodes", 2).err


def test_a_reader_that_has_seen_enough_is_no_error():
    command = f"{' '.join(COMMAND)} schema | head -n 1; echo ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["{", "0"]
    assert ended.stderr == ""
