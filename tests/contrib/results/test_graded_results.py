"""Results of vally, deepeval, pydantic-evals, the LM evaluation harness and Langfuse."""

from __future__ import annotations

import json
from math import comb
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from trialwise.cli.score_command import command
from trialwise.model.reply import Usage
from trialwise.model.trial import ErrorClass, FailReason
from trialwise.outcomes.outcome_reading import read_outcomes
from trialwise.outcomes.outcome_rows import OutcomesUnreadable


def vally(stimulus: str, *, passed: bool | None = True, **more: Any) -> dict[str, Any]:
    """One line of vally 0.12 and later."""
    details = [
        {"name": "output-matches", "kind": "code", "passed": passed, "evidence": "no match"},
        {"name": "response-quality", "kind": "llm", "passed": True},
    ]
    return {
        "type": "trial-result",
        "itemId": f"tests::{stimulus}",
        "evalName": "tests",
        "stimulus": stimulus,
        "model": "m",
        "status": "success",
        "durationMs": 812,
        "gradeResult": {"passed": passed, "score": 0.9 if passed else 0.4, "details": details},
        "trajectory": {
            "output": "done",
            "metrics": {"wallTimeMs": 500, "tokenUsage": {"inputTokens": 8, "outputTokens": 4}},
        },
        **more,
    }


def write(folder: Path, name: str, content: Any) -> Path:
    """Write JSON, or lines of it."""
    path = folder / name
    lines = content if name.endswith(".jsonl") else [content]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


@pytest.mark.requirement(
    "scoring around",
    "results.jsonl of vally is read, with the verdict on a trial and its graders.",
    "`trialwise score results.jsonl`, `--result NAME` for a grader",
)
def test_results_of_vally_are_trials_of_their_stimuli(tmp_path: Path) -> None:
    """Three lines are trials, one broke, one was skipped, and the summary is none."""
    path = write(
        tmp_path,
        "results.jsonl",
        [
            vally("sums"),
            vally("sums", passed=False),
            vally("plays", status="error", error="timed out", gradeResult=None),
            vally("rests", status="skipped"),
            {"type": "run-summary", "passed": False},
        ],
    )
    found = read_outcomes(path)

    assert ("vally", "tests", {"model": "m"}) == (found.format, found.name, dict(found.factors))
    assert [("sums", True), ("sums", False), ("plays", False)] == [
        (row.input_id, row.passed) for row in found.rows
    ]
    first, second, third = found.rows
    assert Usage(input_tokens=8, output_tokens=4) == first.usage
    assert 0.5 == first.latency_s
    assert "no match" == second.explanation
    assert (FailReason.NO_VALUE, ErrorClass.TIMEOUT) == (third.reason, third.error_class)
    assert ["output-matches"] == list(read_outcomes(path, result="output-matches").criteria)
    scored = read_outcomes(path, result="score", pass_at=0.5)
    assert [True, False, False] == [row.passed for row in scored.rows]
    assert [0.9, 0.4, None] == [row.score for row in scored.rows]


