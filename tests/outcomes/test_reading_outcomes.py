"""Reading files: which format it is, several at once, and files that are none."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.outcomes.outcome_reading import FORMATS, read_outcomes
from trialwise.outcomes.outcome_rows import OutcomesUnreadable, read_whole

LINES = '{"id": "a", "passed": true}\n{"id": "a", "passed": false}\n'
REPORT = '<testsuite><testcase classname="t" name="a"/></testsuite>'
INSPECT = {"eval": {"task": "t"}, "samples": [{"id": 1, "scores": {"m": {"value": "C"}}}]}
PROMPTFOO = {"results": [{"success": True, "vars": {"q": "a"}, "prompt": {}}]}
OWN = [
    {"schema": "trialwise.results/1", "type": "run", "run_id": "r", "contract": "c"},
    {
        "type": "trial",
        "run_id": "r",
        "sampling": "inputs",
        "trial": 0,
        "input_id": "a",
        "graders": [{"name": "m", "passed": True}],
    },
]
EXAMPLES = {
    "trialwise": "".join(json.dumps(one) + "\n" for one in OWN),
    "jsonl": LINES,
    "csv": "id,passed\na,1\n",
    "junit": REPORT,
    "inspect": json.dumps({**INSPECT, "status": "success"}),
    "promptfoo": json.dumps(PROMPTFOO),
    "vally": '{"type": "trial-result", "stimulus": "s", "gradeResult": {"passed": true}}\n',
    "deepeval": '{"testRunData": {"testCases": [{"input": "q", "success": true}]}}',
    "pydantic-evals": '{"cases": [{"name": "c", "assertions": {"a": {"value": true}}}]}',
    "lm-eval": '{"doc_id": 0, "resps": [], "filtered_resps": [], "acc": 1.0}\n',
    "langfuse": '[{"traceId": "t", "name": "n", "dataType": "BOOLEAN", "value": 1}]',
}


def write(path: Path, text: str, name: str) -> Path:
    file = path / name
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("form", FORMATS)
def test_a_format_is_told_by_content_alone(tmp_path: Path, form: str) -> None:
    """Whatever the file is called."""
    path = write(tmp_path, EXAMPLES[form], "results.txt")
    assert form == read_outcomes(path).format


@pytest.mark.parametrize("form", FORMATS)
def test_a_format_may_be_said(tmp_path: Path, form: str) -> None:
    """Then nothing is guessed."""
    path = write(tmp_path, EXAMPLES[form], "results.txt")
    assert form == read_outcomes(path, format=form).format


@pytest.mark.parametrize(
    ("form", "given"), [("inspect", "promptfoo"), ("promptfoo", "inspect"), ("junit", "jsonl")]
)
def test_a_file_of_another_format_than_said_is_refused(
    tmp_path: Path, form: str, given: str
) -> None:
    """It is not read as something else instead."""
    path = write(tmp_path, EXAMPLES[given], "results.txt")
    with pytest.raises(OutcomesUnreadable):
        read_outcomes(path, format=form)


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    """With those that are known."""
    with pytest.raises(InvalidArgument, match="'jsonl', 'csv', 'trialwise', 'junit'"):
        read_outcomes(write(tmp_path, LINES, "a.jsonl"), format="yaml")


def test_several_files_are_further_trials(tmp_path: Path) -> None:
    """Each file's numbered trials are its own."""
    text = '{"id": "a", "trial": 1, "passed": true}\n'
    paths = [write(tmp_path, text, f"run{n}.jsonl") for n in range(3)]
    outcomes = read_outcomes(paths)
    assert (3, 3) == (len(outcomes.rows), len({row.trial for row in outcomes.rows}))
    assert all(str(path) in outcomes.source for path in paths)


def test_files_that_are_read_differently_are_not_joined(tmp_path: Path) -> None:
    """Neither formats nor services are mixed."""
    paths = [write(tmp_path, EXAMPLES["csv"], "a.csv"), write(tmp_path, LINES, "b.jsonl")]
    with pytest.raises(InvalidArgument, match="read alike"):
        read_outcomes(paths)
    logs = [
        write(tmp_path, json.dumps({**INSPECT, "eval": {"task": "t", "model": model}}), f"{model}")
        for model in ("m1", "m2")
    ]
    with pytest.raises(InvalidArgument, match="one service"):
        read_outcomes(logs)
    with pytest.raises(InvalidArgument, match="at least one file"):
        read_outcomes([])


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A folder, a pipe, nothing at all, nothing in it, and a name that cannot be one."""
    os.mkfifo(tmp_path / "pipe.csv")
    for path, message in (
        (tmp_path, "a folder"),
        (tmp_path / "pipe.csv", "not a regular file"),
        (tmp_path / "none.csv", "cannot be read"),
        (write(tmp_path, " \n", "empty.csv"), "the file is empty"),
        (Path("a\0b"), "cannot be a file's name"),
    ):
        with pytest.raises(OutcomesUnreadable, match=message):
            read_outcomes(path)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    """Before it is in memory."""
    with pytest.raises(OutcomesUnreadable, match="at most 10 are read: split it"):
        read_whole(write(tmp_path, LINES, "a.jsonl"), limit=10)


def test_json_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    """A short file may nest deeper than a stack."""
    with pytest.raises(OutcomesUnreadable, match=r"nested too deeply|JSON object is expected"):
        read_outcomes(write(tmp_path, "[" * 200_000, "a.json"))


def test_an_unreadable_file_can_be_passed_between_processes() -> None:
    """The error keeps its parts."""
    error = OutcomesUnreadable("a.csv", ("line 1: x", "line 2: y"))
    copy = pickle.loads(pickle.dumps(error))
    assert (error.path, error.problems, str(error)) == (copy.path, copy.problems, str(copy))


@given(st.binary(max_size=200), st.sampled_from(["", ".csv", ".jsonl", ".json", ".xml", ".eval"]))
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, extension: str
) -> None:
    """Never a traceback."""
    file = tmp_path_factory.mktemp("fuzz") / f"outcomes{extension}"
    file.write_bytes(content)
    try:
        outcomes = read_outcomes(file)
    except OutcomesUnreadable:
        return
    assert outcomes.rows


@pytest.mark.parametrize("name", ["results.yaml", "promptfooconfig.YML"])
def test_yaml_is_not_taken_for_a_table(tmp_path: Path, name: str) -> None:
    """promptfoo writes it with `-o results.yaml`; the message says what to write instead."""
    path = tmp_path / name
    path.write_text("results:\n  results:\n  - {success: true}\n")

    with pytest.raises(OutcomesUnreadable, match=r"promptfoo eval -o results\.json"):
        read_outcomes(path)
