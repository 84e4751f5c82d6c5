"""`trialwise check` and `trialwise doctor`: everything that can be known without a trial."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from platform import python_version
from shutil import which
from typing import Any

import click

from trialwise import suite as suites
from trialwise.cli import options
from trialwise.cli.arm_choice import check_section
from trialwise.cli.process import ExitCode, say, say_json, say_page
from trialwise.documents.blocks import Badge, Document, Row, Table, Tone
from trialwise.documents.numbers import as_all, as_count
from trialwise.documents.printable import near
from trialwise.runtime.selecting import Selection, prepare_chosen


@click.command(
    "check",
    cls=options.GroupedCommand,
    groups={
        "Choose": "files expression tags criteria",
        "Size": "option_trials option_max_trials",
        "Decide": "option_intent settings expect",
        "Limits": "option_max_usd option_max_seconds",
        "Output": "as_json",
    },
)
@options.selection
@options.criterion_option
@options.size_options
@click.option(
    "--expect",
    type=options.RATE,
    help="The true rate you expect: compare the ways to ask for each required rate there.",
)
@options.json_option
def check_command(selected: Selection, expect: float | None, as_json: bool) -> int:
    """Check a suite and say what it would do: rules in counts, chances, cost.

    No service is called. Exits 2 where the file is wrong or a design cannot support its claim.

    \b
    Examples:
      trialwise check
      trialwise check support-agent --trials 200
      trialwise check --expect 97%
    """
    from trialwise.model.codec import to_plain
    from trialwise.pages import run_rules
    from trialwise.pages.suite_totals import bound_planned_errors
    from trialwise.procedures.chances import forecast, forecast_together
    from trialwise.runtime.earlier_runs import expense_of, list_notes
    from trialwise.runtime.workspace import Workspace

    suites = selected.load(with_arms=True)
    for suite in suites:
        check_section(suite)
    chosen = selected.choose_sized(suites)
    prepared = []
    for suite in suites:
        runs, baselines = suite.runs_folder, suite.baselines_folder
        space = Workspace(store=runs, baselines=baselines, redact=suite.redaction)
        prepared += [(one.plan, runs) for one in prepare_chosen(suite, chosen, space)]
    plans = [plan for plan, _ in prepared]
    if as_json:
        described = [
            {
                "contract": plan.contract,
                "max_trials": plan.max_trials,
                "criteria": list(map(to_plain, forecast(plan))),
                "notes": list_notes(plan, runs),
                "guards": list(map(to_plain, plan.guards)),
            }
            for plan, runs in prepared
        ]
        together = list(map(to_plain, forecast_together(plans)))
        envelopes = list(map(to_plain, bound_planned_errors(plans)))
        whole = {"contracts": described, "together": together, "envelopes": envelopes}
        say_json({"schema": "trialwise.check/1", **whole})
        return ExitCode.PASS
    for plan, runs in prepared:
        expense = expense_of(plan, runs)
        say(run_rules.render_rules(plan, expense=expense))
        if expect is not None:
            say(run_rules.render_choices(plan, expect, expense=expense))
        for note in list_notes(plan, runs):
            say(f"  note: {note}\n")
        for guard in plan.guards:
            say(f"  {guard.severity}: {guard.message}")
    if chances := run_rules.render_together(plans):
        say(chances)
    count = as_all(len(prepared), "contract")
    where = ", ".join(near(suite.path) for suite in suites)
    arms = sum(len(one.arms) for suite in suites for one in suite.contracts)
    sound = f"; {as_all(arms, 'arm')} can be compared" if arms else ""
    say(f"{where}: {count} can support what is claimed{sound}; nothing was run")
    return ExitCode.PASS


# `trialwise doctor`: whether everything that a run needs is there, without running anything.


@click.command("doctor")
@options.suite_option
@options.json_option
def doctor_command(file: Path | None, as_json: bool) -> int:
    """Check this machine and this suite: what is there, what is missing, what to do.

    No trial is run and no request is sent: a program is looked for, a host is connected to and
    let go. Exits 2 where something has to be put right, else 0.

    \b
    Examples:
      trialwise doctor
      trialwise doctor --json
    """
    checks = examine(file)
    failed = any(check.status == "FAIL" for check in checks)
    if as_json:
        shown = list(map(asdict, checks))
        say_json({"schema": "trialwise.doctor/1", "ok": not failed, "checks": shown})
    else:
        say_page(build_doctor_page(checks))
    return ExitCode.REFUSED if failed else ExitCode.PASS


#: A host that does not answer by then is not there for a run either.
_CONNECT_S = 2.0


class Status(StrEnum):
    """How a check came out."""

    OK = "OK"
    WARN = "WARN"
    """A run works without it."""
    FAIL = "FAIL"


_TONES: dict[Status, Tone] = {Status.OK: "pass", Status.WARN: "open", Status.FAIL: "fail"}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at."""

    name: str
    status: Status
    found: str
    advice: str = ""
    """What to do, where there is something to do."""


