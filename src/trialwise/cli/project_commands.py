"""What a project has beside its runs: `init`, `schema`, `completion`, `baseline` and `measure`."""

from __future__ import annotations

import importlib.util
import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files as list_resources
from pathlib import Path
from shutil import which
from typing import Any

import click

from trialwise.cli import options
from trialwise.cli.options import FILE, FOLDER
from trialwise.cli.process import ExitCode, say, say_json, say_page, write_file
from trialwise.documents.printable import near
from trialwise.errors import TrialwiseError
from trialwise.pages.baselines import Shelf, build_baseline_page
from trialwise.runtime.chosen_runs import find_places
from trialwise.runtime.selecting import Selection
from trialwise.stores.baselines import BaselineStore
from trialwise.suite.keys import written_schema

SUITE, SCHEMA = "trialwise.yaml", ".trialwise/trialwise.schema.json"
#: Another name of a suite: with both in one folder nobody knows which is meant.
_OTHER_SUITE = "trialwise.yml"
#: The runs stay here; the schema goes along, so that editors work on every clone.
_IGNORED = ("# What trialwise keeps of its runs", ".trialwise/*", f"!{SCHEMA}")
_ENTRIES = (".trialwise", ".trialwise/", ".trialwise/*", ".trialwise/**")
_ABOUT = {
    SUITE: "the suite: what is promised, and of what",
    SCHEMA: "lets editors complete and check the suite",
    "sample_agent.py": "an agent to try it on",
    "sample_server.py": "an agent to try it on, behind HTTP",
    "sample_model.py": "a model to try it on, behind the OpenAI protocol",
    "sample_tools.py": "its tools, as an MCP server",
    "test_sample_agent.py": "an agent to try it on, and tests with the rates that they must reach",
}
_KINDS = ("python", "pytest", "command", "http", "openai", "agent")
_SERVERS = ("sample_server.py", "sample_model.py")


@click.command("init")
@click.argument("folder", type=FOLDER, default=".", metavar="[FOLDER]")
@click.option(
    "--from",
    "kind",
    type=click.Choice(_KINDS),
    default="python",
    show_default=True,
    help="What is under test: a function, tests, a program, a URL, a chat model, one with tools.",
)
@click.option("--force", is_flag=True, help="Overwrite what an earlier `init` wrote.")
def init_command(folder: Path, kind: str, force: bool) -> int:
    """Write a suite and a sample agent that runs offline, and say what to do next.

    From pytest it writes no suite but tests, whose markers say the same.

    Asks nothing. A file that is there already is not touched: exit code 2 names it. With --force
    the suite and the sample agent are written anew, and nothing else is.

    \b
    Examples:
      trialwise init
      trialwise init checks --from http
    """
    # A name and no path: the suite is for other machines, too.
    python = "python" if which("python") or not which("python3") else "python3"
    files = _files(kind, python)
    _check_free(folder, files, force=force)
    for name, text in files.items():
        _write(folder / name, text)
    ignored = _ignore(folder / ".gitignore")
    rows = [("wrote", name, _ABOUT[name]) for name in files]
    rows += [(ignored, ".gitignore", "keeps runs out of git")] if ignored else []
    verbs, names = (max(len(row[place]) for row in rows) for place in (0, 1))
    for verb, name, about in rows:
        click.echo(f"{verb:<{verbs}}  {name:<{names}}  {about}")
    click.echo(f"\nNext:\n{_next_steps(folder, files, python)}")
    if kind == "agent" and importlib.util.find_spec("mcp") is None:
        click.echo("\nTools need the MCP SDK: pip install 'trialwise[mcp]'", err=True)
    if kind == "pytest" and which("pytest") is None:
        click.echo("\nThere is no `pytest` on the path: pip install pytest.", err=True)
    return ExitCode.PASS


def _files(kind: str, python: str) -> dict[str, str]:
    """Return what is written, by name within the folder."""
    found = list_resources("trialwise.cli").joinpath("init_templates", kind)
    texts = {
        one.name.removesuffix(".in"): one.read_text("utf-8").replace("@PYTHON@", python)
        for one in found.iterdir()
        if one.name.endswith(".in")
    }
    if SUITE not in texts:  # markers say what a suite would
        return texts
    # The suite first: it is what somebody opens.
    return {SUITE: texts.pop(SUITE), **dict(sorted(texts.items())), SCHEMA: written_schema()}


def _check_free(folder: Path, files: Mapping[str, str], *, force: bool) -> None:
    if SUITE in files and (folder / _OTHER_SUITE).exists():
        raise TrialwiseError(f"{folder / _OTHER_SUITE} is a suite already: a folder has one")
    # The schema is made, not written by anybody: it is brought up to date without asking.
    there = [folder / name for name in files if name != SCHEMA and (folder / name).exists()]
    # Nothing at all is written where one file would be lost: half a project helps nobody.
    if there and not force:
        names = ", ".join(map(str, there))
        raise TrialwiseError(
            f"{names} {'is' if len(there) == 1 else 'are'} there already; nothing was written. "
            "Give another folder, or --force to overwrite."
        )


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise click.FileError(str(path), error.strerror or str(error)) from None


