"""The `trialwise` command: finds the subcommand and turns what happens into an exit code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from inspect import isfunction
from typing import Any

import click

from trialwise import extensions
from trialwise.cli import process
from trialwise.cli.process import ExitCode
from trialwise.errors import BrokenCheck, RunInterrupted, TrialwiseError
from trialwise.extensions import COMMANDS, ExtensionError, ExtensionRaised

#: What the help page lists, in the order in which a project comes to need it: where a command is
#: and what it does. A help page imports none of them.
_COMMANDS = {
    "init": ("project_commands:init_command", "Write a first suite and a sample agent."),
    "check": ("check_commands:check_command", "Check a suite without running a trial."),
    "run": ("run_command", "Run a suite and report PASS, FAIL or INCONCLUSIVE."),
    "show": ("stored_commands:show_command", "Show stored runs again, with their failures."),
    "rerun": ("stored_commands:rerun_command", "Run one trial of a stored run again."),
    "runs": ("stored_commands:runs_command", "List stored runs."),
    "report": ("stored_commands:report_command", "Write reports on stored runs."),
    "compare": ("compare_command", "Say which of several arms is better, or the best."),
    "plan": ("plan_command", "Find out how many trials you need."),
    "score": ("score_command", "Decide on results that another tool produced."),
    "baseline": ("project_commands:baseline_command", "List, show and prune baselines."),
    "judge": ("judge_command", "Measure how often a judge is wrong."),
}
#: What `--help-all` lists besides: used once in a while, or by other programs.
_MORE = {
    "completion": (
        "project_commands:completion_command",
        "Print a completion script for your shell.",
    ),
    "doctor": ("check_commands:doctor_command", "Check this machine and this suite."),
    "measure": ("project_commands:measure_command", "Measure baselines."),
    "schema": ("project_commands:schema_command", "Print a JSON Schema."),
    # Bridges to other tools.
    "conformance": (
        "trialwise.contrib.commands.conformance_command",
        "Check the statistics against reference cases.",
    ),
    "import": ("trialwise.contrib.commands.import_command", "Convert a suite of another tool."),
}
#: Commands of earlier versions, and what they are now. They go with the next version.
_REPLACED = {
    "choose": ("compare", "--question", "best"),
    "explore": ("compare", "--question", "describe"),
}
_PLACES = {name: place for name, (place, _) in (_COMMANDS | _MORE).items()}


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
            process.mute(1)
            code = ExitCode.ERROR if self._called in process.SUPERVISED else ExitCode.PASS
            raise click.exceptions.Exit(code) from None

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [*_COMMANDS, *sorted(_MORE), *extensions.extension_names(COMMANDS)]

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        if cmd_name not in _PLACES:
            return extensions.find_extension(COMMANDS, cmd_name, _accept_command)
        module, _, name = _PLACES[cmd_name].partition(":")
        inside = "" if module.startswith("trialwise.") else "trialwise.cli."
        command = getattr(import_module(inside + module), name or "command")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in _REPLACED:
            now = _REPLACED[args[0]]
            click.echo(f"trialwise {args[0]} is now `trialwise {' '.join(now)}`", err=True)
            args = [*now, *args[1:]]
        self._called = args[0]
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from trialwise.declarations.written import suggest_name

            hint = suggest_name(args[0], self.list_commands(ctx), quote="'")
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
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in _COMMANDS.items()])

    def write_all(self, ctx: click.Context) -> str:
        """Write the second help page: also what is seldom needed, and what extensions add."""
        formatter = ctx.make_formatter()
        self.format_commands(ctx, formatter)
        with formatter.section("More commands"):
            formatter.write_dl([(name, about) for name, (_, about) in sorted(_MORE.items())])
        if added := extensions.extension_names(COMMANDS):
            with formatter.section("Commands of installed extensions"):
                formatter.write_dl([(name, self._describe(ctx, name)) for name in added])
        return formatter.getvalue().rstrip("\n")

    def _describe(self, ctx: click.Context, name: str) -> str:
        """Describe the command of an extension; one that is broken must not hide the others."""
        try:
            command = self.get_command(ctx, name)
        except ExtensionError:
            return "cannot be imported; call it to see why"
        return "" if command is None else command.get_short_help_str(80)


def _accept_command(loaded: object) -> click.Command | None:
    """Return what an extension declares as a command; a plain function is one without options."""
    if isinstance(loaded, click.Command):
        return loaded
    return click.command()(loaded) if isfunction(loaded) else None


def _show_all(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        assert isinstance(cli, _LazyCommands)
        click.echo(cli.write_all(context))
        context.exit()


@click.group(cls=_LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="trialwise", message="%(prog)s %(version)s")
@click.option(
    "--help-all",
    is_flag=True,
    is_eager=True,
    callback=_show_all,
    expose_value=False,
    help="List all commands, also those that are seldom needed.",
)
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

    # A command that calls nobody's code cannot be ended by it, and pays for no second process.
    if not process.calls_service(sys.argv[1:]):
        sys.exit(_run(None))

    process.open_closed_streams()
    report = process.fork_supervised()
    process.divert_prints()
    process.end_process(_run(None), report)


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
        return (
            ExitCode.ERROR if isinstance(error, BrokenCheck | ExtensionRaised) else ExitCode.REFUSED
        )
    except SystemExit as left:
        return ExitCode.PASS if completing and left.code in (0, None) else ExitCode.ERROR
    except BaseException as error:
        import traceback

        traceback.print_exc()
        extension = extensions.blame_extension(error)
        said = "an internal error; please report it with the lines above"
        click.echo(
            f"trialwise: {ExtensionRaised(extension, error) if extension else said}", err=True
        )
        return ExitCode.ERROR
    return code if isinstance(code, int) else ExitCode.PASS


if __name__ == "__main__":
    main()
