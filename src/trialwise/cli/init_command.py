"""`trialwise init`: a suite and something to try it on, in one step and offline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from trialwise.cli.exits import ExitCode
from trialwise.errors import TrialwiseError

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
@click.argument(
    "folder", type=click.Path(path_type=Path, file_okay=False), default=".", metavar="[FOLDER]"
)
@click.option(
    "--from",
    "kind",
    type=click.Choice(_KINDS),
    default="python",
    show_default=True,
    help="What is under test: a function, tests, a program, a URL, a chat model, one with tools.",
)
@click.option("--force", is_flag=True, help="Overwrite what an earlier `init` wrote.")
def command(folder: Path, kind: str, force: bool) -> int:
    """Write a suite and a sample agent that runs offline, and say what to do next.

    From pytest it writes no suite but tests, whose markers say the same.

    Asks nothing. A file that is there already is not touched: exit code 2 names it. With --force
    the suite and the sample agent are written anew, and nothing else is.

    \b
    Examples:
      trialwise init
      trialwise init checks --from http
    """
    python = _interpreter()
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
    _warn_of_missing(kind)
    return ExitCode.PASS


def _files(kind: str, python: str) -> dict[str, str]:
    """Return what is written, by name within the folder."""
    from importlib.resources import files

    from trialwise.suite.reference import written_schema

    found = files("trialwise.cli").joinpath("init_templates", kind)
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


def _interpreter() -> str:
    """Return what starts Python here; the suite is for other machines, too, so it is no path."""
    from shutil import which

    return "python" if which("python") or not which("python3") else "python3"


def _next_steps(folder: Path, files: Mapping[str, str], python: str) -> str:
    steps: list[tuple[str, str]] = []
    if folder.resolve() != Path.cwd():
        import shlex

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


def _warn_of_missing(kind: str) -> None:
    from importlib.util import find_spec
    from shutil import which

    if kind == "agent" and find_spec("mcp") is None:
        click.echo("\nTools need the MCP SDK: pip install 'trialwise[mcp]'", err=True)

    if kind == "pytest" and which("pytest") is None:
        click.echo("\nThere is no `pytest` on the path: pip install pytest.", err=True)
