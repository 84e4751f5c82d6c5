"""promptfoo results: test cases as inputs, prompts and providers as services of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.model.reply import Usage
from trialwise.model.trial import ErrorClass, FailReason
from trialwise.outcomes.outcome_reading import read_outcomes
from trialwise.outcomes.outcome_rows import OutcomesUnreadable


def result(
    test: int, question: str, *, success: bool = True, prompt: int = 0, **more: Any
) -> dict[str, Any]:
    """One result of version 3."""
    return {
        "testIdx": test,
        "promptIdx": prompt,
        "provider": {"id": "openai:gpt-4o", "label": ""},
        "prompt": {"raw": f"Answer: {question}", "label": f"prompt {prompt}: {{{{q}}}}"},
        "vars": {"q": question, "_conversation": []},
        "testCase": {"vars": {"q": question}},
        "success": success,
        "failureReason": 0 if success else 1,
        "error": None if success else "Expected output to contain",
        "latencyMs": 812,
        "cost": 0.0004,
        "tokenUsage": {"prompt": 8, "completion": 4, "total": 12},
        "response": {"output": "554"},
        "gradingResult": {
            "pass": success,
            "reason": "All assertions passed" if success else "Expected output to contain 555",
            "componentResults": [
                {"pass": success, "reason": "no 555", "assertion": {"metric": "answers"}},
                {"pass": True, "assertion": {"metric": "short"}},
                {"pass": True, "assertion": None},
            ],
        },
        **more,
    }


def file_of(path: Path, results: list[Any], version: int = 3) -> Path:
    file = path / "out.json"
    document = {
        "evalId": "eval-1",
        "results": {"version": version, "results": results, "stats": {}},
        "config": {"description": "sums"},
    }
    file.write_text(json.dumps(document))
    return file


def test_equal_test_cases_are_trials_of_one_input(tmp_path: Path) -> None:
    """`--repeat` numbers the repetitions as tests of their own."""
    results = [result(0, "15 * 37"), result(1, "15 * 37", success=False), result(2, "5 * 111")]
    outcomes = read_outcomes(file_of(tmp_path, results))
    assert (("success",), ("15 * 37", "5 * 111")) == (outcomes.criteria, outcomes.inputs)
    assert [True, False, True] == [row.passed for row in outcomes.rows]
    assert ("sums", "promptfoo", ()) == (outcomes.name, outcomes.format, outcomes.notes)
    assert {"provider": "openai:gpt-4o", "prompt": "prompt 0: {{q}}"} == outcomes.factors
    row = outcomes.rows[1]
    assert (0.812, 0.0004) == (row.latency_s, row.cost_usd)
    assert Usage(input_tokens=8, output_tokens=4) == row.usage
    assert ("Expected output to contain 555", "554") == (row.explanation, row.evidence)


def test_prompts_and_providers_are_never_pooled(tmp_path: Path) -> None:
    """Each is a service of its own, with criteria and trials of its own."""
    results = [result(0, "a", prompt=0), result(0, "a", prompt=1, success=False)]
    outcomes = read_outcomes(file_of(tmp_path, results))
    assert (
        "success @ openai:gpt-4o · prompt 0: {{q}}",
        "success @ openai:gpt-4o · prompt 1: {{q}}",
    ) == outcomes.criteria
    assert 2 == len({row.group for row in outcomes.rows})
    assert "decided apart" in outcomes.notes[0]


def test_a_failed_call_is_infrastructure_and_a_failed_assertion_is_not(tmp_path: Path) -> None:
    """Both leave an `error`; the reason tells them apart."""
    broken: dict[str, Any] = {"failureReason": 2, "gradingResult": None, "error": "API error: 503"}
    late = {**broken, "error": "Evaluation timed out after 1000ms"}
    results = [
        result(0, "a", success=False, **broken),
        result(1, "a", success=False, **late),
        result(2, "a", success=False),
    ]
    outcomes = read_outcomes(file_of(tmp_path, results))
    assert [
        (ErrorClass.INFRASTRUCTURE, FailReason.NO_VALUE),
        (ErrorClass.TIMEOUT, FailReason.NO_VALUE),
        (ErrorClass.NONE, FailReason.CONDITION),
    ] == [(row.error_class, row.reason) for row in outcomes.rows]
    assert ("Broken and counted as failures: 2 calls.",) == outcomes.notes


def test_version_2_is_read_alike(tmp_path: Path) -> None:
    """Without numbers and reasons, with the provider's name and the rendered prompt."""
    old = {
        "provider": "openai:gpt-4",
        "prompt": {"raw": "Answer: a", "display": "Answer: a"},
        "vars": {"q": "a"},
        "success": True,
        "score": 1,
        "latencyMs": 5,
        "namedScores": {},
    }
    graded = {**old, "success": False, "error": "no", "gradingResult": {"pass": False}}
    broken = {**old, "success": False, "error": "API error", "prompt": {"raw": "x", "display": "x"}}
    outcomes = read_outcomes(file_of(tmp_path, [old, graded, broken], version=2))
    assert (("success",), ("a",)) == (outcomes.criteria, outcomes.inputs)
    assert [ErrorClass.NONE, ErrorClass.NONE, ErrorClass.INFRASTRUCTURE] == [
        row.error_class for row in outcomes.rows
    ]


