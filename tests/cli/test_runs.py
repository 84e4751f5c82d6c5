"""`trialwise runs`, `trialwise report --open` and the order of the help."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

import trialwise as tw
from trialwise.cli.main import _run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, needed in (("good", "OK"), ("bad", "no")):
        criterion = tw.Criterion("right", tw.equals(needed), at_least=0.5, trials=10)
        tw.run(tw.Contract(name, str.upper, [criterion], sampling=["ok"]))
    measured = tw.Criterion("right", tw.equals("OK"), at_least=0.5)
    tw.measure(tw.Contract("good", str.upper, [measured], sampling=["ok"]), trials=60)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_runs_are_listed_with_verdict_date_and_trials(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["runs"]) == 0
    lines = capsys.readouterr().out.splitlines()

    rows = [
        re.fullmatch(r"(\w+) +(\d{4}-\d\d-\d\d \d\d:\d\d) +(\d+ trials?)  (.*)", one)
        for one in lines
    ]
    shown = [(row[1], row[3], row[4].split("Z-")[1][:-5]) for row in rows if row]
    assert shown == [("MEASURED", "60 trials", "good"), *((d, t, n) for d, t, n in shown[1:])]
    assert [(d, n) for d, _, n in shown[1:]] == [("FAIL", "bad"), ("PASS", "good")]


@pytest.mark.usefixtures("folder")
def test_runs_of_a_contract_are_data_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["runs", "bad", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["runs"]

    assert (one["contract"], one["result"]) == ("bad", "FAIL")
    assert _run(["runs", "-n", "1"]) == 0
    assert "2 older; -n shows more" in capsys.readouterr().out


def test_no_run_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert _run(["runs"]) == 0
    assert "no run is kept here" in capsys.readouterr().out


def test_report_open_shows_a_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(click, "launch", opened.append)

    assert _run(["report", "--open"]) == 0
    assert _run(["report", "--open", "-o", "mine.html"]) == 0

    assert [Path(one).name for one in opened] == ["report.html", "mine.html"]
    assert "<html" in Path(opened[0]).read_text("utf-8")
    assert opened[1] == str(folder / "mine.html")


def test_the_help_shows_everyday_commands_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["--help-all"]) == 0
    first, more = capsys.readouterr().out.split("More commands:")

    assert re.findall(r"^  (\w+)  ", first.split("Commands:")[1], re.MULTILINE)[:3] == [
        *("init", "check", "run")
    ]
    for name in ("conformance", "import", "measure"):
        assert re.search(rf"^  {name}  ", more, re.MULTILINE)


@pytest.mark.parametrize("command", ["run", "report"])
def test_the_help_names_every_ending(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run([command, "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split()).replace("- ", "-")

    assert "gl-code-quality-report.json" in shown.split("-o, --output")[1].split(" --")[0]
    assert "--html" not in shown


def test_a_comparison_is_listed_with_its_arms_and_shown_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    criterion = tw.Criterion("right", tw.equals("OK"), at_least=0.5)
    old = tw.Contract("agent", str.lower, [criterion], sampling=["ok"])
    tw.run(old, trials=10)
    found = tw.compare(old, old.with_service(str.upper), labels=["old", "new"])
    assert found.path is not None
    name = found.path.name

    assert _run(["runs"]) == 0
    comparison, control, candidate, alone = capsys.readouterr().out.splitlines()
    assert re.match(rf"PASS +\S+ \S+ +2 arms  {name}", comparison)
    assert [f"{one.record.run_id}  {one.label}" for one in found.arms] == [
        line.split("trials  ")[1] for line in (control, candidate)
    ]
    assert alone.startswith("FAIL")
    assert _run(["runs", "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert [name, name, None] == [one.get("comparison") for one in whole["runs"]]
    assert [("PASS", found.verdict.statement)] == [
        (one["result"], one["statement"]) for one in whole["comparisons"]
    ]

    for given in (["show", name], ["show"]):
        assert _run(given) == 0
        assert "PASS  new is better" in capsys.readouterr().out
    assert _run(["show", "--verify"]) == 0
    assert "is better" not in capsys.readouterr().out
    assert _run(["show", name, "--verify"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [f"VERIFIED  {one}" for one in (name, *(arm.record.run_id for arm in found.arms))] == [
        line.split(":")[0] for line in lines
    ]
    kept = found.path / "verdict.json"
    kept.write_text(kept.read_text().replace('"decision": "PASS"', '"decision": "FAIL"'))
    assert _run(["show", name, "--verify"]) == 4
    altered = capsys.readouterr().out
    assert "verdict.decision: FAIL is stored, PASS follows" in altered
    assert "verdict.json: checksum" in altered
    kept.unlink()
    assert _run(["runs"]) == 0
    assert capsys.readouterr().out.startswith("UNFINISHED")
