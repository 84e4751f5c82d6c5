"""Running reference cases: matches, mismatches by name, unknown suites, and the status earned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trialwise.contrib.conformance import adapters
from trialwise.contrib.conformance.case_runner import FolderResult, run_conformance
from trialwise.contrib.conformance.conformance_report import conformance_data, render_conformance

INPUTS = {"successes": 9, "trials": 10, "confidence": 0.95}
#: The Wilson interval of 9 of 10, as published in tables (to five decimals).
RIGHT = {"lower": 0.59585, "upper": 0.98212, "point": 0.9}


def case(name: str = "nine of ten", **expected: Any) -> dict[str, Any]:
    return {"name": name, "inputs": INPUTS, "expected": RIGHT | expected}


def folder(path: Path, *cases: Any, manifest: object = None, **suite: Any) -> FolderResult:
    """Write one suite of hand-made cases, run it, and return what came of it."""
    body = {"suite": "wilson_ci", "tolerance": 1e-5, "cases": list(cases)} | suite
    (path / "hand_made.json").write_text(json.dumps(body), encoding="utf-8")
    if manifest is not None:
        (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (result,) = run_conformance(path)
    return result


def status(result: FolderResult) -> object:
    return result.conformance_status["formulaValueFixtures"]


def test_a_case_that_agrees_matches(tmp_path: Path) -> None:
    """And the largest deviation is told."""
    result = folder(tmp_path, case())
    (suite,) = result.suites

    assert result.passed
    assert (suite.count, suite.matched, suite.known) == (1, 1, True)
    assert suite.binding == ("lower", "point", "upper")
    assert 0 < suite.deviation < 1e-5
    assert result.conformance_status == {
        "formulaValueFixtures": "passed",
        "calibrationFixtures": "not-published",
        "calibrationClaimPermitted": False,
    }


def test_a_mismatch_names_case_field_expected_and_got(tmp_path: Path) -> None:
    """In the result, in the text and in the data."""
    result = folder(tmp_path, case(), case("wrong", upper=0.5))
    ((suite, wrong),) = result.mismatches
    (difference,) = wrong.differences

    assert not result.passed
    assert status(result) == "failed"
    assert (suite.matched, suite.count) == (1, 2)
    assert (wrong.case, difference.field, difference.expected) == ("wrong", "upper", 0.5)
    assert difference.got == pytest.approx(0.98212, abs=1e-5)
    text = render_conformance([result])
    (line,) = [line for line in text.splitlines() if line.startswith("MISMATCH")]
    for part in ("wilson_ci", "wrong", "upper", "expected 0.5", "got 0.982"):
        assert part in line
    (entry,) = conformance_data([result])[0]["suites"][0]["mismatches"]
    assert (entry["case"], entry["field"], entry["expected"]) == ("wrong", "upper", 0.5)


def test_every_mismatch_of_a_case_is_told(tmp_path: Path) -> None:
    """Two fields, two lines."""
    result = folder(tmp_path, case("wrong", upper=0.5, lower=0.1))

    assert len(result.mismatches) == 1
    assert render_conformance([result]).count("MISMATCH") == 2


@pytest.mark.parametrize(("tolerance", "matched"), [(1e-3, 1), (9e-5, 0)])
def test_the_tolerance_is_the_suites_and_absolute(
    tmp_path: Path, tolerance: float, matched: int
) -> None:
    """An error of 1e-4 in 0.98."""
    result = folder(tmp_path, case(upper=0.98222), tolerance=tolerance)

    assert result.suites[0].matched == matched


def test_a_boolean_is_not_a_number(tmp_path: Path) -> None:
    """Feasible is true, not 1, however large the tolerance."""
    inputs = {"target_proportion": 0.9, "sample_size": 100, "confidence": 0.95}
    result = folder(
        tmp_path,
        {"name": "number", "inputs": inputs, "expected": {"feasible": 1}},
        {"name": "truth", "inputs": inputs, "expected": {"feasible": True, "minimum_samples": 25}},
        suite="feasibility",
        tolerance=5,
    )

    assert [found.matched for found in result.suites[0].cases] == [False, True]


def test_a_field_that_is_not_answered_is_a_mismatch(tmp_path: Path) -> None:
    """Also where nothing is expected of it but that it is there."""
    result = folder(tmp_path, case("further", elephants=None))
    ((_, found),) = result.mismatches

    assert [difference.field for difference in found.differences] == ["elephants"]


def test_an_informational_field_does_not_fail_its_case(tmp_path: Path) -> None:
    """It is kept apart."""
    entry = {"bindingFields": ["lower", "point"], "informationalFields": "upper"}
    result = folder(tmp_path, case(upper=0.5), manifest={"suites": {"wilson_ci": entry}})
    (found,) = result.suites[0].cases

    assert result.passed
    assert [difference.field for difference in found.informational] == ["upper"]


def test_an_informational_departure_is_shown(tmp_path: Path) -> None:
    """Shown, not failed, as its description says."""
    entry = {"bindingFields": ["lower", "point"], "informationalFields": "upper"}
    result = folder(tmp_path, case("odd", upper=0.5), manifest={"suites": {"wilson_ci": entry}})

    (line,) = [line for line in render_conformance([result]).splitlines() if "odd" in line]
    assert line.startswith("informational")
    assert "expected 0.5, got 0.98" in line
    (entry,) = conformance_data([result])[0]["suites"][0]["informational"]
    assert (entry["case"], entry["field"]) == ("odd", "upper")


def test_a_field_that_is_neither_binding_nor_informational_binds(tmp_path: Path) -> None:
    """A manifest that forgets a field must not make its value irrelevant."""
    entry = {"bindingFields": ["lower", "point"], "informationalFields": {}}
    result = folder(tmp_path, case(upper=0.5), manifest={"suites": {"wilson_ci": entry}})

    assert not result.passed


def test_a_case_that_cannot_be_answered_is_a_mismatch(tmp_path: Path) -> None:
    """Wrong inputs, missing inputs and a question nobody knows: told, never a crash."""
    result = folder(
        tmp_path,
        case(),
        case("too many") | {"inputs": INPUTS | {"successes": 11}},
        case("nothing given") | {"inputs": {}},
    )
    found = {c.case: c.differences for _, c in result.mismatches}

    assert set(found) == {"too many", "nothing given"}
    assert "InvalidArgument" in str(found["too many"][0].got)
    assert "KeyError" in str(found["nothing given"][0].got)
    assert result.suites[0].matched == 1


def test_an_unknown_approach_is_a_mismatch(tmp_path: Path) -> None:
    """A suite we know asks something we do not."""
    question = {
        "name": "q",
        "approach": "by_dowsing",
        "inputs": {"percentile": 0.5},
        "expected": {"x": 1},
    }
    result = folder(tmp_path, question, suite="latency_percentile_minimums")

    assert not result.passed
    assert "by_dowsing" in render_conformance([result])


def test_an_adapter_that_breaks_is_a_mismatch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error's type and words are what was got."""

    def broken(_: object) -> dict[str, Any]:
        raise ZeroDivisionError("by zero")

    monkeypatch.setitem(adapters.ADAPTERS, ("wilson_ci", "wilson"), broken)
    ((_, found),) = folder(tmp_path, case()).mismatches

    assert found.differences[0].got == "ZeroDivisionError: by zero"


