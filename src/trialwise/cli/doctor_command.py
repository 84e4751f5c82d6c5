"""`trialwise doctor`: whether everything that a run needs is there, without running anything."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.options import json_option, suite_option

if TYPE_CHECKING:
    from trialwise.documents.blocks import Document, Tone
    from trialwise.suite import Suite


@click.command("doctor")
@suite_option
@json_option
def command(file: Path | None, as_json: bool) -> int:
    """Check this machine and this suite: what is there, what is missing, what to do.

    No trial is run and no request is sent: a program is looked for, a host is connected to and
    let go. Exits 2 where something has to be put right, else 0.

    \b
    Examples:
      trialwise doctor
      trialwise doctor --json
    """
    from trialwise.cli.printing import output_of, say, say_json

    checks = examine(file)
    failed = any(check.status == "FAIL" for check in checks)
    if as_json:
        shown = [asdict(check) for check in checks]
        say_json({"schema": "trialwise.doctor/1", "ok": not failed, "checks": shown})
    else:
        from trialwise.renderers.document_text import render_document_text

        say(render_document_text(build_doctor_page(checks), output_of()).rstrip())
    return ExitCode.REFUSED if failed else ExitCode.PASS


#: As the package's metadata says it.
_OLDEST_PYTHON = (3, 11)


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
    checks = [_python(), *_libraries(), _terminal(), _cache()]
    suite, found = _suite(file)
    checks.append(found)
    if suite is not None:
        checks += [*_folders(suite), *_services(suite)]
    return checks


def build_doctor_page(checks: Sequence[Check]) -> Document:
    """Build a row for each check, with what to do below it, and a line for all of them."""
    from trialwise.documents.blocks import Badge, Document, Row, Table
    from trialwise.documents.numbers import as_count

    rows = [
        Row(
            cells=(
                Badge(word=check.status.value, tone=_TONES[check.status]),
                check.name,
                "\n".join(filter(None, (check.found, check.advice))),
            )
        )
        for check in checks
    ]
    failed = sum(check.status is Status.FAIL for check in checks)
    warned = sum(check.status is Status.WARN for check in checks)
    ready = f"{as_count(failed, 'thing')} to put right" if failed else "nothing to put right"
    note = f"{ready}, {as_count(warned, 'warning')}" if warned else ready
    table = Table(
        heading="", columns=("", "", ""), rows=tuple(rows), notes=(note,), words=(0, 1, 2)
    )
    return Document(kind="Doctor", title="", blocks=(table,))


def _python() -> Check:
    from platform import python_version

    found = f"{python_version()}, {sys.executable}"
    if sys.version_info >= _OLDEST_PYTHON:
        return Check("python", Status.OK, found)
    needed = ".".join(map(str, _OLDEST_PYTHON))
    return Check("python", Status.FAIL, found, f"Use Python {needed} or newer.")


def _libraries() -> Iterator[Check]:
    """Yield what the package's own metadata asks for."""
    from importlib.metadata import PackageNotFoundError, requires, version

    try:
        wanted = [one for one in requires("trialwise") or () if "extra ==" not in one]
    except PackageNotFoundError:
        yield Check(
            "trialwise",
            Status.WARN,
            "not installed as a package",
            "Install it: pip install trialwise.",
        )
        return
    yield Check("trialwise", Status.OK, version("trialwise"))
    there, missing = [], []
    for requirement in wanted:
        name = _project_of(requirement)
        try:
            there.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(requirement)
    if missing:
        packages = " ".join(f"'{one}'" for one in missing)
        yield Check(
            "libraries",
            Status.FAIL,
            f"missing: {', '.join(map(_project_of, missing))}",
            f"Install what is missing: pip install {packages}",
        )
    else:
        yield Check("libraries", Status.OK, ", ".join(there))


def _project_of(requirement: str) -> str:
    """Return the name in a requirement such as `click>=8.2`."""
    import re

    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    return found[0] if found else requirement


def _terminal() -> Check:
    from trialwise.renderers.capabilities import read_capabilities

    able = read_capabilities(sys.stdout)
    kind = "a terminal" if sys.stdout.isatty() else "no terminal (a file, a pipe or a CI log)"
    colour = "colour" if able.colour else "no colour"
    signs = "unicode" if able.unicode else "ASCII only"
    found = f"{kind}, {able.width} columns, {colour}, {signs}"
    if able.unicode:
        return Check("output", Status.OK, found)
    return Check(
        "output",
        Status.WARN,
        found,
        "Reports are spelled in ASCII. For α and ≥ set PYTHONUTF8=1, or a UTF-8 locale.",
    )


