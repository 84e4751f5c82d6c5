"""Several suites in one command, contracts chosen by expression, and what services print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

AGENT = """
import os
print("noise at import")

def good(question):
    print("noise in a trial")
    os.system("echo noise of a program")
    return "good"

def bad(question):
    return "bad"
"""
SUITE = """
name: {name}
service: {{python: "agent:{name}"}}
inputs: [one, two]
criteria:
  - {{name: right, equals: good, at_least: 50%, trials: 10}}
  - {{name: short, length: {{maximum: 9}}, at_least: 50%, trials: 10}}
latency: {{p50: 9s}}
"""


def write_suite(folder: Path, name: str, *more: str) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text("\n".join((SUITE.format(name=name), *more)))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(AGENT)
    for name in ("good", "bad"):
        write_suite(tmp_path, name)
    return tmp_path


def trialwise(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trialwise.cli.main", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )


@pytest.mark.parametrize("order", [("good", "bad"), ("bad", "good")])
def test_every_suite_that_is_named_runs_and_one_fail_is_the_exit_code(
    folder: Path, order: tuple[str, str]
) -> None:
    files = [part for name in order for part in ("-s", f"{name}.yaml")]

    done = trialwise(folder, "run", "-q", *files, "--json")

    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert [one["contract"] for one in report["runs"]] == list(order)
    assert report["name"] == folder.name


def test_a_suite_writes_its_own_reports_and_the_command_line_those_of_all(folder: Path) -> None:
    write_suite(folder, "good", "reports: {json: own.json}")

    trialwise(folder, "run", "-q", "-s", "good.yaml", "-s", "bad.yaml", "-o", "all.json")

    own, both = (json.loads((folder / name).read_text()) for name in ("own.json", "all.json"))
    assert [one["contract"] for one in own["runs"]] == ["good"]
    assert [one["contract"] for one in both["runs"]] == ["good", "bad"]


def test_fail_fast_stops_after_the_first_contract_that_does_not_pass(folder: Path) -> None:
    done = trialwise(
        folder, "run", "-q", "-s", "bad.yaml", "-s", "good.yaml", "--fail-fast", "--json"
    )

    assert done.returncode == 1
    assert [one["contract"] for one in json.loads(done.stdout)["runs"]] == ["bad"]
    assert "not run: good" in done.stderr


def test_what_a_service_prints_goes_to_standard_error(folder: Path) -> None:
    done = trialwise(folder, "run", "-q", "-s", "good.yaml", "--json")

    assert json.loads(done.stdout)["decision"] == "PASS"
    for noise in ("noise at import", "noise in a trial", "noise of a program"):
        assert noise in done.stderr


def test_check_json_is_alone_on_standard_output(folder: Path) -> None:
    done = trialwise(folder, "check", "-s", "good.yaml", "-s", "bad.yaml", "--json")

    assert [one["contract"] for one in json.loads(done.stdout)["contracts"]] == ["good", "bad"]


def test_a_suite_has_one_name_in_every_report_of_it(folder: Path) -> None:
    trialwise(folder, "run", "-q", "-s", "good.yaml", "-o", "r.md", "-o", "r.xml")
    shown = trialwise(folder, "show", "--json")

    assert f"PASS: {folder.name}" in (folder / "r.md").read_text().replace("\\", "")
    assert f'<testsuites name="{folder.name}"' in (folder / "r.xml").read_text()
    assert json.loads(shown.stdout)["name"] == folder.name


@pytest.mark.slow
def test_show_and_report_are_about_every_contract_of_the_last_run(folder: Path) -> None:
    trialwise(folder, "run", "-q", "-s", "bad.yaml")
    trialwise(folder, "run", "-q", "-s", "good.yaml", "-s", "bad.yaml")
    trialwise(folder, "run", "-q", "-s", "good.yaml", "-s", "bad.yaml")

    report = json.loads(trialwise(folder, "show", "--json").stdout)

    assert [one["contract"] for one in report["runs"]] == ["good", "bad"]
    assert "good: PASS" in trialwise(folder, "report").stdout


SLOW = """
import asyncio, time