# Suites that nothing here answers


def test_an_unknown_suite_is_reported_and_not_failed(tmp_path: Path) -> None:
    """Its cases are counted, its name is printed, and the status is partial."""
    result = folder(tmp_path, case(), case("two"), suite="tea_leaves")
    (unknown,) = result.unknown
    text = render_conformance([result])

    assert result.passed
    assert status(result) == "partial"
    assert (unknown.suite, unknown.count, unknown.matched) == ("tea_leaves", 2, 0)
    assert "unknown suite: tea_leaves (2 cases" in text
    assert conformance_data([result])[0]["suites"][0]["known"] is False


def test_a_mandatory_unknown_suite_fails_the_folder(tmp_path: Path) -> None:
    """What must be consumed and is not."""
    result = folder(
        tmp_path, case(), suite="tea_leaves", manifest={"familyMandatory": ["tea_leaves"]}
    )

    assert not result.passed
    assert status(result) == "failed"
    assert "mandatory" in render_conformance([result])


def test_a_suite_is_known_per_rule_set(tmp_path: Path) -> None:
    """The bootstrap comparison belongs to the older generation only."""
    newer = folder(
        tmp_path, case(), suite="latency_threshold_bootstrap", methodologyVersion="1.6.0"
    )

    assert [suite.suite for suite in newer.unknown] == ["latency_threshold_bootstrap"]


def test_an_absent_mandatory_suite_makes_the_status_partial(tmp_path: Path) -> None:
    """Everything here matched, and not everything is here."""
    manifest = {"familyMandatory": "verdict", "suites": {"wilson_ci": {}, "verdict": {}}}
    result = folder(tmp_path, case(), manifest=manifest)

    assert status(result) == "partial"
    assert result.absent_mandatory == ("verdict",)
    assert "not in this folder: verdict" in render_conformance([result])


