"""`to_frame`: the same table in pandas and in polars, and a clear word where neither is there."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import trialwise as tw
from trialwise.runtime.answers import Comparison
from trialwise.runtime.comparing import compare
from trialwise.runtime.frames import LIBRARIES, FrameLibraryMissing, Library

QUESTIONS = [
    tw.Input(id="sum", value="15 * 37?", stratum="maths"),
    tw.Input(id="capital", value="Australia?", stratum="geography"),
]


def priced(question: str, seed: int) -> tw.Reply:
    """Wrong for about one sum in three; every second reply says what it used."""
    usage = tw.Usage(input_tokens=7, output_tokens=3) if seed % 2 else None
    value = "555" if "?" in question and seed // 2 % 3 else "about 550"
    return tw.Reply(value=value, latency_s=0.25, usage=usage, cost_usd=0.01)


@pytest.fixture(scope="module")
def result() -> tw.Result:
    """A run of two criteria on two inputs."""
    asked = [
        tw.Criterion("seed", tw.contains("555"), at_least=0.5),
        tw.Criterion("short", tw.length(maximum=20), never_fails=True),
    ]
    return tw.run(
        tw.Contract("sums", priced, asked),
        inputs=QUESTIONS,
        trials=40,
        seed=5,
        store=None,
        curtail=False,
    )


@pytest.fixture(scope="module")
def compared() -> Comparison:
    """The same service against one that is always right."""
    asked = [tw.Criterion("right", tw.contains("555"), at_least=0.5)]
    old = tw.Contract("sums", priced, asked)
    new = old.with_service(lambda _question: "555")
    return compare(old, new, inputs=QUESTIONS, trials=40, seed=5, store=None)


def rows(frame: Any, library: Library) -> list[dict[str, Any]]:
    """A frame as plain rows, what is missing as None."""
    if library == "polars":
        return list(frame.to_dicts())
    plain = frame.astype(object).where(frame.notna(), None)
    return list(plain.to_dict("records"))


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Library:
    """Both, where they are installed."""
    name: Library = request.param
    pytest.importorskip(name)
    return name


def test_every_trial_is_a_row_with_what_it_took(result: tw.Result, library: Library) -> None:
    """In issue order; a criterion may be called like a column without a clash."""
    found = rows(result.to_frame(library=library), library)
    trials = result.record.trials

    assert [one.index for one in trials] == [row["index"] for row in found]
    assert [one.seed for one in trials] == [row["seed"] for row in found]
    assert [one.outcome("seed").passed for one in trials] == [row["passed.seed"] for row in found]
    assert [one.cost_usd for one in trials] == [row["cost_usd"] for row in found]
    assert {7, None} == {row["input_tokens"] for row in found}
    assert {None} == {row["exit_code"] for row in found}
    asked = {one.id: str(one.value) for one in QUESTIONS}
    assert [asked[one.input_id] for one in trials] == [row["asked"] for row in found]
    assert set(range(20)) == {row["repetition"] for row in found if row["input_id"] == "sum"}


def test_every_outcome_is_a_row_with_its_reason(result: tw.Result, library: Library) -> None:
    """Failures say why, passes say nothing."""
    found = rows(result.to_frame("outcomes", library=library), library)
    failed = [row for row in found if not row["passed"]]

    assert 80 == len(found)
    assert {"condition"} == {row["reason"] for row in failed}
    assert all("555" in row["explanation"] for row in failed)
    assert {None} == {row["explanation"] for row in found if row["passed"]}


def test_every_finding_is_a_row_with_its_numbers(result: tw.Result, library: Library) -> None:
    """As the verdict has them."""
    found = rows(result.to_frame("findings", library=library), library)
    finding = result.verdict.findings[0]

    assert ["seed", "short"] == [row["criterion"] for row in found]
    assert finding.interval is not None
    assert (finding.tally.rate, finding.interval.low, "PASS") == (
        found[0]["rate"],
        found[0]["interval_low"],
        found[0]["decision"],
    )
    assert (None, None) == (found[1]["alpha"], found[1]["required_rate"])


def test_every_input_is_a_row_for_each_criterion(result: tw.Result, library: Library) -> None:
    """Counted again from the trials, with strata."""
    found = rows(result.to_frame("inputs", library=library), library)
    passed = sum(
        one.outcome("seed").passed for one in result.record.trials if one.input_id == "sum"
    )

    assert 4 == len(found)
    assert {
        "experiment": "inputs", "input_id": "sum", "stratum": "maths", "criterion": "seed",
        "trials": 20, "passed": passed, "rate": passed / 20,
    }.items() <= found[0].items()  # fmt: skip


def test_columns_have_one_type_whether_or_not_anything_is_in_them(
    result: tw.Result, library: Library
) -> None:
    """Whole numbers stay whole where some are missing, and an empty table has its columns."""
    frame = result.to_frame(library=library)
    empty = tw.SuiteResult({}).to_frame(library=library)
    kinds = {name: str(kind) for name, kind in zip(frame.columns, frame.dtypes, strict=True)}

    assert kinds["input_tokens"] == "Int64"
    assert kinds["passed"].lower().startswith("bool")
    assert kinds["latency_s"].lower() == "float64"
    assert kinds["error"].lower() == "string"
    assert 0 == len(empty)
    assert list(empty.columns) == [one for one in frame.columns if not one.startswith("passed.")]


def test_a_suite_is_one_table_that_names_its_contracts(result: tw.Result, library: Library) -> None:
    """Rows of all contracts, in order."""
    suite = tw.SuiteResult({"one": result, "two": result})
    found = rows(suite.to_frame("findings", library=library), library)

    assert ["seed", "short"] * 2 == [row["criterion"] for row in found]
    assert {"sums"} == {row["contract"] for row in found}
    assert {"one", "two"} == suite.to_dict().keys()


def test_pairs_and_contrasts_of_a_comparison(compared: Comparison, library: Library) -> None:
    """The discordant pairs of the table are those of the finding."""
    pairs = rows(compared.to_frame(library=library), library)
    contrast = rows(compared.to_frame("findings", library=library), library)[0]
    won = [one for one in pairs if one["candidate_passed"] and not one["control_passed"]]

    assert (40, compared.findings[0].wins) == (len(pairs), len(won))
    assert (len(won), "better") == (contrast["only_candidate"], contrast["contrast"])
    assert all(one["control_index"] == one["candidate_index"] for one in pairs)


def test_pandas_comes_first_where_nobody_says(result: tw.Result) -> None:
    """Where both are installed."""
    pandas = pytest.importorskip("pandas")

    assert isinstance(result.to_frame(), pandas.DataFrame)


@pytest.mark.parametrize(
    ("wrong", "why"), [({"kind": "replies"}, "kind"), ({"library": "dask"}, "library")]
)
def test_unknown_kinds_and_libraries_are_refused(
    result: tw.Result, wrong: dict[str, Any], why: str
) -> None:
    """With what would have been accepted."""
    with pytest.raises(tw.InvalidArgument, match=f"{why} must be one of"):
        result.to_frame(**wrong)


@pytest.mark.parametrize(("library", "named"), [(None, "pandas or polars"), ("polars", "polars")])
def test_without_a_library_it_says_what_to_install(
    result: tw.Result, monkeypatch: pytest.MonkeyPatch, library: Any, named: str
) -> None:
    """An `ImportError` of ours, and the way out."""
    for name in LIBRARIES:
        monkeypatch.setitem(sys.modules, name, None)  # what an import finds when there is none

    with pytest.raises(FrameLibraryMissing, match=f"needs {named}, which is not installed"):
        result.to_frame(library=library)


def test_neither_library_is_loaded_before_a_table_is_asked_for() -> None:
    """Importing and running stays light."""
    code = """
import sys
import trialwise as tw
contract = tw.Contract("c", lambda q: "555", [tw.Criterion("a", tw.contains("555"), at_least=0.9)])
tw.run(contract, inputs=["q"], seed=1, store=None)._repr_html_()
print({"pandas", "polars", "numpy"} & set(sys.modules))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "set()" == run.stdout.strip()