@pytest.mark.parametrize("option", ["--only", "--result"])
def test_only_what_is_asked_about_has_to_be_a_result(tmp_path: Path, option: str) -> None:
    """A scorer that counts steps is no obstacle to a question about another one."""
    scores = {"right": {"value": "C"}, "steps": {"value": 2}}
    sample = {"id": 1, "epoch": 1, "scores": scores}
    inspect = {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": [sample]}
    path = write(tmp_path, "log.json", inspect)
    asked = CliRunner().invoke(command, [str(path), option, "right"], standalone_mode=False)

    assert asked.exception is None
    assert "right: 1 of 1 trials passed" in asked.output
    with pytest.raises(OutcomesUnreadable, match="steps"):
        read_outcomes(path)
    graded = write(tmp_path, "results.jsonl", [vally("s")])
    assert ("output-matches",) == read_outcomes(graded, only=["output-matches"]).criteria


def test_models_of_vally_are_decided_apart(tmp_path: Path) -> None:
    """None is pooled with another."""
    lines = [vally("s", model="a"), vally("s", model="b", passed=False)]
    found = read_outcomes(write(tmp_path, "results.jsonl", lines))

    assert ("passed @ a", "passed @ b") == found.criteria


def test_pass_at_k_of_vally_is_the_same_here(tmp_path: Path) -> None:
    """Three of five, by the formulas of its reference."""
    lines = [vally("s", passed=number < 3) for number in range(5)]
    path = write(tmp_path, "results.jsonl", lines)
    shown = CliRunner().invoke(command, [str(path)], standalone_mode=False).output

    assert "3 of 5 trials passed" in shown
    # The table has k = 1, 2 and 4; of five trials three passed: 1 − C(2, k)/C(5, k) and (3/5)^k.
    assert f"k = 2: pass@k {1 - comb(2, 2) / comb(5, 2):.3f}" in shown
    assert f"(plug-in {0.6**2:.3f})" in shown


def test_a_run_that_was_not_graded_is_refused(tmp_path: Path) -> None:
    """With its line."""
    path = write(tmp_path, "results.jsonl", [vally("s", gradeResult=None)])

    with pytest.raises(OutcomesUnreadable, match=r"line 1: .*grade the run first"):
        read_outcomes(path)


DEEPEVAL = {
    "testRunData": {
        "testCases": [
            {
                "name": "test_case_0",
                "input": "q1",
                "actualOutput": "abc",
                "expectedOutput": "abc",
                "success": True,
                "metricsData": [{"name": "Length", "success": True, "score": 1.0}],
                "runDuration": 0.5,
            },
            {
                "name": "test_case_1",
                "input": "q2",
                "actualOutput": "abcdefgh",
                "success": False,
                "metricsData": [
                    {"name": "Length", "success": False, "score": 0.0, "reason": "too long"}
                ],
            },
        ],
        "testPassed": 1,
        "testFailed": 1,
    }
}


def test_test_cases_of_deepeval_pass_by_their_metrics(tmp_path: Path) -> None:
    """The shape that deepeval 4.3.1 writes."""
    path = write(tmp_path, ".latest_test_run.json", DEEPEVAL)
    found = read_outcomes(path)

    assert ("deepeval", ("success",)) == (found.format, found.criteria)
    assert [("q1", True), ("q2", False)] == [(row.input_id, row.passed) for row in found.rows]
    assert "Length: too long" == found.rows[1].explanation
    assert ("Length",) == read_outcomes(path, result="Length").criteria


PYDANTIC_EVALS = {
    "name": "task",
    "cases": [
        {
            "name": "a",
            "inputs": "2+2",
            "expected_output": "4",
            "output": "4",
            "scores": {"closeness": {"name": "closeness", "value": 0.5}},
            "assertions": {"EqualsExpected": {"value": True}, "short": {"value": True}},
            "task_duration": 0.25,
        },
        {
            "name": "b",
            "inputs": {"q": 1},
            "output": "y",
            "scores": {"closeness": {"name": "closeness", "value": 0.9}},
            "assertions": {"EqualsExpected": {"value": False, "reason": "other"}},
            "task_duration": 0.5,
        },
    ],
    "failures": [{"name": "c", "inputs": "boom", "error_message": "ValueError: no"}],
}


def test_assertions_of_pydantic_evals_are_criteria(tmp_path: Path) -> None:
    """The shape that pydantic-evals 2.62 writes; a failure breaks every criterion."""
    path = write(tmp_path, "report.json", PYDANTIC_EVALS)
    found = read_outcomes(path)

    assert ("pydantic-evals", "task") == (found.format, found.name)
    rows = {(row.criterion, row.input_id): row for row in found.rows}
    assert {
        ("EqualsExpected", "a"): True,
        ("short", "a"): True,
        ("EqualsExpected", "b"): False,
        ("EqualsExpected", "c"): False,
        ("short", "c"): False,
    } == {key: row.passed for key, row in rows.items()}
    assert "other" == rows["EqualsExpected", "b"].explanation
    assert ErrorClass.INFRASTRUCTURE is rows["short", "c"].error_class
    scored = read_outcomes(path, result="closeness", pass_at=0.7)
    assert [False, True, False] == [row.passed for row in scored.rows]
    with pytest.raises(OutcomesUnreadable, match="closeness"):
        read_outcomes(path, result="closeness")


def test_samples_of_the_harness_have_a_criterion_for_each_metric(tmp_path: Path) -> None:
    """Filters are decided apart; what is neither 0 nor 1 is no result unless asked for."""
    sample = {"doc": {"q": "2+2"}, "target": "4", "resps": [["4"]], "filtered_resps": ["4"]}
    lines = [
        {"doc_id": 0, **sample, "filter": "strict", "exact_match": 1.0, "bleu": 0.3},
        {"doc_id": 0, **sample, "filter": "loose", "exact_match": 0.0, "bleu": 0.7},
    ]
    path = write(tmp_path, "samples_gsm8k.jsonl", lines)

    assert ("exact_match @ strict", "exact_match @ loose") == read_outcomes(path).criteria
    found = read_outcomes(path, result="bleu", pass_at=0.5)
    assert [False, True] == [row.passed for row in found.rows]


def test_scores_of_langfuse_are_criteria_by_name(tmp_path: Path) -> None:
    """Booleans, categories and, with a limit, numbers."""
    scores = [
        {"traceId": "t1", "name": "helpful", "dataType": "BOOLEAN", "value": 1},
        {"traceId": "t2", "name": "helpful", "dataType": "BOOLEAN", "value": 0, "comment": "rude"},
        {"traceId": "t1", "name": "right", "dataType": "CATEGORICAL", "stringValue": "correct"},
    ]
    path = write(tmp_path, "scores.json", {"data": scores, "meta": {"page": 1}})
    found = read_outcomes(path)

    assert ("langfuse", ("helpful", "right")) == (found.format, found.criteria)
    assert [True, False, True] == [row.passed for row in found.rows]
    assert "rude" == found.rows[1].explanation


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", [{"type": "trial-result"}]),
        ("a.jsonl", [{"type": "trial-result", "stimulus": 5, "gradeResult": {"passed": True}}]),
        ("a.json", {"testRunData": {"testCases": [5]}}),
        ("a.json", {"testRunData": {"testCases": []}}),
        ("a.json", {"cases": [{"assertions": 5}]}),
        ("a.jsonl", [{"doc_id": 1, "resps": 1, "filtered_resps": 1}]),
        ("a.json", {"data": [{"traceId": 1, "name": "n", "dataType": "NUMERIC", "value": 0.5}]}),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_a_sentence(
    tmp_path: Path, name: str, content: Any
) -> None:
    """Never a traceback."""
    with pytest.raises(OutcomesUnreadable):
        read_outcomes(write(tmp_path, name, content))


def test_named_scores_of_promptfoo_pass_by_a_limit(tmp_path: Path) -> None:
    """A metric that a function gives, without an assertion of its name."""
    results = [
        {"success": True, "vars": {"q": "a"}, "prompt": {}, "namedScores": {"tone": 0.8}},
        {"success": True, "vars": {"q": "b"}, "prompt": {}, "namedScores": {"tone": 0.2}},
    ]
    path = write(tmp_path, "out.json", {"results": {"results": results}})
    found = read_outcomes(path, result="tone", pass_at=0.5)

    assert [True, False] == [row.passed for row in found.rows]
    with pytest.raises(OutcomesUnreadable, match="tone"):
        read_outcomes(path, result="tone")
