"""Baselines as values, and the fingerprints of what they were measured on."""

from __future__ import annotations

import re
import subprocess
import sys
from array import array
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.model.baseline import Baseline, CriterionBaseline
from trialwise.model.claim import Input, Sampling
from trialwise.model.fingerprint import canonical, fingerprint, sampling_fingerprint

CREATED = datetime(2026, 5, 15, 9, 0, tzinfo=UTC)


def observed(**given: Any) -> CriterionBaseline:
    defaults: dict[str, Any] = {"trials": 1000, "passed": 953, "structure": "5f3a"}
    return CriterionBaseline(**defaults | given)


def baseline(**given: Any) -> Baseline:
    defaults: dict[str, Any] = {
        "identifier": "advice-1",
        "contract": "advice",
        "created_at": CREATED,
        "criteria": {"well-formed": observed()},
    }
    return Baseline(**defaults | given)


# Baselines ------------------------------------------------------------------------------------


def test_a_criterions_counts_are_a_tally() -> None:
    """What could not be tested is a failure, and is not evaluable (§1.5.2)."""
    one = observed(condition=40, transform=5, no_value=2)

    assert (1000, 953, 993) == (one.tally.trials, one.tally.passed, one.tally.evaluable)
    assert 0.953 == one.rate


@pytest.mark.parametrize(
    "given",
    [
        {"trials": 0, "passed": 0},
        {"passed": 1001},
        {"passed": -1},
        {"passed": True},
        {"passed": 953.0},
        {"condition": 46},
        {"condition": 48},
        {"transform": -1},
        {"structure": ""},
    ],
)
def test_counts_that_do_not_add_up_are_refused(given: dict[str, Any]) -> None:
    """Failures by reason are all of them, or are left out."""
    with pytest.raises(InvalidArgument):
        observed(**given)


def test_the_worked_example_expires_on_its_date() -> None:
    """§1.5.6: 90 days from emission on 15 May is 13 August."""
    assert date(2026, 8, 13) == (baseline(valid_days=90).expires_at or CREATED).date()
    assert baseline().expires_at is None
    assert baseline().grace_ends_at is None


def test_grace_follows_validity() -> None:
    """Half days count."""
    one = baseline(valid_days=1, grace_days=0.5)

    assert CREATED + timedelta(days=1) == one.expires_at
    assert CREATED + timedelta(hours=36) == one.grace_ends_at


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"identifier": " "}, "identifier"),
        ({"contract": ""}, "contract"),
        ({"criteria": {}}, "criteria"),
        ({"created_at": datetime(2026, 5, 15)}, "created_at"),
        ({"created_at": datetime(9999, 12, 31, tzinfo=UTC)}, "created_at"),
        ({"valid_days": 0}, "valid_days"),
        ({"valid_days": float("inf")}, "valid_days"),
        ({"valid_days": 1e6}, "valid_days and grace_days"),
        ({"grace_days": -1}, "grace_days"),
        ({"epoch": 0}, "epoch"),
        ({"covariates": {"region": 1}}, "covariates"),
        ({"factors": {"temperature": 0.0}}, "factors"),
        ({"run_trials": {"inputs": 0}}, "run_trials of 'inputs'"),
        ({"latencies_s": {"inputs": (0.1, -0.1)}}, "latencies_s"),
        ({"latencies_s": {"inputs": (float("nan"),)}}, "latencies_s"),
        (
            {"latencies_s": {"inputs": (0.1, 0.2)}, "run_trials": {"inputs": 1}},
            "latencies_s of 'inputs'",
        ),
    ],
)
def test_a_baseline_cannot_be_built_wrong(given: dict[str, Any], argument: str) -> None:
    """Each mistake is named by its argument."""
    with pytest.raises(InvalidArgument) as caught:
        baseline(**given)

    assert argument == caught.value.argument


def test_the_date_is_kept_in_utc() -> None:
    """One instant is one baseline, whatever the zone it was written in."""
    zurich = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Zurich"))

    assert datetime(2026, 10, 25, 1, 30, tzinfo=UTC) == baseline(created_at=zurich).created_at
    moved = CREATED.astimezone(timezone(timedelta(hours=5)))
    assert baseline() == baseline(created_at=moved)


def test_latencies_are_sorted_and_to_the_microsecond() -> None:
    """So that a file shows exactly what is in memory."""
    one = baseline(latencies_s={"inputs": [0.2, 0.1000004, 1e-9]})

    assert (0.0, 0.1, 0.2) == one.latencies_s["inputs"]


def test_a_baseline_does_not_change_with_what_it_was_made_of() -> None:
    """It copies its mappings, and its own cannot be written to."""
    covariates = {"region": "EU"}
    one = baseline(covariates=covariates)
    covariates["region"] = "US"

    assert {"region": "EU"} == one.covariates
    with pytest.raises(TypeError):
        one.covariates["region"] = "US"  # type: ignore[index]


# Fingerprints ---------------------------------------------------------------------------------

QUESTIONS = Sampling(
    inputs=(
        Input(id="a", value={"q": "What is 15 * 37?", "n": 1}, stratum="sums"),
        Input(id="b", value="Capital of Australia?", repetitions=2, weight=0.5),
    )
)


def changed(**given: Any) -> Sampling:
    first, second = QUESTIONS.inputs
    return Sampling(inputs=(replace(first, **given), second))