def examine(file: Path | None) -> list[Check]:
    """Return everything that can be said without a trial.

    Args:
        file: The suite; looked for in this folder and above where None.
    """
    # An older Python than the package asks for would not have come so far.
    python = Check("python", Status.OK, f"{python_version()}, {sys.executable}")
    checks = [python, *_libraries(), _terminal(), _cache()]
    suite, found = _suite(file)
    checks.append(found)
    if suite is not None:
        checks += [*_folders(suite), *_services(suite)]
    return checks


def build_doctor_page(checks: Sequence[Check]) -> Document:
    """Build a row for each check, with what to do below it, and a line for all of them."""
    rows = []
    for check in checks:
        badge = Badge(word=check.status.value, tone=_TONES[check.status])
        text = "\n".join(filter(None, (check.found, check.advice)))
        rows.append(Row(cells=(badge, check.name, text)))
    failed = sum(check.status is Status.FAIL for check in checks)
    warned = sum(check.status is Status.WARN for check in checks)
    ready = f"{as_count(failed, 'thing')} to put right" if failed else "nothing to put right"
    note = f"{ready}, {as_count(warned, 'warning')}" if warned else ready
    table = Table(
        heading="", columns=("", "", ""), rows=tuple(rows), notes=(note,), words=(0, 1, 2)
    )
    return Document(kind="Doctor", title="", blocks=(table,))


def _libraries() -> Iterator[Check]:
    """Yield what the package's own metadata asks for."""
    from importlib import metadata

    try:
        wanted = [one for one in metadata.requires("trialwise") or () if "extra ==" not in one]
    except metadata.PackageNotFoundError:
        advice = "Install it: pip install trialwise."
        yield Check("trialwise", Status.WARN, "not installed as a package", advice)
        return
    yield Check("trialwise", Status.OK, metadata.version("trialwise"))
    there, missing = [], {}
    for requirement in wanted:
        # The name in a requirement such as `click>=8.2`.
        name = next(iter(re.findall(r"^[A-Za-z0-9._-]+", requirement)), requirement)
        try:
            there.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing[name] = f"'{requirement}'"
    if missing:
        advice = f"Install what is missing: pip install {' '.join(missing.values())}"
        yield Check("libraries", Status.FAIL, f"missing: {', '.join(missing)}", advice)
    else:
        yield Check("libraries", Status.OK, ", ".join(there))


def _terminal() -> Check:
    from trialwise.renderers.capabilities import read_capabilities

    able = read_capabilities(sys.stdout)
    kind = "a terminal" if sys.stdout.isatty() else "no terminal (a file, a pipe or a CI log)"
    colour = "colour" if able.colour else "no colour"
    signs = "unicode" if able.unicode else "ASCII only"
    found = f"{kind}, {able.width} columns, {colour}, {signs}"
    if able.unicode:
        return Check("output", Status.OK, found)
    advice = "Reports are spelled in ASCII. For α and ≥ set PYTHONUTF8=1, or a UTF-8 locale."
    return Check("output", Status.WARN, found, advice)


def _cache() -> Check:
    from trialwise.stores.baselines import find_design_folder

    folder = find_design_folder(os.environ)
    advice = (
        "Unusual designs are searched for again in every run. Set TRIALWISE_CACHE to a folder that "
        "can be written to."
    )
    return _check_folder("cache", folder, str(folder), Status.WARN, advice)