def _cache() -> Check:
    from trialwise.stores.baselines import find_design_folder

    folder = find_design_folder(os.environ)
    advice = (
        "Unusual designs are searched for again in every run. Set TRIALWISE_CACHE to a folder that "
        "can be written to."
    )
    return _check_folder("cache", folder, str(folder), Status.WARN, advice)


def _suite(file: Path | None) -> tuple[Suite | None, Check]:
    from trialwise.documents.numbers import as_count
    from trialwise.documents.printable import near
    from trialwise.suite import SuiteError, SuiteNotFound, find_suite, load_suite

    try:
        path = find_suite(Path.cwd()) if file is None else file
        suite = load_suite(path, environment=os.environ)
    except SuiteNotFound as error:
        return None, Check("suite", Status.WARN, str(error))
    except SuiteError as error:
        return None, Check("suite", Status.FAIL, str(error))
    contracts = as_count(len(suite.contracts), "contract")
    count = sum(len(one.contract.criteria) for one in suite.contracts)
    criteria = "1 criterion" if count == 1 else f"{count} criteria"
    found = f"{near(path)}: {contracts}, {criteria}"
    return suite, Check("suite", Status.OK, found)


def _folders(suite: Suite) -> Iterator[Check]:
    from trialwise.documents.printable import near

    folders = {"runs": suite.runs_folder, "baselines": suite.baselines_folder}
    folders |= {f"{report.format} report": report.path.parent for report in suite.reports}
    advice = "Change its permissions, or name another folder in the suite."
    for name, folder in folders.items():
        yield _check_folder(name, folder, near(folder), Status.FAIL, advice)


def _check_folder(name: str, folder: Path, shown: str, status: Status, advice: str) -> Check:
    """Return whether a folder can be written to, or could be created."""
    from tempfile import TemporaryFile

    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with TemporaryFile(dir=folder):
            return Check(name, Status.OK, shown)
    except OSError as error:
        why = f"cannot be written to ({error.strerror or error})"
        return Check(name, status, f"{shown}: {why}", advice)


def _services(suite: Suite) -> Iterator[Check]:
    """Yield each service once, however many contracts share it."""
    names: dict[int, list[str]] = {}
    services: dict[int, Any] = {}
    for one in suite.contracts:
        services[id(one.contract.service)] = one.contract.service
        names.setdefault(id(one.contract.service), []).append(one.name)
    for key, service in services.items():
        for check in _service(", ".join(names[key]), service):
            # An address may have come from the environment, and is then nobody's to print.
            yield replace(check, found=suite.redaction(check.found))


def _service(contracts: str, service: Any) -> Iterator[Check]:
    from trialwise.services import AgentService, ChatService, CommandService, HttpService
    from trialwise.services.service_factors import resolve

    name = f"service of {contracts}"
    match service:
        case CommandService():
            yield _program(name, service._argv[0], service._cwd or "", service._env.get("PATH"))
        case HttpService():
            yield _endpoint(name, resolve(service._url, service._environment))
        case ChatService():
            yield _endpoint(name, service._base_url)
        case AgentService():
            yield _endpoint(name, service._model._base_url)
            for tools, server in service._servers.items():
                name = f"server {tools} of {contracts}"
                if server.url is not None:
                    yield _endpoint(name, resolve(server.url, service._environment))
                else:
                    search = server.env.get("PATH")
                    yield _program(name, server.command[0], server.cwd or "", search)
        case _:
            # A function was imported and a recording was read when the suite was loaded.
            yield Check(name, Status.OK, repr(service))


def _program(name: str, program: str, folder: str, search: str | None) -> Check:
    from shutil import which

    if "{" in program:
        return Check(name, Status.WARN, f"{program}: known only in a trial")
    # As a process finds it: a path with a slash starts from where the program runs.
    found = which(os.path.join(folder, program) if os.sep in program else program, path=search)
    if found is not None:
        return Check(name, Status.OK, found)
    return Check(
        name,
        Status.FAIL,
        f"there is no program {program!r}",
        "Install it, put its folder on the PATH, or correct `command` in the suite.",
    )


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
        with socket.create_connection((host, port), timeout=_CONNECT_S):
            return Check(name, Status.OK, f"{url} can be reached")
    except OSError as error:
        why = error.strerror or str(error) or "no answer in time"
        return Check(
            name,
            Status.FAIL,
            f"{url} cannot be reached: {why}",
            "Start the service, or correct its address in the suite.",
        )