@pytest.mark.parametrize(
    "given",
    [
        {"id": "c"},
        {"value": {"q": "What is 15 * 38?", "n": 1}},
        {"value": {"q": "What is 15 * 37?", "n": "1"}},
        {"value": {"q": "What is 15 * 37?", "n": True}},
        {"value": {"q": "What is 15 * 37?"}},
        {"stratum": None},
        {"repetitions": 2},
        {"weight": 2.0},
    ],
)
def test_other_contents_have_another_fingerprint(given: dict[str, Any]) -> None:
    """Ids, values, strata, repetitions and weights are contents."""
    assert sampling_fingerprint(QUESTIONS) != sampling_fingerprint(changed(**given))


def test_names_and_order_are_no_contents() -> None:
    """Neither the sampling's name nor the order of inputs or keys counts."""
    reordered = Sampling(
        inputs=(
            QUESTIONS.inputs[1],
            replace(QUESTIONS.inputs[0], value={"n": 1, "q": "What is 15 * 37?"}),
        ),
        identifier="other",
        version="2",
        description="moved",
    )

    assert sampling_fingerprint(QUESTIONS) == sampling_fingerprint(reordered)
    assert sampling_fingerprint(QUESTIONS) == sampling_fingerprint(changed(weight=1))
    assert re.fullmatch(r"[0-9a-f]{16}", sampling_fingerprint(QUESTIONS))


class Plain:
    def __init__(self, value: object) -> None:
        self.value = value


class Angry:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Coloured(Enum):
    RED = (1,)
    BLUE = (2,)


@dataclass
class Case:
    question: str
    tags: list[str]


def kind_of(value: object) -> str:
    return type(value).__name__  # a number of 5001 digits has no text


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        (b"a", bytearray(b"a"), b"b"),
        ({1, 2}, frozenset({2, 1}), {1, 3}),
        ((1, 2), [1, 2], [2, 1]),
        ({1: "a", "1": "b"}, {"1": "b", 1: "a"}, {1: "b", "1": "a"}),
        (Decimal("1.0"), Decimal("1.0"), Decimal("1.1")),
        (Fraction(1, 3), Fraction(2, 6), Fraction(1, 4)),
        (date(2026, 1, 1), date(2026, 1, 1), date(2026, 1, 2)),
        (PurePosixPath("a"), PurePosixPath("a"), PurePosixPath("b")),
        (float("nan"), float("nan"), float("inf")),
        (10**5000, 10**5000, 10**5000 + 1),
        (Plain(1), Plain(1), Plain(2)),
        (Case("a", ["x"]), Case("a", ["x"]), Case("a", ["y"])),
        (Coloured.RED, Coloured.RED, Coloured.BLUE),
        (array("d", range(5000)), array("d", range(5000)), array("d", [*range(2500), 0.0] * 2)),
        ({"$bytes": "a"}, {"$bytes": "a"}, b"a"),
        ("\ud800", "\ud800", "\ud801"),
        ("1", "1", 1),
        (1, 1, True),
        (None, None, "None"),
    ],
    ids=kind_of,
)
def test_what_json_cannot_hold_is_told_apart_all_the_same(
    one: object, same: object, other: object
) -> None:
    """Equal contents have one fingerprint, and others another."""
    assert fingerprint([one]) == fingerprint([same])
    assert fingerprint([one]) != fingerprint([other])


def test_a_fingerprint_never_fails() -> None:
    """Circles, depths, and objects that raise."""
    circle: list[Any] = [1]
    circle += [circle, circle]
    deep: Any = 0
    for _ in range(100_000):
        deep = [deep]

    for value in (circle, deep, Angry(), [Angry()], {Angry(): 1}, (x for x in "ab"), Plain, len):
        assert 16 == len(fingerprint(value))
    assert fingerprint(Plain(object())) == fingerprint(Plain(object()))


def test_arrays_count_by_their_contents() -> None:
    """The `repr` of a long array leaves out its middle."""
    numpy = pytest.importorskip("numpy")
    one, two = numpy.zeros((100, 100)), numpy.zeros((100, 100))
    two[50, 50] = 1

    assert fingerprint(one) == fingerprint(one.copy())
    assert fingerprint(one) != fingerprint(two)
    assert fingerprint(one) != fingerprint(one.reshape(10, 1000))
    objects = numpy.array([Plain(1), None], dtype=object)
    assert fingerprint(objects) == fingerprint(objects)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def _same(one: Any, two: Any) -> bool:
    """Equal as JSON documents: true is not 1, and -0.0 is written otherwise than 0.0."""
    import json

    def text(value: Any) -> str:
        return json.dumps(value, sort_keys=True)

    return text(one) == text(two)


@given(json_values, json_values)
def test_json_values_have_one_fingerprint_exactly_when_they_are_the_same(
    one: Any, two: Any
) -> None:
    """No two of what JSON holds are confused."""
    assert _same(one, two) == (canonical(one) == canonical(two))


@pytest.mark.slow
def test_a_fingerprint_is_the_same_in_another_process() -> None:
    """Neither addresses nor hash seeds leak into it."""
    code = (
        "from trialwise.model.fingerprint import fingerprint\n"
        "class P:\n    def __init__(s): s.x = object(); s.y = {'a', 'b', 'c', 'd'}\n"
        "print(fingerprint([P(), len, {'x': {1.5, 'a'}}]))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env={"PYTHONHASHSEED": seed},
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert 1 == len(seen)
