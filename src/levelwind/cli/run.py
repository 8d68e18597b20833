"""``levelwind run``: run a network on Spark."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from levelwind.cli.balancing import Groups, MovedLoadBudget, Period, Policy, PolicySettings, read_balancing
from levelwind.cli.errors import DONE, INTERRUPTED, NO, RunFailedError
from levelwind.cli.figures import number, plain_table
from levelwind.cli.inputs import parse_settings, read_both, read_placement, told_with
from levelwind.cli.live import Interrupts, Watcher
from levelwind.cli.moves import PlannedMove, read_moves
from levelwind.cli.options import (
    ClusterFile,
    FormatOption,
    NetworkFile,
    NodeCount,
    PlannerName,
    Seed,
    Settings,
)
from levelwind.cli.output import answer, note
from levelwind.cli.plan import plural
from levelwind.cli.runs import grouped, shown_path, spread_lines
from levelwind.errors import InputError, LevelwindError, Problem, input_error

if TYPE_CHECKING:
    from rich.console import RenderableType

    from levelwind.model import Cluster, Network
    from levelwind.spark.api import Run

REPLAN_CAUSE = "replan after warm-up"
MASTER = re.compile(r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\])?|local-cluster\[.+\]|(spark|k8s)://.+|yarn")

PlacementOption = Annotated[
    Path | None,
    typer.Option(
        "--placement",
        metavar="FILE",
        help="Instead of a planner: what levelwind plan put out. - reads standard input.",
        show_default=False,
    ),
]
Master = Annotated[
    str, typer.Option("--master", metavar="URL", help="Where Spark runs: local[2], spark://host:7077, …")
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="Where the run goes on from, now and after a stop. Default: in the run directory.",
        show_default=False,
    ),
]
RunDir = Annotated[
    Path | None,
    typer.Option(
        "--run-dir",
        metavar="DIR",
        help="Where statistics, logs and outputs without a sink go. Default: runs/NAME-TIME.",
        show_default=False,
    ),
]
MovesFile = Annotated[
    Path | None,
    typer.Option(
        "--moves",
        metavar="FILE",
        help="Moves at stated batches: a list of {step: 3, operators: [a, b], to: n2}.",
        show_default=False,
    ),
]
UntilIdle = Annotated[
    bool,
    typer.Option("--until-idle", help="Stop at the sources' end as of now, and put out all that is open."),
]
ReplanAfter = Annotated[
    str | None,
    typer.Option(
        "--replan-after",
        metavar="DURATION",
        help="After that long, such as 30s, plan anew with what was measured and move what changed.",
        show_default=False,
    ),
]
Reuse = Annotated[
    bool,
    typer.Option(
        "--reuse/--no-reuse",
        help="Compute equal operators over equal inputs once, unless they say reusable: false.",
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="KEY=VALUE",
        help="A setting of Spark's, such as spark.executor.memory=2g. May be repeated.",
        show_default=False,
    ),
]


def run(
    network_file: NetworkFile,
    cluster_file: ClusterFile = None,
    nodes: NodeCount = None,
    planner: PlannerName = "rod",
    settings: Settings = None,
    placement_file: PlacementOption = None,
    policy: Policy = None,
    policy_settings: PolicySettings = None,
    period: Period = "1s",
    moved_load_budget: MovedLoadBudget = None,
    groups: Groups = None,
    master: Master = "local[*]",
    checkpoint: Checkpoint = None,
    run_dir: RunDir = None,
    moves_file: MovesFile = None,
    until_idle: UntilIdle = False,
    reuse: Reuse = True,
    replan_after: ReplanAfter = None,
    conf: Conf = None,
    seed: Seed = 0,
    format: FormatOption = None,
) -> int:
    """Run a network on Spark.

    Ctrl-C ends the batch that runs and leaves a checkpoint that a later run with the same --checkpoint
    goes on from; a second Ctrl-C ends at once, which loses nothing but that batch's work. Without a number
    of nodes there is one per core.

    Examples:
      levelwind run examples/monitor.yaml --nodes 2 --until-idle
      levelwind run network.yaml --nodes 4 --planner rod --checkpoint state
      levelwind run network.yaml --nodes 4 --policy cor_se_imp
      levelwind run network.yaml --cluster cluster.yaml --master spark://host:7077
    """
    asked = _Asked(
        planner=planner,
        seed=seed,
        master=master,
        until_idle=until_idle,
        checkpoint=checkpoint,
        run_dir=run_dir,
        reuse=reuse,
    )
    _read(asked, settings, conf, replan_after)
    with asked.collecting():
        asked.balancing = read_balancing(policy, policy_settings, period, moved_load_budget, groups)
    _read_files(asked, network_file, cluster_file, nodes, placement_file, moves_file)
    if asked.placement is None:
        return NO
    with told_with(network_file):
        watcher, begun = _prepare(asked)
    return _carry_out(asked, watcher, begun, format)


@dataclass(kw_only=True)
class _Asked:
    """What was asked for, as far as it has been read; all problems are raised together."""

    planner: str
    seed: int
    master: str
    until_idle: bool
    checkpoint: Path | None
    run_dir: Path | None
    reuse: bool
    network: Network = field(init=False)
    cluster: Cluster = field(init=False)
    options: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    placement: Mapping[str, str] | None = None
    moves: tuple[PlannedMove, ...] = ()
    replan_after_s: float | None = None
    balancing: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    problems: list[Problem] = field(default_factory=list)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Keep the problems that come up inside."""
        try:
            yield
        except InputError as error:
            self.problems += error.problems