def _ignore(path: Path) -> str:
    """Keep runs out of git; what was done, if anything had to be."""
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise click.FileError(str(path), str(error)) from None
    if any(line.strip().removeprefix("/") in _ENTRIES for line in before.splitlines()):
        return ""
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    _write(path, before + gap + "\n".join(_IGNORED) + "\n")
    return "added to" if before else "wrote"


def _next_steps(folder: Path, files: Mapping[str, str], python: str) -> str:
    steps: list[tuple[str, str]] = []
    if folder.resolve() != Path.cwd():
        steps.append((f"cd {shlex.quote(str(folder))}", ""))
    steps += [
        (f"{python} {name}", "in another terminal: it answers until Ctrl-C")
        for name in _SERVERS
        if name in files
    ]
    check, run = "trialwise check", "trialwise run"
    if SUITE not in files:
        check, run = "pytest --trialwise-plan", "pytest"
    steps += [
        (check, "the rule in counts, its error rates, what it can cost"),
        (run, "the trials, and the verdict"),
    ]
    width = max(len(step) for step, _ in steps)
    return "\n".join(
        f"  {step:<{width}}  # {about}" if about else f"  {step}" for step, about in steps
    )


# --- `trialwise schema`: the JSON Schemas of what people write and of what programs read ----------


@click.command("schema")
@click.option(
    "--for",
    "what",
    type=click.Choice(["suite", "report", "comparison"]),
    default="suite",
    show_default=True,
    help="The suite file, the JSON report of runs, or that of a comparison.",
)
@click.option("-o", "--output", type=FILE, help="Write to a file instead.")
def schema_command(what: str, output: Path | None) -> int:
    """Print a JSON Schema (draft 2020-12).

    Editors with a YAML language server complete and check a suite whose first line names the
    file: `# yaml-language-server: $schema=trialwise.schema.json`. `trialwise init` writes both.

    \b
    Examples:
      trialwise schema -o trialwise.schema.json
      trialwise schema --for report > report.schema.json
    """
    from trialwise.pages import comparison, json_report

    if what == "suite":
        text = written_schema(installed=True)
    else:
        reports = {
            "report": json_report.read_report_schema,
            "comparison": comparison.read_comparison_schema,
        }
        text = json.dumps(reports[what](), indent=2, ensure_ascii=False) + "\n"
    if output is None:
        say_json(text)
    else:
        write_file(output, text)
    return ExitCode.PASS


# --- `trialwise completion`: what a shell needs to complete commands, options and runs ------------

#: Where each shell looks, in a line that can be pasted.
_INSTALL = {
    "bash": "echo 'eval \"$(trialwise completion bash)\"' >> ~/.bashrc",
    "zsh": "echo 'eval \"$(trialwise completion zsh)\"' >> ~/.zshrc",
    "fish": "trialwise completion fish > ~/.config/fish/completions/trialwise.fish",
}
_VARIABLE = "_TRIALWISE_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_INSTALL)))
def completion_command(shell: str) -> int:
    """Print the completion script of a shell; its first line says how to install it.

    \b
    Examples:
      trialwise completion bash
      eval "$(trialwise completion zsh)"
    """
    from click.shell_completion import get_completion_class

    from trialwise.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    found = kind(cli, {}, "trialwise", _VARIABLE)
    # Not `source()`, which starts a bash to look at its version: the script is the same for all.
    script = found.source_template % found.source_vars()
    # On standard output, since a shell that evaluates it at every start should say nothing.
    click.echo(f"# To install it, run once:  {_INSTALL[shell]}\n{script}", nl=False)
    return ExitCode.PASS


# --- `trialwise baseline`: the measured references of a project -----------------------------------


def _open(_: click.Context, __: click.Parameter, folder: Path | None) -> BaselineStore:
    return BaselineStore(find_places().baselines if folder is None else folder)


_folder = click.option(
    "--folder",
    "store",
    type=FOLDER,
    callback=_open,
    help="Folder of the baselines. Default: the suite's, else baselines/.",
)
_contract = click.option("--contract", help="Only this contract's.")


@click.group("baseline", no_args_is_help=True)
def baseline_command() -> None:
    """Look at and look after measured baselines.

    `trialwise measure` writes them; a criterion with `no_worse_than: baseline` is held against the
    newest that was measured under the same conditions. They are files to be kept in git.

    \b
    Examples:
      trialwise baseline list
      trialwise baseline promote artifacts/support-agent.json
    """


@baseline_command.command("list", short_help="List baselines: rates, age, which is in force.")
@_folder
@_contract
@options.json_option
def list_(store: BaselineStore, contract: str | None, as_json: bool) -> int:
    """List baselines: their rates, their age, and which of them is in force.

    Of each contract and each set of conditions the newest is in force; the others are superseded.

    \b
    Example:
      trialwise baseline list --contract support-agent
    """
    shelf = _read(store, contract)
    if as_json:
        say_json(shelf.to_dict())
    elif shelf.entries:
        say_page(shelf.build_page(), wide=True)
    else:
        whose = "" if contract is None else f" of {contract!r}"
        click.echo(f"{store.folder}: no baseline{whose}. Measure one: trialwise measure", err=True)
    return ExitCode.PASS