def _suite(file: Path | None) -> tuple[suites.Suite | None, Check]:
    try:
        path = suites.find_suite(Path.cwd()) if file is None else file
        suite = suites.load_suite(path, environment=os.environ)
    except suites.SuiteNotFound as error:
        return None, Check("suite", Status.WARN, str(error))
    except suites.SuiteError as error:
        return None, Check("suite", Status.FAIL, str(error))
    contracts = as_count(len(suite.contracts), "contract")
    count = sum(len(one.contract.criteria) for one in suite.contracts)
    criteria = as_count(count, "criterion", "criteria")
    return suite, Check("suite", Status.OK, f"{near(path)}: {contracts}, {criteria}")


def _folders(suite: suites.Suite) -> Iterator[Check]:
    folders = {"runs": suite.runs_folder, "baselines": suite.baselines_folder}
    folders |= {f"{report.format} report": report.path.parent for report in suite.reports}
    advice = "Change its permissions, or name another folder in the suite."
    for name, folder in folders.items():
        yield _check_folder(name, folder, near(folder), Status.FAIL, advice)


def _check_folder(name: str, folder: Path, shown: str, status: Status, advice: str) -> Check:
    """Return whether a folder can be written to, or could be created."""
    from tempfile import TemporaryFile

    # A run creates its folders, so that the nearest one that is there has to allow it.
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        # Tried and not asked for: permissions, read-only mounts and full disks all show here.
        with TemporaryFile(dir=folder):
            return Check(name, Status.OK, shown)
    except OSError as error:
        why = f"cannot be written to ({error.strerror or error})"
        return Check(name, status, f"{shown}: {why}", advice)


def _services(suite: suites.Suite) -> Iterator[Check]:
    """Yield each service once, however many contracts share it."""
    shared: dict[int, list[suites.SuiteContract]] = {}
    for one in suite.contracts:
        shared.setdefault(id(one.contract.service), []).append(one)
    for several in shared.values():
        names = ", ".join(one.name for one in several)
        for check in _service(names, several[0].contract.service):
            # An address may have come from the environment, and is then nobody's to print.
            yield replace(check, found=suite.redaction(check.found))


def _service(contracts: str, service: Any) -> Iterator[Check]:
    from trialwise.services import AgentService, ChatService, CommandService, HttpService
    from trialwise.services.service_factors import resolve

    name = f"service of {contracts}"
    match service:
        case CommandService():
            yield _program(name, service.argv[0], str(service.cwd or ""), service.env.get("PATH"))
        case HttpService():
            yield _endpoint(name, resolve(service.url, service.environment))
        case ChatService():
            yield _endpoint(name, service.base_url)
        case AgentService():
            yield _endpoint(name, service.base_url)
            for tools, server in service.servers.items():
                name = f"server {tools} of {contracts}"
                if server.url is not None:
                    yield _endpoint(name, resolve(server.url, service.environment))
                else:
                    search = server.env.get("PATH")
                    yield _program(name, server.command[0], server.cwd or "", search)
        case _:
            # A function was imported and a recording was read when the suite was loaded.
            yield Check(name, Status.OK, repr(service))


def _program(name: str, program: str, folder: str, search: str | None) -> Check:
    if "{" in program:
        return Check(name, Status.WARN, f"{program}: known only in a trial")
    # As a process finds it: a path with a slash starts from where the program runs.
    found = which(os.path.join(folder, program) if os.sep in program else program, path=search)
    if found is not None:
        return Check(name, Status.OK, found)
    advice = "Install it, put its folder on the PATH, or correct `command` in the suite."
    return Check(name, Status.FAIL, f"there is no program {program!r}", advice)


def _endpoint(name: str, url: str) -> Check:
    import socket
    from urllib.parse import urlsplit
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    host, port = parts.hostname, parts.port or {"https": 443}.get(parts.scheme, 80)
    if host is None or "{" in parts.netloc:
        return Check(name, Status.WARN, f"{url}: known only in a trial")
    if parts.scheme in getproxies() and not proxy_bypass(host):
        return Check(name, Status.WARN, f"{url}: behind a proxy, not looked at")
    try:
        # Connected to and let go: a request could cost money or change something.
        with socket.create_connection((host, port), timeout=_CONNECT_S):
            return Check(name, Status.OK, f"{url} can be reached")
    except OSError as error:
        why = error.strerror or str(error) or "no answer in time"
        advice = "Start the service, or correct its address in the suite."
        return Check(name, Status.FAIL, f"{url} cannot be reached: {why}", advice)