def _read(
    asked: _Asked, settings: list[str] | None, conf: list[str] | None, replan_after: str | None
) -> None:
    """The options that need no file."""
    with asked.collecting():
        asked.options = parse_settings(settings)
    with asked.collecting():
        asked.conf = parse_settings(conf, option="--conf")
    asked.problems += [
        Problem(rule="must be a setting of Spark's, spark.…", key="--conf", value=key)
        for key in asked.conf
        if not key.startswith("spark.")
    ]
    with asked.collecting():
        check_master(asked.master)
    if replan_after is not None:
        from levelwind.frontend import parse_duration

        try:
            asked.replan_after_s = parse_duration(replan_after)
        except ValueError as error:
            asked.problems.append(Problem(rule=str(error), key="--replan-after", value=replan_after))
    for option, path in (("--checkpoint", asked.checkpoint), ("--run-dir", asked.run_dir)):
        asked.problems += _directory_problems(option, path)


def check_master(master: str) -> None:
    """Refuse what Spark would not take for a master."""
    if not MASTER.fullmatch(master):
        rule, hint = "must be a master of Spark's", "such as local[2] or spark://host:7077"
        raise input_error(rule, key="--master", value=master, hint=hint)


def _directory_problems(option: str, path: Path | None) -> list[Problem]:
    """What keeps a directory from being made or written to."""
    if path is None:
        return []
    nearest = path.absolute()
    while not nearest.exists():
        nearest = nearest.parent
    if not nearest.is_dir():
        return [Problem(rule="must be a directory", key=option, value=str(path))]
    if not os.access(nearest, os.W_OK):
        return [Problem(rule="must be writable", key=option, value=str(path))]
    return []


def _read_files(
    asked: _Asked,
    network_file: Path,
    cluster_file: Path | None,
    nodes: int | None,
    placement_file: Path | None,
    moves_file: Path | None,
) -> None:
    """Network, cluster, placement (or a plan) and moves; raises whatever is wrong with anything asked."""
    if cluster_file is None and nodes is None:
        nodes = _cores(asked.master)
    with asked.collecting():
        asked.network, asked.cluster = read_both(network_file, cluster_file, nodes)
        with asked.collecting():
            asked.moves = read_moves(moves_file, asked.network, asked.cluster)
        if placement_file is not None:
            asked.placement = read_placement(placement_file, asked.network, asked.cluster)[0]
            asked.planner = ""
        elif not asked.problems:
            asked.placement = _planned(asked)
    if asked.problems:
        raise InputError(asked.problems)


def _planned(asked: _Asked) -> Mapping[str, str] | None:
    """Where the planner puts operators; None, with the reasons on stderr, if it finds no place."""
    from levelwind import planning
    from levelwind.model import PlanStatus
    from levelwind.rewrite import share

    groups = asked.balancing["groups"]
    if groups is not None:
        from levelwind.control.allotment import plan_by_group

        made = plan_by_group(
            asked.network, asked.cluster, groups, asked.planner, options=asked.options, seed=asked.seed
        )
    else:
        network = share(asked.network).network if asked.reuse else asked.network
        made = planning.plan(network, asked.cluster, asked.planner, options=asked.options, seed=asked.seed)
    asked.notes = made.notes
    if made.status is PlanStatus.PLACED:
        return made.placement
    for text in made.notes:
        note(text)
    note(f"{asked.planner} finds no plan: {made.status.value}; nothing was started")
    return None


def _cores(master: str) -> int:
    inside = master.partition("[")[2].partition(",")[0].rstrip("]")
    return int(inside) if inside.isdigit() else len(os.sched_getaffinity(0))


def _prepare(asked: _Asked) -> tuple[Watcher, Run]:
    """The run, checked and not yet begun, and who shows how it fares."""
    from levelwind.spark.api import prepare

    sinks = [output.sink for output in asked.network.outputs.values()]
    drawn_over = any(sink is not None and sink["format"] == "console" for sink in sinks)
    watcher = Watcher(plain=drawn_over)
    begun = prepare(
        asked.network,
        asked.cluster,
        placement=asked.placement,
        master=asked.master,
        settings=asked.conf,
        checkpoint=asked.checkpoint,
        run_dir=asked.run_dir or _new_directory(asked.network.name),
        moves=[move.scripted() for move in asked.moves],
        **asked.balancing,
        until_idle=asked.until_idle,
        reuse=asked.reuse,
        on_step=watcher.on_step,
        seed=asked.seed,
    )
    return watcher.watch(begun), begun


