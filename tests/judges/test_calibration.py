"""Gold sets and calibrations: read with their problems named, measured over the wire, kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from trialwise.errors import InvalidArgument
from trialwise.judges import (
    CacheUnusable,
    Calibration,
    CalibrationError,
    GoldSet,
    GoldSetError,
    GoldUnit,
    Judged,
    NothingJudged,
    VoteCache,
    calibrate,
    judge,
    read_calibration,
    read_gold,
    write_calibration,
)
from trialwise.model.trial import advisory_reasons, measured_errors
from trialwise.stats import Certification, Confusion, Interval, Undefined

Start = Callable[[Callable[[Any], Any]], Any]
Says = Callable[..., str]
NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)

YAML = """
provenance: {source: tickets of May, labelled_by: two agents}
entries:
  - {input: Thanks!, output: You are welcome., label: pass}
  - {id: rude, input: Thanks!, output: Whatever., label: fail, note: dismissive}
"""
JSONL = """
{"provenance": "two agents"}
{"output": "You are welcome.", "label": "pass"}

{"output": "Whatever.", "label": false}
"""


def units(good: int, bad: int) -> tuple[GoldUnit, ...]:
    """So many units that pass and that fail, each of its own."""
    return tuple(
        GoldUnit(id=f"{label}-{place}", input="?", output=f"{label} {place}", label=label == "good")
        for label, count in (("good", good), ("bad", bad))
        for place in range(count)
    )


# --- Gold sets ----------------------------------------------------------------------


def test_a_gold_set_is_read_from_yaml(tmp_path: Path) -> None:
    """With where its labels come from."""
    file = tmp_path / "gold.yaml"
    file.write_text(YAML)

    gold = read_gold(file)

    assert "source: tickets of May; labelled_by: two agents" == gold.provenance
    assert (
        GoldUnit(id="1", input="Thanks!", output="You are welcome.", label=True),
        GoldUnit(id="rude", input="Thanks!", output="Whatever.", label=False, note="dismissive"),
    ) == gold.units


def test_a_gold_set_is_read_from_lines_and_from_json(tmp_path: Path) -> None:
    """Provenance on a line of its own; both spellings of a label."""
    lines, whole = tmp_path / "gold.jsonl", tmp_path / "gold.json"
    lines.write_text(JSONL)
    records = [json.loads(line) for line in JSONL.split("\n") if line]
    whole.write_text(json.dumps({**records[0], "entries": records[1:]}))

    assert read_gold(lines) == read_gold(whole)
    assert ("two agents", [True, False]) == (
        read_gold(lines).provenance,
        [unit.label for unit in read_gold(lines).units],
    )


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("g.yaml", "entries: [", "is not YAML"),
        ("g.json", '{"entries": [1]', "is not JSON"),
        ("g.yaml", "- a", "a mapping of `provenance` and `entries`"),
        ("g.yaml", "entry: []", "a mapping of `provenance` and `entries`"),
        ("g.yaml", "entries: {a: 1}", "`entries` must be a list"),
        ("g.yaml", "entries: [{output: x}]", "entry 1 lacks `label`; it has `output`"),
        ("g.yaml", "entries: [{output: x, label: good}]", "`label` must be pass or fail, got 'go"),
        ("g.yaml", "entries: [{output: x, label: 1}]", "`label` must be pass or fail, got 1"),
        ("g.yaml", "entries: [{output: 1, label: pass}]", "entry 1: `output` must be text"),
        ("g.yaml", "entries: [{output: x, label: pass, lable: x}]", "unknown key `lable`"),
        ("g.yaml", "entries: [x]", "entry 1 must be a mapping with `output` and `label`"),
        ("g.yaml", "entries: [{text: x, label: pass}]", "lacks `output`; it has `text`, `label`"),
        ("g.yaml", "provenance: people", "holds no labelled output; such as"),
        ("g.jsonl", "", "holds no labelled output"),
        ("g.csv", "output,label", "YAML, JSON or JSON lines: .yaml, .yml, .json or .jsonl"),
        ("g.jsonl", '{"output": "x", "label": "pass"}\n{', "line 2 is not JSON: .* in column 2"),
        ("g.jsonl", '{"output": 1}\n{', "line 1 lacks `label`.*; line 2 is not JSON"),
        ("g.jsonl", "[" * 100_000, "line 1 is not JSON"),
        (
            "g.yaml",
            "entries: [{id: a, output: x, label: pass}, {id: a, output: y, label: pass}]",
            "be that of one unit only",
        ),
        (
            "g.yaml",
            "entries: [{output: x, label: pass}, {output: x, label: fail}]",
            "labelled pass and fail",
        ),
        ("g.yaml", "entries: [" + "{output: 1, label: 1}," * 9 + "]", "and 4 more"),
    ],
)
def test_what_is_wrong_with_a_gold_set_is_said(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    """With its place."""
    (tmp_path / name).write_text(text)

    with pytest.raises(GoldSetError, match=said) as caught:
        read_gold(tmp_path / name)

    assert str(tmp_path / name) in str(caught.value)


def test_a_gold_set_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """And so is one that is not text."""
    with pytest.raises(GoldSetError, match="cannot be read"):
        read_gold(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(GoldSetError, match="not UTF-8"):
        read_gold(tmp_path / "bytes.yaml")


def test_the_fingerprint_is_that_of_the_labels() -> None:
    """Neither order nor names nor notes count; a changed label does."""
    gold = GoldSet(units=units(3, 2))
    renamed = tuple(replace(one, id=f"x{one.id}", note="n") for one in reversed(gold.units))
    turned = (replace(gold.units[0], label=False), *gold.units[1:])

    assert gold.fingerprint == GoldSet(units=renamed, provenance="p").fingerprint
    assert gold.fingerprint != GoldSet(units=turned).fingerprint


@pytest.mark.parametrize(
    "changes", [{"id": " "}, {"output": None}, {"label": "pass"}, {"label": 1}]
)
def test_a_unit_cannot_be_built_wrong(changes: dict[str, Any]) -> None:
    """Whoever builds one in Python is told at once."""
    with pytest.raises(InvalidArgument):
        replace(GoldUnit(id="1", output="x", label=True), **changes)


# --- Measuring ----------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_judge_is_measured_against_its_labels(juror: Start, says: Says) -> None:
    """Counts by what was asked over the wire: lenient with two bad ones, strict with one good."""
    wrong = {"bad 0", "bad 1", "good 0"}
    one = juror(
        lambda asked: says(
            asked.sections["OUTPUT"].startswith("good") != (asked.sections["OUTPUT"] in wrong)
        )
    )
    gold = GoldSet(units=units(60, 50), provenance="by hand")
    polite = judge("The answer is good.", one.service(), votes=1)
    heard: list[Judged] = []

    found = await calibrate(polite, gold, measured_at=NOW, hear=heard.append)

    assert Confusion(true_pass=59, false_pass=2, true_fail=48, false_fail=1) == found.confusion
    assert {"bad-0", "bad-1", "good-0"} == set(found.wrong)
    assert (polite.identity, gold.fingerprint, "by hand") == (
        found.judge,
        found.gold,
        found.provenance,
    )
    assert ("2026-05-01T12:00:00+00:00", 0) == (found.measured_at, found.missing)
    assert 110 == len(one.asked) == len(heard) == polite.expenses.asked
    assert () == found.marks(judge=polite.identity)
    assert Certification.PASS is found.certification


@pytest.mark.anyio
async def test_no_more_units_are_asked_at_once_than_allowed(juror: Start) -> None:
    """However many there are."""
    import threading

    now, most, lock = 0, 0, threading.Lock()

    def script(_: Any) -> str:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        threading.Event().wait(0.01)
        with lock:
            now -= 1
        return '{"pass": true}'

    one = juror(script)
    gold = GoldSet(units=units(20, 0))
    await calibrate(judge("r", one.service()), gold, measured_at=NOW, concurrency=3)

    assert 1 < most <= 3


@pytest.mark.anyio
async def test_units_without_a_verdict_are_counted_apart(
    juror: Start, says: Says, no_waiting: Any
) -> None:
    """They are neither right nor wrong; many of them are a mark."""
    one = juror(
        lambda asked: (
            500
            if asked.sections["OUTPUT"] in {f"bad {place}" for place in range(6)}
            else says(asked.sections["OUTPUT"].startswith("good"))
        )
    )
    polite = judge("r", one.service(), retries=0, clock=no_waiting)

    found = await calibrate(polite, GoldSet(units=units(30, 20), provenance="p"), measured_at=NOW)

    assert (6, 44) == (found.missing, found.confusion.labels)
    (mark,) = found.marks(judge=polite.identity)
    assert "no verdict on 6 units" in mark


@pytest.mark.anyio
async def test_a_judge_that_says_nothing_is_not_calibrated(juror: Start, no_waiting: Any) -> None:
    """With the reason; and so is an empty gold set."""
    broken = judge("r", juror(lambda _: 401).service(), clock=no_waiting)

    with pytest.raises(NothingJudged, match="answered 401"):
        await calibrate(broken, GoldSet(units=units(2, 2)), measured_at=NOW)
    with pytest.raises(NothingJudged, match="empty"):
        await calibrate(broken, GoldSet(units=()), measured_at=NOW)


@pytest.mark.anyio
async def test_labels_are_asked_about_as_trials_are(juror: Start, says: Says) -> None:
    """A judge that sees inputs in a run is not measured without them, and one that does not is."""
    gold = GoldSet(units=tuple(replace(unit, input=None) for unit in units(2, 2)))
    service = juror(lambda _: says(True)).service()

    with pytest.raises(GoldSetError, match=r"4 of 4 .* have no `input` \(first: 'good-0'\)"):
        await calibrate(judge("r", service), gold, measured_at=NOW)
    found = await calibrate(judge("r", service, shows_input=False), gold, measured_at=NOW)
    assert 4 == found.confusion.labels


@pytest.mark.anyio
async def test_what_ends_a_run_ends_a_calibration(juror: Start, says: Says, tmp_path: Path) -> None:
    """As it is, not in a group."""
    (tmp_path / "file").write_text("")
    asking = judge("r", juror(lambda _: says(True)).service(), cache=VoteCache(tmp_path / "file"))

    with pytest.raises(CacheUnusable):
        await calibrate(asking, GoldSet(units=units(2, 2)), measured_at=NOW)


# --- What a calibration says -----------------------------------------------------------


def calibration(counts: tuple[int, int, int, int] = (48, 2, 48, 2), **changes: Any) -> Calibration:
    names = ("true_pass", "false_pass", "true_fail", "false_fail")
    confusion = Confusion(**dict(zip(names, counts, strict=True)))
    defaults: dict[str, Any] = {"judge": "j", "gold": "g", "provenance": "p"}
    return Calibration(confusion=confusion, **(defaults | changes))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (calibration(judge="other"), "calibrated as another one"),
        (calibration(changed=True), "gold set changed"),
        (calibration(provenance=""), "where its labels come from"),
        (calibration((9, 0, 9, 0)), "18 labels, 20 are needed"),
        (calibration((50, 0, 0, 0)), "nothing in its gold set fails"),
        (calibration((0, 0, 50, 0)), "nothing in its gold set passes"),
        (calibration((44, 6, 44, 6)), "alpha is 0.761, 0.800 is needed"),
        (calibration((30, 20, 30, 20)), "too little"),
        (calibration((24, 1, 24, 1)), "at least 0.761 is shown, 0.800 is needed; about"),
        (calibration(missing=20), "no verdict on 20 units"),
    ],
)
def test_every_mark_makes_a_judge_advisory(found: Calibration, said: str) -> None:
    """One reason is enough; several are all named."""
    reasons = found.marks(judge="j")

    assert any(said in reason for reason in reasons), reasons
    asking = judge("r", _Silent(), calibration=replace(found, judge=found.judge))
    assert advisory_reasons([asking])


def test_an_unmarked_calibration_lets_a_judge_decide() -> None:
    """The one case without a reason."""
    asking = judge("r", _Silent())
    certified = judge("r", _Silent(), calibration=calibration(judge=asking.identity))

    assert () == certified.advisory == advisory_reasons([certified])
    assert certified.identity == asking.identity
    assert certified.errors == measured_errors([certified]) == calibration().confusion
    assert measured_errors([certified, len]) is None is asking.errors


class _Silent:
    async def call(self, trial: Any) -> Any:
        raise AssertionError(trial)

    async def aclose(self) -> None:
        """Nothing to close."""

    def __repr__(self) -> str:
        return "silent"


def test_agreement_has_its_intervals() -> None:
    """Alpha and kappa with a bootstrap of a fixed seed, accuracies with their own."""
    found = calibration((45, 5, 40, 10))

    assert isinstance(found.alpha_interval, Interval)
    assert isinstance(found.kappa_interval, Interval)
    assert not isinstance(found.alpha, Undefined)
    assert not isinstance(found.kappa, Undefined)
    assert found.alpha in found.alpha_interval
    assert found.kappa in found.kappa_interval
    assert found.alpha_interval == calibration((45, 5, 40, 10)).alpha_interval
    accuracy = found.accuracy(confidence=0.9, rule="exact")
    assert (45 / 55, 40 / 45) == (accuracy.sensitivity, accuracy.specificity)
    assert isinstance(calibration((50, 0, 50, 0)).alpha_interval, Undefined)


def test_a_calibration_survives_its_file(tmp_path: Path) -> None:
    """Whole, and readable, in a folder that is made; another gold set by now is noticed."""
    file = tmp_path / "new" / "judge.json"
    found = calibration(measured_at="2026-05-01", wrong=("a", "é"), missing=3)

    write_calibration(file, found)

    assert found == read_calibration(file)
    assert not read_calibration(file, gold="g").changed
    assert read_calibration(file, gold="h").changed
    assert file.read_text(encoding="utf-8").endswith("\n")


def _spoiled(name: str, value: Any) -> str:
    """The text of a calibration in which a value is not as it was written."""
    counts = {"true_pass": 9, "false_pass": 1, "true_fail": 9, "false_fail": 1}
    whole = {"judge": "j", "gold": "g", "provenance": "p", "measured_at": "", "wrong": []}
    return json.dumps({"format": 1, **whole, "missing": 0, "confusion": counts, name: value})


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", '{"format": 2}', '{"format": 1, "judge": "j"}', "\x00", "[" * 100_000),
        *map(_spoiled, ("missing", "provenance", "confusion"), ("x", None, [])),
    ],
)
def test_what_is_no_calibration_is_refused(tmp_path: Path, text: str) -> None:
    """With what to do."""
    file = tmp_path / "judge.json"
    file.write_text(text)

    with pytest.raises(CalibrationError, match=r"calibrat"):
        read_calibration(file)
    with pytest.raises(CalibrationError, match="cannot be read"):
        read_calibration(tmp_path / "none.json")
    with pytest.raises(CalibrationError, match="cannot be written"):
        write_calibration(file / "judge.json", calibration())
