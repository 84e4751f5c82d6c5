"""The `trialwise` command: finds the subcommand and turns what happens into an exit code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from trialwise.cli.exits import ExitCode
from trialwise.errors import BrokenCheck, RunInterrupted, TrialwiseError

#: What each command does, in a line; its module has its name. A help page imports none of them.
#: The everyday ones come first, in the order in which they are used.
_COMMANDS = {
    "init": "Write a first suite and a sample agent.",
    "check": "Check a suite without running a trial.",
    "run": "Run a suite and report PASS, FAIL or INCONCLUSIVE.",
    "show": "Show stored runs again, with their failures.",
    "rerun": "Run one trial of a stored run again.",
    "runs": "List stored runs.",
    "report": "Write reports on stored runs.",
    "plan": "Find out how many trials you need.",
}
_MORE = {
    "baseline": "List, show and prune baselines.",
    "choose": "Find the best of several arms.",
    "compare": "Say whether one contract is better than another.",
    "completion": "Print a completion script for your shell.",
    "doctor": "Check this machine and this suite.",
    "explore": "Describe several arms beside each other.",
    "judge": "Measure how often a judge is wrong.",
    "measure": "Measure baselines.",
    "schema": "Print a JSON Schema.",
    "score": "Decide on results that another tool produced.",
}
#: Bridges to other tools. They are named here and imported only when a user calls them.
_OTHER_TOOLS = {
    "conformance": "Check the statistics against reference cases.",
    "import": "Convert a suite of another tool.",
}
_PACKAGES = {
    **dict.fromkeys((*_COMMANDS, *_MORE), "trialwise.cli"),
    **dict.fromkeys(_OTHER_TOOLS, "trialwise.contrib.commands"),
    "plan": "trialwise.cli.plan",
}


class _LazyCommands(click.Group):
    """A group that imports a command only when it is asked for."""

    _called = ""

    @contextmanager
    def _leave_with_reader(self) -> Iterator[None]:
        """End with success where the reader has gone (`trialwise … | head`): it has read enough.

        click would end with 1, which means FAIL here. A command that calls a service prints with
        `ignore_gone_reader` and returns its own code; in it this error is somebody else's.
        """
        try:
            yield
        except BrokenPipeError:
            from trialwise.cli.standard_streams import mute
            from trialwise.cli.supervision import SUPERVISED

            mute(1)
            code = ExitCode.ERROR if self._called in SUPERVISED else ExitCode.PASS
            raise click.exceptions.Exit(code) from None

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [*_COMMANDS, *sorted((*_MORE, *_OTHER_TOOLS))]

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        if cmd_name not in _PACKAGES:
            return None
        command = import_module(f"{_PACKAGES[cmd_name]}.{cmd_name}_command").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        self._called = args[0]
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from trialwise.declarations.nearest_names import suggest_name

            hint = suggest_name(args[0], _PACKAGES, quote="'")
            if not hint:
                raise
            message = f"{error.message.removesuffix('.')}; {hint}"
            raise click.UsageError(message, ctx=error.ctx) from None

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with self._leave_with_reader():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with self._leave_with_reader():
            return super().invoke(ctx)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        more = dict(sorted((_MORE | _OTHER_TOOLS).items()))
        for title, commands in (("Commands", _COMMANDS), ("More commands", more)):
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))


@click.group(cls=_LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="trialwise", message="%(prog)s %(version)s")
def cli() -> None:
    """Test systems that do not behave the same way twice.

    Exit codes: 0 PASS, 1 FAIL, 2 refused (usage, configuration, infeasible design),
    3 INCONCLUSIVE, 4 runtime error, 130 interrupted.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with the code that says what happened."""
    # A short command mostly loads what then stays, and would look through it for garbage time and
    # again: at every 700 objects, the usual threshold.
    gc.set_threshold(50_000)
    if arguments is not None:
        sys.exit(_run(arguments))
    from trialwise.cli.supervision import calls_service, end_process, fork_supervised

    if not calls_service(sys.argv[1:]):
        sys.exit(_run(None))
    from trialwise.cli.standard_streams import divert_prints, open_closed_streams

    open_closed_streams()
    report = fork_supervised()
    divert_prints()
    end_process(_run(None), report)


def _run(arguments: list[str] | None) -> int:
    # Only click itself may leave with success, when it completes a word for a shell. An exit from
    # anywhere else is the service's, and says nothing about a verdict.
    completing = "_TRIALWISE_COMPLETE" in os.environ
    try:
        code = cli.main(args=arguments, prog_name="trialwise", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return ExitCode.REFUSED
    except (click.Abort, KeyboardInterrupt) as stopped:
        # What is kept, and how to continue, where the command knows.
        # click turns what it catches into an abort.
        causes = (stopped, stopped.__cause__, stopped.__context__)
        said = next((str(one) for one in causes if isinstance(one, RunInterrupted)), "interrupted")
        click.echo(said, err=True)
        return ExitCode.INTERRUPTED
    except TrialwiseError as error:
        click.echo(f"trialwise: {error}", err=True)
        return ExitCode.ERROR if isinstance(error, BrokenCheck) else ExitCode.REFUSED
    except SystemExit as left:
        return ExitCode.PASS if completing and left.code in (0, None) else ExitCode.ERROR
    except BaseException:
        import traceback

        traceback.print_exc()
        click.echo("trialwise: an internal error; please report it with the lines above", err=True)
        return ExitCode.ERROR
    return code if isinstance(code, int) else ExitCode.PASS


if __name__ == "__main__":
    main()