def test_metrics_may_be_the_criteria(tmp_path: Path) -> None:
    """One passes where every assertion of its name does."""
    path = file_of(tmp_path, [result(0, "a", success=False), result(1, "a")])
    outcomes = read_outcomes(path, result=["answers", "short", "success"])
    assert [False, True, False, True, True, True] == [row.passed for row in outcomes.rows]
    assert "no 555" == outcomes.rows[0].explanation
    with pytest.raises(
        OutcomesUnreadable, match="metric `tone`; there are success, answers, short"
    ):
        read_outcomes(path, result="tone")


def test_a_metric_that_was_not_graded_failed_without_a_value(tmp_path: Path) -> None:
    """A test case may lack the assertion that the others have."""
    ungraded = result(1, "a", gradingResult={"pass": True, "componentResults": []})
    path = file_of(tmp_path, [result(0, "a"), ungraded])
    row = read_outcomes(path, result="answers").rows[1]
    assert (False, FailReason.NO_VALUE) == (row.passed, row.reason)


def test_replies_from_the_cache_are_disclosed(tmp_path: Path) -> None:
    """They repeat an earlier reply and are no evidence of their own."""
    cached = result(0, "a", response={"output": "555", "cached": True})
    assert "--no-cache" in read_outcomes(file_of(tmp_path, [cached])).notes[0]


def test_the_summary_alone_and_exported_lines_are_read(tmp_path: Path) -> None:
    """As the library returns it, and as `-o results.jsonl` writes it."""
    results = [result(0, "a"), result(1, "b")]
    summary = tmp_path / "summary.json"
    summary.write_text(json.dumps({"version": 3, "results": results}))
    exported = tmp_path / "out.jsonl"
    exported.write_text("\n".join(map(json.dumps, results)))
    assert "promptfoo" == read_outcomes(summary).format == read_outcomes(exported).format
    assert ("a", "b") == read_outcomes(summary).inputs == read_outcomes(exported).inputs


def test_a_description_and_several_variables_name_an_input(tmp_path: Path) -> None:
    """Variables of promptfoo's own do not count."""
    one = result(0, "a", vars={"q": "a", "n": 1}, testCase={"description": "sums"})
    assert ('sums: {"q": "a", "n": 1}',) == read_outcomes(file_of(tmp_path, [one])).inputs
    bare = result(0, "a", vars={})
    assert ("(no variables)",) == read_outcomes(file_of(tmp_path, [bare])).inputs


def test_results_that_are_none_are_refused_with_their_place(tmp_path: Path) -> None:
    """And with what was expected."""
    with pytest.raises(OutcomesUnreadable, match=r"results\[1\]: a result with `success`"):
        read_outcomes(file_of(tmp_path, [result(0, "a"), {"vars": {}}]))
    with pytest.raises(OutcomesUnreadable, match="results: a list of at least one result"):
        read_outcomes(file_of(tmp_path, []))


LEAF = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4))
ANY = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner)
)
KEYS = st.sampled_from(list(result(0, "a")))


@given(st.dictionaries(KEYS, ANY, max_size=6), st.booleans())
def test_any_result_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, change: dict[str, Any], success: bool
) -> None:
    """Never a traceback."""
    folder = tmp_path_factory.mktemp("fuzz")
    path = file_of(folder, [{**result(0, "a", success=success), **change}])
    try:
        outcomes = read_outcomes(path)
    except OutcomesUnreadable:
        return
    assert 1 == len(outcomes.rows)