@baseline_command.command()
@click.argument("name")
@_folder
@_contract
@options.json_option
def show(name: str, store: BaselineStore, contract: str | None, as_json: bool) -> int:
    """Show one baseline: counts, conditions, validity.

    NAME is an identifier, a file, or a contract, of which the newest baseline is meant. --json
    prints the file as it is kept.

    \b
    Examples:
      trialwise baseline show support-agent
      trialwise baseline show baselines/support-agent/nightly.json --json
    """
    file = Path(name)
    path, found = (file, store.load(file)) if file.is_file() else _read(store, contract).find(name)
    if as_json:
        say_json(path.read_text(encoding="utf-8"))
    else:
        say_page(build_baseline_page(path, found, datetime.now(UTC)), wide=True)
    return ExitCode.PASS


@baseline_command.command(short_help="Take a baseline from elsewhere.")
@click.argument("file", type=FILE)
@_folder
@options.json_option
def promote(file: Path, store: BaselineStore, as_json: bool) -> int:
    """Take a baseline from elsewhere, such as a build's artefact, into this project.

    The file is checked, copied and given the next epoch. Promoting one that is there already
    changes nothing.

    \b
    Example:
      trialwise baseline promote artifacts/support-agent.json
    """
    path = store.promote(file)
    kept = next(one for one in _read(store, None).entries if one.path == path)
    one = kept.baseline
    if as_json:
        say_json(kept.to_dict())
        return ExitCode.PASS
    say(f"{one.contract}: {one.identifier} (epoch {one.epoch}) is {kept.state}, in {near(path)}")
    return ExitCode.PASS


@baseline_command.command(short_help="Delete all but the newest few.")
@click.option(
    "--keep", type=click.IntRange(1), required=True, help="How many to keep of each index."
)
@click.option("--yes", is_flag=True, help="Delete them; without it they are only listed.")
@_folder
@_contract
@options.json_option
def prune(keep: int, yes: bool, store: BaselineStore, contract: str | None, as_json: bool) -> int:
    """Delete all but the newest few baselines of each contract and set of conditions.

    Without --yes nothing is deleted. A stored verdict keeps the counts it was decided against.

    \b
    Example:
      trialwise baseline prune --keep 3 --yes
    """
    old = (store.prune if yes else store.list_old)(keep, contract=contract)
    if as_json:
        say_json({"deleted": yes, "files": [near(path) for path in old]})
        return ExitCode.PASS
    for path in old:
        say(f"{'deleted' if yes else 'would delete'} {near(path)}")
    if not old:
        click.echo("nothing to delete", err=True)
    elif not yes:
        click.echo("nothing was deleted; add --yes to delete them", err=True)
    return ExitCode.PASS


def _read(store: BaselineStore, contract: str | None) -> Shelf:
    return Shelf.of(store.all(contract), datetime.now(UTC))


# --- `trialwise measure`: write baselines ---------------------------------------------------------


@click.command(
    "measure",
    cls=options.GroupedCommand,
    groups={
        "Choose": "files expression tags",
        "Size": "option_trials",
        "Baseline": "identifier valid_days grace_days",
        "Run": "option_concurrency option_seed settings",
        "Limits": "option_max_usd option_max_seconds",
        "Continue": "resume",
        "Output": "quiet",
    },
)
@options.selection
@options.pace_options
@click.option("--identifier", help="Name of the baseline. Default: contract and time.")
@click.option("--valid-days", type=float, help="Days for which the baseline is valid.")
@click.option("--grace-days", type=float, default=0.0, help="Days after that with a warning only.")
@click.option("--resume", is_flag=True, help="Resume a measurement that was stopped.")
@options.quiet_option
def measure_command(selected: Selection, *, quiet: bool, **given: Any) -> int:
    """Measure baselines: run every planned trial and write the counts to a file.

    Nothing is decided. The file is made to be read, reviewed and kept in git.

    \b
    Examples:
      trialwise measure --trials 1000
      trialwise measure support-agent --trials 500 --valid-days 30
    """
    from trialwise.runtime.measuring import measure

    chosen = selected.choose_sized(selected.load())
    if given["identifier"] and len(chosen) > 1:
        raise click.UsageError("--identifier names one baseline: choose one contract")
    for suite, contract, wanted in chosen:
        done = measure(
            contract,
            options=wanted if wanted.trials else replace(wanted, max_trials=None),
            store=suite.runs_folder,
            baselines=suite.baselines_folder,
            progress=not quiet,
            redact=suite.redaction,
            **given,
        )
        rates = ", ".join(
            f"{name} {found.passed} of {found.trials}"
            for name, found in done.baseline.criteria.items()
        )
        say(f"{contract.name}: {rates}; wrote {done.path}")
        for warning in done.warnings:
            click.echo(f"{contract.name}: {warning}", err=True)
    return ExitCode.PASS