def note(letter):
    with open("calls", "a") as calls:
        calls.write(letter)
    return "good"

async def wait(question):
    await asyncio.sleep(0.05)
    return note("w")

def block(question):
    time.sleep(0.05)
    return note("b")
"""


def test_contracts_run_side_by_side(folder: Path) -> None:
    """Neither an async nor a plain function holds up the other contract."""
    (folder / "slow.py").write_text(SLOW)
    for name in ("wait", "block"):
        suite = SUITE.format(name=name).replace("agent:", "slow:")
        (folder / f"{name}.yaml").write_text(suite)
    files = ("-s", "wait.yaml", "-s", "block.yaml")

    done = trialwise(folder, "run", "-q", *files, "--jobs", "2", "--json")

    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    assert [one["contract"] for one in runs] == ["wait", "block"]
    calls = (folder / "calls").read_text()
    assert calls.index("b") < calls.rindex("w")
    assert calls.index("w") < calls.rindex("b")


MANY = """
service: {{python: "agent:{service}"}}
inputs: [one]
trials: 10
contracts:
  - {{name: first, service: {{python: "agent:bad"}}, criteria: [{right}]}}
  - {{name: second, criteria: [{right}]}}
  - {{name: third, criteria: [{right}]}}
  - {{name: fourth, criteria: [{right}]}}
