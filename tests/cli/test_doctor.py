"""`trialwise doctor`: what is missing is named with what to do, and no trial is run for it."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from trialwise.cli import check_commands as doctor
from trialwise.cli.check_commands import Status, _check_folder

SUITE = """
service: {service}
inputs: [one]
criteria:
  - {{name: right, contains: right, at_least: 90%}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRIALWISE_CACHE", str(tmp_path / "cache"))
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Something that can be connected to, and is never answered by."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        yield one


def write(folder: Path, service: str, more: str = "") -> None:
    text = SUITE.format(service=service) + more
    (folder / "trialwise.yaml").write_text(text, encoding="utf-8")


def do_doctor(*arguments: str) -> Result:
    return CliRunner().invoke(doctor.doctor_command, arguments, standalone_mode=False)


def checks(*arguments: str) -> dict[str, dict[str, Any]]:
    """Each check by its name."""
    found = json.loads(do_doctor("--json", *arguments).stdout)["checks"]
    return {check["name"]: check for check in found}


def service_check() -> dict[str, Any]:
    (found,) = [one for name, one in checks().items() if name.startswith("service")]
    return found


# --- The machine ------------------------------------------------------------------------------


def test_without_a_suite_the_machine_is_looked_at(folder: Path) -> None:
    """No suite is a warning that says how to get one; nothing is written."""
    found = checks()

    assert ["python", "trialwise", "libraries", "output", "cache", "suite"] == [*found]
    assert sys.executable in found["python"]["found"]
    assert ("WARN", True) == (found["suite"]["status"], "trialwise init" in found["suite"]["found"])
    assert 0 == do_doctor().return_value
    assert [] == [*folder.iterdir()]


def test_every_library_of_the_package_is_looked_for() -> None:
    """By what its metadata asks for, so that none is forgotten."""
    wanted = [one for one in requires("trialwise") or () if "extra" not in one]
    found = checks()["libraries"]["found"].replace("-", ".")

    for requirement in wanted:
        name = re.split("[<>=!~; ]", requirement)[0]
        assert name.replace("-", ".") in found


def test_a_missing_library_fails_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And only that one."""
    from importlib import metadata

    monkeypatch.setattr(metadata, "requires", lambda _name: ["click>=8.2", "no-such-thing>=3"])
    found = checks()["libraries"]

    assert ("FAIL", "missing: no-such-thing") == (found["status"], found["found"])
    assert "pip install 'no-such-thing>=3'" in found["advice"]
    assert 2 == do_doctor().return_value


def test_a_cache_that_cannot_be_written_to_is_a_warning(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs are slower without it, and work."""
    (folder / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("TRIALWISE_CACHE", str(folder / "file"))
    found = checks()["cache"]

    assert "WARN" == found["status"]
    assert "TRIALWISE_CACHE" in found["advice"]
    assert 0 == do_doctor().return_value


def test_a_folder_is_tried_and_left_as_it_was(folder: Path) -> None:
    """One that is not there would be made, and is not."""
    there = _check_folder("runs", folder / "not" / "there", "there", Status.FAIL, "Repair it.")
    assert (Status.OK, "there", "") == (there.status, there.found, there.advice)
    (folder / "file").write_text("", encoding="utf-8")
    below = _check_folder("runs", folder / "file" / "below", "below", Status.FAIL, "Repair it.")
    assert (Status.FAIL, "Repair it.") == (below.status, below.advice)
    assert below.found.startswith("below: cannot be written to (")
    assert ["file"] == [path.name for path in folder.iterdir()]


# --- The suite --------------------------------------------------------------------------------


def test_a_broken_suite_fails_with_every_problem(folder: Path) -> None:
    """As `run` would show them, with the line and a caret."""
    (folder / "trialwise.yaml").write_text("servce: {}\ncriteria: []\n", encoding="utf-8")
    done = do_doctor()

    assert 2 == done.return_value
    assert "did you mean `service`?" in " ".join(done.stdout.split())
    excerpt, caret = [line for line in done.stdout.splitlines() if "|" in line][:2]
    assert excerpt.index("servce") == caret.index("^^^^^^")
    assert "1 thing to put right" in done.stdout


def test_a_suite_elsewhere_can_be_named(folder: Path) -> None:
    """By file."""
    write(folder, '{python: "json:dumps"}')
    (folder / "trialwise.yaml").rename(folder / "other.yaml")

    assert "WARN" == checks()["suite"]["status"]
    assert "other.yaml: 1 contract, 1 criterion" == checks("-s", "other.yaml")["suite"]["found"]


def test_the_folders_that_a_run_writes_to_are_tried(folder: Path) -> None:
    """Runs, baselines and reports; none of them is made."""
    (folder / "file").write_text("", encoding="utf-8")
    write(
        folder,
        '{python: "json:dumps"}',
        "store: {runs: kept}\nreports: {html: file/report.html, json: out/report.json}\n",
    )
    found = checks()

    assert ("OK", "kept") == (found["runs"]["status"], found["runs"]["found"])
    assert "OK" == found["json report"]["status"]
    assert ("FAIL", True) == (
        found["html report"]["status"],
        found["html report"]["found"].startswith("file: cannot be written to"),
    )
    assert not (folder / "kept").exists()


# --- The services -----------------------------------------------------------------------------


def test_a_function_was_imported_and_is_not_called(folder: Path) -> None:
    """Looking is not a trial."""
    (folder / "doctored.py").write_text("def answer(q):\n    1 / 0\n", encoding="utf-8")
    write(folder, '{python: "doctored:answer"}')

    assert ("OK", "CallableService(answer)") == (
        service_check()["status"],
        service_check()["found"],
    )


def test_a_function_that_is_not_there_is_a_problem_of_the_suite(folder: Path) -> None:
    """It is named with the module that should hold it."""
    write(folder, '{python: "json:dumsp"}')

    assert "there is no `dumsp` in the module `json`" in checks()["suite"]["found"]


def test_a_program_is_looked_for_where_it_will_be(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the path, or from the suite's folder; it is not started."""
    program = folder / "agent"
    program.write_text("#!/bin/sh\ntouch started\n", encoding="utf-8")
    program.chmod(0o755)
    write(folder, '{command: [./agent, "{input}"]}')
    below = folder / "below"
    below.mkdir()
    monkeypatch.chdir(below)

    assert ("OK", True) == (
        service_check()["status"],
        Path(service_check()["found"]).samefile(program),
    )
    assert not (folder / "started").exists()


@pytest.mark.parametrize("program", ["no-such-program", "./no-such-program"])
def test_a_program_that_is_not_there_fails(folder: Path, program: str) -> None:
    """Before ten trials do."""
    write(folder, f'{{command: [{program}, "{{input}}"]}}')
    found = service_check()

    assert ("FAIL", f"there is no program {program!r}") == (found["status"], found["found"])
    assert "PATH" in found["advice"]
    assert 2 == do_doctor().return_value


def test_a_program_on_a_path_of_its_own_is_found(folder: Path) -> None:
    """The suite may say where to look."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "agent"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    write(folder, f'{{command: {{run: [agent, "{{input}}"], env: {{PATH: "{program.parent}"}}}}}}')

    assert str(program) == service_check()["found"]


@pytest.mark.parametrize(
    "service",
    [
        '{{http: "http://127.0.0.1:{port}/ask"}}',
        '{{chat: {{base_url: "http://127.0.0.1:{port}/v1", model: m, api_key_env: null}}}}',
    ],
)
def test_a_host_is_connected_to_and_sent_nothing(
    folder: Path, listener: socket.socket, service: str
) -> None:
    """It sees a connection come and go."""
    write(folder, service.format(port=listener.getsockname()[1]))
    found = service_check()
    connection, _ = listener.accept()
    with connection:
        received = connection.recv(1)

    assert ("OK", b"") == (found["status"], received)
    assert "can be reached" in found["found"]


def test_of_an_agent_the_endpoint_and_every_server_are_looked_for(
    folder: Path, listener: socket.socket
) -> None:
    """Each on a line of its own; none is started."""
    pytest.importorskip("mcp")
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    servers = (
        f'{{here: {{command: [{sys.executable}, tools.py]}}, web: {{url: "{url}/mcp"}}, '
        "gone: {command: [no-such-program-here]}}"
    )
    agent = f"base_url: {url}/v1, model: m, api_key_env: null, servers: {servers}"
    write(folder, f"{{agent: {{{agent}}}}}")

    found = {name: one for name, one in checks().items() if name.startswith(("service", "server"))}

    assert ["service of m", "server here of m", "server web of m", "server gone of m"] == [*found]
    assert ["OK", "OK", "OK", "FAIL"] == [one["status"] for one in found.values()]
    assert "there is no program 'no-such-program-here'" == found["server gone of m"]["found"]


def test_a_host_that_is_not_there_fails(folder: Path, listener: socket.socket) -> None:
    """With what the system says of it."""
    port = listener.getsockname()[1]
    listener.close()
    write(folder, f'{{http: "http://127.0.0.1:{port}/ask"}}')
    found = service_check()

    assert "FAIL" == found["status"]
    assert f"http://127.0.0.1:{port}/ask cannot be reached: " in found["found"]
    assert os.strerror(111 if sys.platform == "linux" else 61) in found["found"]


def test_an_address_from_the_environment_is_not_printed(
    folder: Path, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may hold a token."""
    monkeypatch.setenv("AGENT_URL", f"http://127.0.0.1:{listener.getsockname()[1]}/t0ken")
    write(folder, '{http: "${AGENT_URL}/ask"}')
    done = do_doctor()

    assert "${AGENT_URL}/ask can be reached" in done.stdout
    assert "t0ken" not in done.stdout


def test_behind_a_proxy_nothing_is_concluded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run goes through it; connecting past it says nothing."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    write(folder, '{http: "http://agent.example/ask"}')

    assert ("WARN", True) == (service_check()["status"], "proxy" in service_check()["found"])


def test_an_address_that_a_trial_makes_is_not_guessed(folder: Path) -> None:
    """The input decides where it goes."""
    write(folder, '{http: "http://{input}.example/ask"}')

    assert "WARN" == service_check()["status"]


def test_a_service_of_several_contracts_is_looked_at_once(folder: Path) -> None:
    """And named by all of them."""
    text = """
services: {shared: {python: "json:dumps"}}
inputs: [one]
criteria: [{name: right, contains: right, at_least: 90%}]
contracts: [{name: first, service: shared}, {name: second, service: shared}]
"""
    (folder / "trialwise.yaml").write_text(text, encoding="utf-8")

    assert "service of first, second" == service_check()["name"]


# --- The page ---------------------------------------------------------------------------------


def test_every_line_says_how_it_went_and_what_to_do(folder: Path) -> None:
    """Within 80 columns, a mark in front, the advice below what it is about."""
    write(folder, '{command: [no-such-program, "{input}"]}')
    lines = do_doctor().stdout.splitlines()

    assert max(map(len, lines)) <= 80
    marks = {line[:4].strip() for line in lines[:-1]} - {""}
    assert {"OK", "FAIL"} == marks
    failing = next(place for place, line in enumerate(lines) if line.startswith("FAIL"))
    assert "there is no program" in lines[failing]
    assert lines[failing + 1].strip().startswith("Install it")
    assert "1 thing to put right" == lines[-1]


def test_the_statuses_are_closed() -> None:
    """A program may rely on them."""
    assert {"OK", "WARN", "FAIL"} == {status.value for status in Status}
    assert {"name", "status", "found", "advice"} == {*checks()["python"]}
