"""Outputs drawn from a run for people to label: as trials were, without the judge's word."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click import UsageError
from click.testing import CliRunner, Result

import trialwise as tw
from trialwise.cli import judge_command as cli
from trialwise.cli.main import main
from trialwise.errors import InvalidArgument
from trialwise.judges import GoldSetError, draw_unlabelled, read_gold
from trialwise.model.run import RunRecord

Start = Callable[[Callable[[Any], Any]], Any]
Says = Callable[..., str]
ASKED = tw.Sampling.of(["yes", "no"])


def record(service: Any = str.upper, trials: int = 20, **options: Any) -> RunRecord:
    contract = tw.Contract(
        "agent", service, [tw.Criterion("loud", str.isupper, at_least=0.5)], sampling=ASKED
    )
    options = {"seed": 3, "curtail": False, "store": None, "progress": False} | options
    return tw.run(contract, trials=trials, **options).record


def draw(run: RunRecord, units: int = 5, **options: Any) -> list[dict[str, Any]]:
    given: dict[str, Any] = {"sampling": ASKED, "experiment": "inputs"} | options
    return list(draw_unlabelled(run, given.pop("sampling"), units=units, **given))


def test_what_is_drawn_are_trials_with_their_inputs() -> None:
    """Each once, in their order, unlabelled, and with where they come from."""
    run = record()
    first, *entries = draw(run, 20)

    assert (
        f"20 of 20 trials of run {run.run_id}, drawn with seed 0" == (first["provenance"]["source"])
    )
    assert [f"trial-{index}" for index in range(20)] == [one["id"] for one in entries]
    assert {("yes", "YES", None), ("no", "NO", None)} == {
        (one["input"], one["output"], one["label"]) for one in entries
    }
    assert {"id", "input", "output", "label"} == set(entries[0])


def test_every_trial_is_as_likely_as_any_other() -> None:
    """Over 2,000 seeds each of 20 trials is drawn in a quarter of them, up to 5 standard errors."""
    run = record()
    counts = Counter(one["id"] for seed in range(2_000) for one in draw(run, 5, seed=seed)[1:])

    assert 20 == len(counts)
    assert all(abs(count - 500) < 5 * (2_000 * 0.25 * 0.75) ** 0.5 for count in counts.values())
    assert draw(run, seed=1) == draw(run, seed=1) != draw(run, seed=2)


def test_a_trial_without_a_reply_cannot_be_labelled() -> None:
    """It is left out, and what is left may be too few; an empty one is a reply."""
    calls = iter(range(1000))

    def service(text: str) -> str:
        if next(calls) % 4 == 0:
            raise tw.ServiceError("down", tw.ErrorClass.INFRASTRUCTURE)
        return "" if text == "no" else text

    run = record(service, retries=0, analysis="intent-to-treat")

    assert {"yes", ""} == {one["output"] for one in draw(run, 15)[1:]}
    with pytest.raises(GoldSetError, match="15 trials have a reply, 16 were asked for"):
        draw(run, 16)


def test_what_the_run_does_not_hold_is_not_made_up() -> None:
    """Neither inputs that changed nor the end of a long reply; an unknown sampling is a mistake."""
    with pytest.raises(GoldSetError, match="the inputs changed since this run"):
        draw(record(), sampling=tw.Sampling.of(["yes", "maybe"]))
    with pytest.raises(GoldSetError, match="5 of the drawn replies are cut"):
        draw(record(lambda text: text * 5_000))
    with pytest.raises(InvalidArgument, match="experiment"):
        draw(record(), experiment="other")
    with pytest.raises(InvalidArgument, match="units"):
        draw(record(), 0)


# --- The command line -------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, juror: Start, says: Says) -> Path:
    """A folder with a suite, and with a run of it."""
    monkeypatch.chdir(tmp_path)
    url = juror(lambda asked: says(asked.sections["OUTPUT"] == "yes")).url
    (tmp_path / "trialwise.yaml").write_text(
        'service: {command: [echo, "{input}"]}\ninputs: ["yes", "no"]\ntrials: 20\ncriteria:\n'
        "  - {name: short, at_least: 50%, length: {maximum: 5}}\n"
        "  - {name: kind, at_least: 50%, judge: {rubric: r, jurors: {chat: {model: m, "
        f"base_url: '{url}/v1', api_key_env: null}}}}}}}}\n"
    )
    with pytest.raises(SystemExit):
        main(["run", "--seed", "1", "--quiet"])
    return tmp_path


def do(*arguments: str) -> Result:
    return CliRunner().invoke(cli.command, ["draw", *arguments], standalone_mode=False)


def test_a_drawn_file_is_a_gold_set_once_it_is_labelled(folder: Path) -> None:
    """Until then it says what is missing, and it is never written over."""
    file = folder / "gold.jsonl"

    assert "6 outputs of" in do("gold.jsonl", "--units", "6").output
    with pytest.raises(GoldSetError, match="line 2 is not labelled yet"):
        read_gold(file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for one in lines[1:]:
        one["label"] = "pass" if one["output"] == "yes" else "fail"
    file.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(GoldSetError, match=r"provenance\.labelled_by must say something"):
        read_gold(file)
    lines[0]["provenance"] |= {"labelled_by": "two people", "rule": "both agree"}
    file.write_text("\n".join(map(json.dumps, lines)))
    assert 6 == len(read_gold(file).units)
    assert "may hold labels" in str(do("gold.jsonl", "--units", "6").exception)
    assert lines == [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["g.jsonl", "--criterion", "short"], "name one criterion with a judge by --criterion: k"),
        (["none/g.jsonl", "--units", "2"], "cannot be written: No such file or directory"),
    ],
)
def test_what_cannot_be_drawn_is_a_usage_error(
    folder: Path, arguments: list[str], said: str
) -> None:
    """With what to do; nothing is written."""
    result = do(*arguments)

    assert isinstance(result.exception, UsageError)
    assert said in result.exception.format_message()
    assert [] == list(folder.glob("*.jsonl"))


def test_a_run_of_another_suite_is_not_drawn_from(folder: Path) -> None:
    """Its inputs are not here."""
    file = folder / "trialwise.yaml"
    file.write_text("name: other\n" + file.read_text())

    assert "has no contract" in str(do("g.jsonl").exception)