"""


def write_many(folder: Path, service: str = "good") -> None:
    right = "{name: right, equals: good, at_least: 50%}"
    (folder / "trialwise.yaml").write_text(MANY.format(service=service, right=right))


def test_fail_fast_starts_no_contract_after_a_fail_side_by_side(folder: Path) -> None:
    """What runs at the time of the FAIL ends as usual, and the others are named."""
    write_many(folder)

    done = trialwise(folder, "run", "-q", "--jobs", "2", "--fail-fast", "--json")

    assert done.returncode == 1
    names = [one["contract"] for one in json.loads(done.stdout)["runs"]]
    assert names[0] == "first"
    left = [one for one in ("second", "third", "fourth") if one not in names]
    assert left
    assert f"--fail-fast: not run: {', '.join(left)}" in done.stderr


def test_progress_side_by_side_names_each_contract(folder: Path) -> None:
    write_many(folder)

    done = trialwise(folder, "run", "--jobs", "4")

    for name in ("first", "second", "third", "fourth"):
        assert any(line.startswith(f"{name}: verdict ") for line in done.stderr.splitlines())


def test_a_record_that_is_lost_does_not_take_the_others_with_it(folder: Path) -> None:
    """Every verdict is printed; the lost one is not kept, and the exit code says so."""
    losing = "def lose(question, index):\n    import shutil, glob\n"
    losing += "    [shutil.rmtree(one) for one in glob.glob('.trialwise/runs/*-second-*')]\n"
    losing += "    return 'good'\n"
    with (folder / "agent.py").open("a") as file:
        file.write(losing)
    write_many(folder)
    suite = (folder / "trialwise.yaml").read_text()
    second = '{name: second, service: {python: "agent:lose"}, '
    suite = suite.replace("agent:bad", "agent:good").replace("{name: second, ", second)
    (folder / "trialwise.yaml").write_text(suite)

    done = trialwise(folder, "run", "-q", "--jobs", "4")

    assert done.returncode == 4, done.stderr
    assert done.stdout.count("NOT KEPT") == 1
    assert "-second-" in done.stdout.partition("NOT KEPT")[2].partition("could not")[0]
    assert done.stdout.count("PASS  100.0 %") == 4
    kept = {
        path.parent.name.split("-")[-2] for path in folder.glob(".trialwise/runs/*/record.json")
    }
    assert kept == {"first", "third", "fourth"}


def test_limits_are_shared_by_contracts_side_by_side(folder: Path) -> None:
    """Two at a time get half of the rate and of the concurrency each."""
    for name in ("good", "bad"):
        write_suite(folder, name, "concurrency: 4", "rate: 1000/s")

    done = trialwise(folder, "run", "-q", "-s", "good.yaml", "-s", "bad.yaml", "-j", "2", "--json")

    for one in json.loads(done.stdout)["runs"]:
        options = one["verdict"]["plan"]["options"]
        assert (options["concurrency"], options["rate_per_s"]) == (2, 500.0)


def test_gitlab_shows_each_entry_at_its_own_suite_with_the_failing_input(folder: Path) -> None:
    """A suite in another folder is named by its path from here."""
    (folder / "deep").mkdir()
    (folder / "deep" / "agent.py").write_text(AGENT)
    write_suite(folder, "deep/bad").write_text(SUITE.format(name="bad"))

    trialwise(
        folder,
        *("run", "-q", "-s", "good.yaml", "-s", "bad.yaml"),
        *("-o", "gl-code-quality-report.json"),
    )
    first = json.loads((folder / "gl-code-quality-report.json").read_text())
    trialwise(folder, "run", "-q", "-s", "deep/bad.yaml", "-o", "out/gl-code-quality-report.json")
    second = json.loads((folder / "out" / "gl-code-quality-report.json").read_text())

    failed = [one for one in first if "bad: right is FAIL" in one["description"]]
    assert [one["location"]["path"] for one in failed] == ["bad.yaml"]
    assert {one["location"]["path"] for one in second} == {"deep/bad.yaml"}
    described = failed[0]["description"]
    assert "reply: bad" in described
    assert "input: one" in described or "input: two" in described


@pytest.mark.slow
def test_an_expression_chooses_contracts(folder: Path) -> None:
    files = ("-s", "good.yaml", "-s", "bad.yaml")

    done = trialwise(folder, "run", "-q", *files, "-k", "GOO and not bad", "--json")
    none = trialwise(folder, "run", "-q", *files, "-k", "other")
    wrong = trialwise(folder, "run", "-q", *files, "-k", "good or (bad")

    assert [one["contract"] for one in json.loads(done.stdout)["runs"]] == ["good"]
    assert (none.returncode, wrong.returncode) == (2, 2)
    assert "no contract matches -k. There are: good, bad." in none.stderr
    assert "a `)` is missing" in wrong.stderr


@pytest.mark.slow
def test_a_criterion_is_run_alone(folder: Path) -> None:
    done = trialwise(folder, "run", "-q", "-s", "bad.yaml", "--criterion", "short", "--json")
    wrong = trialwise(folder, "run", "-q", "-s", "bad.yaml", "--criterion", "shor")

    (contract,) = json.loads(done.stdout)["runs"]
    assert done.returncode == 0
    assert [one["name"] for one in contract["results"]] == ["short"]
    assert "did you mean 'short'?" in wrong.stderr


def test_a_number_of_trials_that_fits_into_no_memory_is_refused(folder: Path) -> None:
    fixed = trialwise(folder, "run", "-q", "-s", "good.yaml", "--trials", "99999999999")
    upper = trialwise(folder, "run", "-q", "-s", "good.yaml", "--max-trials", "1000000")

    assert (fixed.returncode, upper.returncode) == (2, 2)
    assert "trials must be at most 10,000,000" in fixed.stderr
    assert "max_trials must be at most 200,000 where a run may stop early" in upper.stderr
    assert "Traceback" not in fixed.stderr + upper.stderr


@pytest.mark.slow
def test_a_measurement_is_shown_with_its_counts(folder: Path) -> None:
    trialwise(folder, "measure", "-q", "-s", "good.yaml", "--trials", "60")
    (run,) = (path.name for path in (folder / ".trialwise" / "runs").iterdir())

    shown = trialwise(folder, "show", run)
    data = json.loads(trialwise(folder, "show", run, "--json").stdout)

    assert shown.returncode == 0
    assert shown.stdout.strip() == (
        "good: measured, nothing decided: right 60 of 60, short 60 of 60"
    )
    assert data["runs"][0]["criteria"]["right"] == {"passed": 60, "trials": 60}


def test_measure_has_no_option_that_would_change_nothing(folder: Path) -> None:
    for option in ("--baseline", "--intent", "--max-trials", "--rule", "--horizon"):
        done = trialwise(folder, "measure", "-s", "good.yaml", "--trials", "20", option, "5")
        assert (done.returncode, f"No such option '{option}'" in done.stderr) == (2, True)
