"""The console entry: commands by name, and one place where every way to end becomes an exit code.

Command modules are imported here, so none of them may import NumPy, Rich or anything heavier at its top:
`levelwind --help` has to be there at once.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from levelwind.cli.add import add
from levelwind.cli.bench import bench
from levelwind.cli.check import check
from levelwind.cli.compare import compare
from levelwind.cli.cost_models import cost_models
from levelwind.cli.demo import demo
from levelwind.cli.errors import (
    DONE,
    INTERRUPTED,
    UsageError,
    report_failure,
    report_problems,
    usage_problem,
)
from levelwind.cli.explain import explain
from levelwind.cli.measure import measure
from levelwind.cli.move import move
from levelwind.cli.plan import plan
from levelwind.cli.planners import planners
from levelwind.cli.policies import policies
from levelwind.cli.probe import probe
from levelwind.cli.remove import remove
from levelwind.cli.reproduce import reproduce
from levelwind.cli.run import run
from levelwind.cli.schema import schema
from levelwind.cli.simulate import simulate
from levelwind.cli.size import size
from levelwind.cli.stats import stats
from levelwind.cli.status import status
from levelwind.cli.stop import stop
from levelwind.cli.topology import topology
from levelwind.cli.windows import windows
from levelwind.errors import InputError, did_you_mean, input_error

COMMANDS = (
    demo,
    check,
    schema,
    plan,
    measure,
    compare,
    explain,
    size,
    planners,
    policies,
    cost_models,
    simulate,
    topology,
    probe,
    run,
    status,
    stats,
    move,
    add,
    remove,
    windows,
    stop,
    reproduce,
    bench,
)


class Commands(TyperGroup):
    """The group of all commands. An unknown one is bad input like any other, with the nearest name."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command, or say which one may have been meant."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            hint = did_you_mean(args[0], self.commands)
            rule = "must be a command of levelwind"
            raise input_error(rule, key="COMMAND", value=args[0], hint=hint)
        return super().resolve_command(ctx, args)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"levelwind {version('levelwind')}")
        raise typer.Exit


def _start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Decide where every operator of every continuous query runs, and what that is worth.

    Every command puts its answer on standard output and everything else on standard error. On a terminal
    the answer is text, in a pipe or a file JSON; --format text or --format json overrides that.

    Exit codes: 0 done, 1 the answer is no, 2 bad input, 3 a run failed, 130 interrupted.

    Example:
      levelwind plan examples/traffic.yaml --nodes 5 --planner rod
    """
    if context.invoked_subcommand is None:
        rule, hint = "a command must be given", "known: " + ", ".join(_name(c) for c in COMMANDS)
        raise input_error(rule, key="COMMAND", hint=hint)


def _name(command: Callable[..., Any]) -> str:
    """What a command is called: as its function, with hyphens."""
    return command.__name__.replace("_", "-")


def _help_text(command: Callable[..., Any]) -> str:
    """A command's docstring for its help, with the mark that keeps the lines of its examples apart."""
    return re.sub(r"(?m)^(?=Examples?:|Exit codes:)", "\b\n", inspect.getdoc(command) or "")


app = typer.Typer(
    name="levelwind",
    cls=Commands,
    invoke_without_command=True,
    # Plain help starts twice as fast as the framed one, wraps well, and its examples can be copied.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.callback(help=_help_text(_start))(_start)
for _command in COMMANDS:
    app.command(_name(_command), help=_help_text(_command))(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; nothing that can happen ends in a traceback."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = app(given, prog_name="levelwind", standalone_mode=False)
    except InputError as error:
        return report_problems(error.problems, given)
    except UsageError as error:
        return report_problems([usage_problem(error, given)], given)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:
        return report_failure(error)
    if code == INTERRUPTED:
        # An interrupt that falls into `exec` (dataclasses are made by it, at import) marks the process:
        # Python would end it by SIGINT, whatever code we return. Another `exec` takes the mark away.
        exec("")
        print("interrupted", file=sys.stderr)
    return code if isinstance(code, int) else DONE


if __name__ == "__main__":
    sys.exit(main())