@pytest.mark.parametrize("cases", [[], None])
def test_nothing_run_is_not_passed(tmp_path: Path, cases: list[Any] | None) -> None:
    """A suite without cases, or only a manifest, shows nothing."""
    if cases is None:
        (tmp_path / "manifest.json").write_text("{}", encoding="utf-8")
        (result,) = run_conformance(tmp_path)
    else:
        result = folder(tmp_path, *cases)

    assert status(result) != "passed"


# Reports


def test_a_folder_of_folders_is_run_one_by_one(tmp_path: Path) -> None:
    """One result each, and one table each."""
    for name, upper in (("a", RIGHT["upper"]), ("b", 0.5)):
        (tmp_path / name).mkdir()
        body = {"suite": "wilson_ci", "tolerance": 1e-5, "cases": [case(upper=upper)]}
        (tmp_path / name / "wilson_ci.json").write_text(json.dumps(body), encoding="utf-8")
    results = run_conformance(tmp_path)

    assert [result.passed for result in results] == [True, False]
    assert render_conformance(results).count("conformanceStatus:") == 2


def test_the_table_has_what_was_asked_for(tmp_path: Path) -> None:
    """Cases, matched, binding fields and the largest deviation, then the status block."""
    lines = render_conformance([folder(tmp_path, case())]).splitlines()
    row = next(line for line in lines if line.startswith("wilson_ci"))

    for heading in ("suite", "cases", "matched", "binding fields", "largest deviation"):
        assert heading in lines[2]
    assert row.split()[1:4] == ["1", "1", "3"]
    assert "rule wilson" in lines[0]
    assert lines[-4:] == [
        "conformanceStatus:",
        "  formulaValueFixtures: passed",
        "  calibrationFixtures: not-published",
        "  calibrationClaimPermitted: false",
    ]


def test_the_data_are_plain_json(tmp_path: Path) -> None:
    """Mismatches with refusals, nulls and lists included."""
    refused = {
        "name": "refused",
        "inputs": {
            "threshold": 0.95,
            "test_samples": 10,
            "alpha": 0.05,
            "intent": "VERIFICATION",
            "observed_successes": 10,
        },
        "expected": {"verdict": "PASS", "configuration_error": [], "k_min": 5},
    }
    result = folder(
        tmp_path, refused, suite="compliance_decision", methodologyVersion="1.6.0", tolerance=0
    )
    data = json.loads(json.dumps(conformance_data([result]), allow_nan=False))

    assert data[0]["suites"][0]["rule"] == "fisher"
    got = {entry["field"]: entry["got"] for entry in data[0]["suites"][0]["mismatches"]}
    assert got == {"verdict": None, "configuration_error": ["COMPLIANCE_INFEASIBLE"], "k_min": None}


def test_a_baseline_that_does_not_add_up_is_a_mismatch(tmp_path: Path) -> None:
    """No outputs are published for baselines, so their own arithmetic is what is checked."""
    seen = {
        "n_attempted": 100,
        "n_evaluable": 80,
        "r_obs": 0.8,
        "n_c": 100,
        "K_c": 70,
        "p_hat_c": 0.7,
    }
    criterion = {
        "criterion_id": "c",
        "mode": "inferential",
        "denominator_policy": "MARGINAL_COUNT_UNEVALUABLE_AS_FAIL",
    }

    def baseline(name: str, **changes: Any) -> dict[str, Any]:
        entry = criterion | {"observation": seen | changes}
        return {"name": name, "inputs": {"baseline": {"criteria": [entry]}}, "expected": []}

    result = folder(
        tmp_path,
        baseline("adds up"),
        baseline("rate", p_hat_c=0.875),
        baseline("denominator", n_c=80),
        baseline("share", r_obs=1),
        suite="baseline_object",
    )

    assert {c.case: c.differences[0].field for _, c in result.mismatches} == {
        "rate": "c.p_hat_c",
        "denominator": "c.n_c",
        "share": "c.r_obs",
    }


def test_a_baseline_without_evaluable_trials_adds_up(tmp_path: Path) -> None:
    """Zero evaluable: no denominator, no rate."""
    seen = {"n_attempted": 10, "n_evaluable": 0, "r_obs": 0, "n_c": 0, "K_c": 0, "p_hat_c": None}
    entry = {
        "criterion_id": "c",
        "mode": "inferential",
        "denominator_policy": "CONDITIONAL_ON_EVALUABLE",
        "observation": seen,
    }
    result = folder(
        tmp_path,
        {"name": "empty", "inputs": {"baseline": {"criteria": [entry]}}, "expected": []},
        suite="baseline_object",
    )

    assert result.passed