def _carry_out(asked: _Asked, watcher: Watcher, begun: Run, format: FormatOption) -> int:
    _announce(begun, asked)
    with Interrupts() as interrupts:
        try:
            with watcher:
                _follow(begun, asked, watcher, interrupts)
            begun.close()
        except KeyboardInterrupt:
            _end_at_once(begun)
        except Exception as error:
            said = _failure(error, begun)
            if isinstance(error, InputError) and not begun.has_begun:
                raise  # bad input that could not be told from the files alone
            raise RunFailedError(said) from error
    answer(format, lambda: _as_dict(begun), lambda: _as_text(begun))
    return INTERRUPTED if begun.state == "stopped" and interrupts.asked == signal.SIGINT else DONE


def _new_directory(name: str) -> Path:
    """A directory that is not there yet, named for the network and the time."""
    stem = f"{re.sub(r'[^A-Za-z0-9._-]+', '_', name)}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    path, tries = Path("runs", stem), 1
    while path.exists():
        tries += 1
        path = Path("runs", f"{stem}-{tries}")
    return path


def _announce(begun: Run, asked: _Asked) -> None:
    count = f"{plural(len(begun.placement), 'operator')} on {plural(len(asked.cluster.nodes), 'node')}"
    by = f" by {asked.planner}" if asked.planner else " as given"
    policy = asked.balancing["policy"]
    kept = "" if policy is None else f", kept in balance by {policy.name}"
    note(f"run directory {shown_path(begun.directory.path)}: {count}{by}{kept}")
    for text in (*asked.notes, *begun.notes):
        note(text)


def _follow(begun: Run, asked: _Asked, watcher: Watcher, interrupts: Interrupts) -> None:
    """From start to end; the run's own notes on where it goes on from come after the start."""
    from levelwind.runtime.measured import WARM_UP_STEPS

    told = set(begun.notes)
    began = time.monotonic()
    begun.start()
    interrupts.renew()
    for text in begun.notes:
        if text not in told:
            note(text)
    replan_at = None if asked.replan_after_s is None else began + asked.replan_after_s
    while not begun.wait(0.5):
        watcher.tick()
        if interrupts.asked is not None:
            note("stopping after this batch; Ctrl-C again ends at once")
            begun.stop()
            return
        measured = begun.progress.steps > WARM_UP_STEPS
        if replan_at is not None and time.monotonic() >= replan_at and measured:
            replan_at = None
            _replan(begun, asked)


def _replan(begun: Run, asked: _Asked) -> None:
    """Plan anew; that this cannot be done is no reason to end a run that is well."""
    try:
        planner = asked.planner or "rod"
        moved = begun.replan(planner, options=asked.options, seed=asked.seed, cause=REPLAN_CAUSE)
    except LevelwindError as error:
        note(f"not planned anew: {error}")
    else:
        note(f"planned anew with what was measured: {plural(len(moved), 'operator')} moved")


def _end_at_once(begun: Run) -> None:
    """Leave without waiting for Spark: its process ends with this one, and the checkpoint is whole."""
    begun.give_up()
    print("interrupted", file=sys.stderr, flush=True)
    sys.stdout.flush()
    os._exit(INTERRUPTED)


def _failure(error: Exception, begun: Run) -> str:
    """What went wrong in a sentence, and where to read on."""
    said = failure_text(str(error) or type(error).__name__)
    begun.give_up(said)
    try:
        begun.close()
    except Exception:  # the first failure is what matters
        note("Spark did not end in good order")
    return f"{said}; see {shown_path(begun.directory.log_file)}"


def failure_text(text: str) -> str:
    """The line of a failure that says what happened: of a Python traceback in a Java one, its last line.

    Examples
    --------
    >>> failure_text("operator 'a': division by zero; row {}")
    "operator 'a': division by zero; row {}"
    """
    traced = text.partition("Traceback (most recent call last):")[2]
    said = [line for line in traced.splitlines() if re.match(r"[A-Za-z_][\w.]*(?::|$)", line)]
    if said:
        return said[0].strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "no reason was given"


def _as_dict(begun: Run) -> dict[str, Any]:
    status = begun.status
    return {
        "run": str(begun.directory.path),
        "steps": status["steps"],
        "rows": status["rows"],
        "outputs": status["outputs"],
        "dead_letters": status["dead_letters"],
        "shed": status["shed"],
        "moves": status["moves"],
        "batch_seconds": begun.progress.batch_seconds,
        "state": status["state"],
        "spread": status["spread"],
    }


def _as_text(begun: Run) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    told = _as_dict(begun)
    batch = told["batch_seconds"]
    head = (
        f"{begun.network.name}: {told['state']} after {told['steps']} batches,"
        f" {grouped(told['rows'])} rows in;"
        f" batch p50 {number(batch['p50'])} s, p99 {number(batch['p99'])} s;"
        f" dead letters {grouped(told['dead_letters'])}, moves {told['moves']}"
    )
    if told["shed"]:
        head += f", rows shed {grouped(told['shed'])}"
    table = plain_table()
    table.add_column("output", overflow="fold")
    table.add_column("rows", justify="right")
    for name, rows in told["outputs"].items():
        table.add_row(name, grouped(rows))
    spread = [Text(line, overflow="fold") for line in spread_lines(told)]
    return Group(Text(head, overflow="fold"), *spread, Text(), table)
