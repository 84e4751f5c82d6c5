"""Settings of a session: command line over marker over ini file; measuring, plans, reports."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from trialwise.model.claim import Intent
from trialwise.model.evidence import StopReason
from trialwise.model.verdict import Decision
from trialwise.stores.baselines import BaselineStore
from trialwise.stores.runs import RunStore

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

_PLAIN = """
    import pytest
    from notes import note

    @pytest.mark.trials({marker})
    def test_it(): note("body")
"""


def test_the_ini_file_says_what_is_usual(project: Project) -> None:
    """Settings apply where the marker says nothing."""
    project.ini(
        trialwise_trials=70,
        trialwise_confidence=0.9,
        trialwise_intent="smoke",
        trialwise_rule="exact",
        trialwise_seed=5,
    )
    record = project.judge(_PLAIN.format(marker="at_least=0.9"))

    assert (70, Intent.SMOKE, "exact", 5) == (
        record.plan.max_trials,
        record.plan.intent,
        record.plan.rule,
        record.plan.seed,
    )
    assert record.plan.criteria[0].alpha == pytest.approx(0.1)


def test_pyproject_holds_settings_too(project: Project) -> None:
    """The same names stand in pyproject.toml."""
    ini = project.path / "pytest.ini"
    written = ini.read_text().partition("addopts =")[2].partition("filterwarnings")[0]
    options = " ".join(written.split())
    ini.unlink()
    project.write(
        f"""
        [tool.pytest.ini_options]
        addopts = "{options}"
        trialwise_max_trials = "40"
        trialwise_store = "kept/runs"
        """,
        "pyproject.toml",
    )
    project.write(_PLAIN.format(marker="at_least=0.9"))

    project.run().assert_outcomes(passed=1)

    (run,) = RunStore(project.path / "kept" / "runs").list()
    record = RunStore(project.path / "kept" / "runs").load(run.run_id)
    assert ("test_it.py::test_it", 40) == (run.contract, record.plan.max_trials)


def test_the_marker_beats_the_ini_file(project: Project) -> None:
    """One size replaces the other, and single settings replace single settings."""
    project.ini(trialwise_trials=70, trialwise_confidence=0.9)
    record = project.judge(_PLAIN.format(marker="at_least=0.9, max_trials=50, confidence=0.95"))

    (criterion,) = record.plan.criteria
    assert ("SEQUENTIAL", 50, 0.05) == (
        str(criterion.procedure),
        criterion.trials,
        round(criterion.alpha or 0, 9),
    )


def test_the_command_line_beats_the_marker(project: Project) -> None:
    """What is wanted today replaces what the marker says."""
    record = project.judge(
        _PLAIN.format(marker="at_least=0.9, max_trials=50, confidence=0.95, seed=1"),
        "--trialwise-trials=80",
        "--trialwise-confidence=0.99",
        "--trialwise-intent=smoke",
        "--trialwise-seed=2",
        "--trialwise-rule=exact",
    )

    (criterion,) = record.plan.criteria
    assert ("COMPLIANCE", 80, 0.01) == (
        str(criterion.procedure),
        criterion.trials,
        round(criterion.alpha or 0, 9),
    )
    assert (Intent.SMOKE, 2, "exact") == (record.plan.intent, record.plan.seed, record.plan.rule)


@pytest.mark.parametrize(
    ("settings", "args", "said"),
    [
        (
            {"trialwise_trials": "many"},
            (),
            "trialwise_trials must be a whole number of at least 1, got 'many'",
        ),
        ({"trialwise_intent": "guess"}, (), "trialwise_intent must be one of verification, smoke*"),
        (
            {"trialwise_trials": 5, "trialwise_max_trials": 6},
            (),
            "trialwise_trials and trialwise_max_trials exclude each other",
        ),
        (
            {},
            ("--trialwise-trials=5", "--trialwise-max-trials=6"),
            "--trialwise-trials and --trialwise-max-trials exclude each other",
        ),
        (
            {},
            ("--trialwise-budget-usd=-1",),
            "--trialwise-budget-usd must be an amount in US dollars above 0*got '-1'",
        ),
        ({}, ("--trialwise-inconclusive=maybe",), "*invalid choice: 'maybe'*"),
    ],
)
def test_settings_that_cannot_be_meant(
    project: Project, settings: dict[str, object], args: tuple[str, ...], said: str
) -> None:
    """A wrong setting is a usage error, named."""
    project.ini(**settings)
    project.write(_PLAIN.format(marker="5, never_fails=True"))

    result = project.run(*args)

    assert pytest.ExitCode.USAGE_ERROR == result.ret
    result.stderr.fnmatch_lines([f"*{said}"])


# --- Budgets ----------------------------------------------------------------------------------


def test_a_budget_of_trials_is_the_sessions(project: Project) -> None:
    """All marked tests share one budget; a test that finds it used up is undecided."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(40, at_least=0.9, curtail=False)
        def test_first(): pass

        @pytest.mark.trials(40, at_least=0.9, curtail=False)
        def test_second(): pass

        @pytest.mark.trials(40, at_least=0.9, curtail=False)
        def test_third(): pass
        """
    )

    result = project.run("--trialwise-budget-trials=50")

    result.assert_outcomes(passed=1, failed=2)
    found = [(len(one.trials), one.verdict.stop, one.verdict.decision) for one in project.records()]
    assert [
        (40, StopReason.COMPLETE, Decision.PASS),
        (10, StopReason.TRIALS_BUDGET, Decision.INCONCLUSIVE),
        (0, StopReason.TRIALS_BUDGET, Decision.INCONCLUSIVE),
    ] == found
    result.stdout.fnmatch_lines(["*the session's budget of 50 trials is used up*"])
    result.stdout.fnmatch_lines(["`pytest --trialwise-resume` continues unfinished tests*"])


@pytest.mark.parametrize(
    ("option", "stop"),
    [
        ("--trialwise-budget-usd=1.5", StopReason.MONEY_BUDGET),
        ("--trialwise-budget-seconds=0.03", StopReason.TIME_BUDGET),
    ],
)
def test_budgets_of_money_and_time(project: Project, option: str, stop: StopReason) -> None:
    """Fifteen trials of ten cents use up a dollar and a half; seconds count from the first."""
    record = project.judge(
        """
        import time
        import pytest

        @pytest.mark.trials(200, at_least=0.9, curtail=False)
        def test_it(trial):
            trial.record(cost=0.1)
            time.sleep(0.001)
        """,
        option,
    )

    assert stop is record.verdict.stop
    assert Decision.INCONCLUSIVE is record.verdict.decision
    if stop is StopReason.MONEY_BUDGET:
        assert 15 == len(record.trials)


# --- Baselines --------------------------------------------------------------------------------


@pytest.mark.slow
def test_baselines_are_measured_and_compared_with(project: Project) -> None:
    """`--trialwise-measure` counts every trial, decides nothing and writes a file for git."""
    source = """
        import pytest

        @pytest.mark.trials(no_worse_than="baseline", trials=200)
        def test_it(trial): assert trial.index % {of} != 3
    """
    project.write(source.format(of=20))

    result = project.run("--trialwise-measure", "--trialwise-trials=400")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["measured 380 of 400  test_it.py::test_it", "  baselines/*.json"])
    ((path, baseline),) = BaselineStore(project.path / "baselines").all()
    assert (400, 380) == (baseline.criteria["passes"].trials, baseline.criteria["passes"].passed)
    assert [] == project.records()
    assert json.loads(path.read_text())["contract"] == "test_it.py::test_it"

    project.run().assert_outcomes(passed=1)
    (record,) = project.records()
    reference = record.verdict.findings[0].threshold
    assert reference is not None
    assert reference.baseline is not None
    assert baseline.identifier == reference.baseline.identifier


@pytest.mark.slow
def test_a_baseline_speaks_of_the_body_and_not_of_its_marker(project: Project) -> None:
    """What is asked may change; a body that was changed is another one, and is refused."""
    source = """
        import pytest

        LIMIT = {limit}

        def holds(index): return index % 20 < LIMIT

        @pytest.mark.trials({marker})
        def test_it(trial):
            # {comment}
            assert holds(trial.index)
    """
    project.write(source.format(limit=19, marker="300, at_least=0.5", comment="first"))
    project.run("--trialwise-measure").assert_outcomes(passed=1)

    asked = 'no_worse_than="baseline", trials=100'
    project.write(source.format(limit=19, marker=asked, comment="second"))
    project.run().assert_outcomes(passed=1)

    project.write(source.format(limit=18, marker=asked, comment="second"))
    result = project.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["test_it.py:8: test_it: *"])


def test_a_baseline_needs_every_trial(project: Project) -> None:
    """Part of a baseline is none: the test fails and says how to go on."""
    project.write(_PLAIN.format(marker="50, never_fails=True, budget={'trials': 20}"))

    result = project.run("--trialwise-measure")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["no baseline was written: the budget of 20 trials is used up*"])
    assert not list((project.path / "baselines").rglob("*.json"))

    project.write(_PLAIN.format(marker="50, never_fails=True"))
    project.run("--trialwise-measure", "--trialwise-resume").assert_outcomes(passed=1)
    assert 50 == Counter(project.notes())["body"]


# --- Plans and reports ------------------------------------------------------------------------


@pytest.mark.slow
def test_a_plan_is_printed_and_nothing_is_run(project: Project) -> None:
    """Rules in counts, chances and cost; not one body, nor any unmarked test."""
    project.write(
        """
        import pytest
        from notes import note

        @pytest.mark.trials(at_least=0.9, max_trials=50)
        def test_it(trial):
            note("body")
            trial.record(cost=0.5)

        @pytest.mark.trials(60, at_least=0.9, budget={"usd": 3})
        def test_other(trial):
            note("body")
            trial.record(cost=0.01)

        def test_plain(): note("plain")
        """
    )

    result = project.run("--trialwise-plan")

    assert 0 == result.ret
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_it: at most 50 trials, seed *",
            "  passes: PASS after 35 of 35 at the earliest; *",
            "  What a trial costs is unknown. No budget is set.",
            "test_it.py::test_other: at most 60 trials, seed *",
            "*Budget: $3.00.",
            "2 decided tests, at most 110 trials; nothing was run",
        ]
    )
    assert [] == project.notes()

    project.run("-k", "test_it").assert_outcomes(passed=3)
    project.run("--trialwise-plan").stdout.fnmatch_lines(["  It can cost at most about $25.00*"])


def test_a_plan_shows_what_is_wrong(project: Project) -> None:
    """A refused design is an error of the plan as well."""
    project.write(_PLAIN.format(marker="5, at_least=0.9"))

    result = project.run("--trialwise-plan")

    assert pytest.ExitCode.INTERRUPTED == result.ret
    result.stdout.fnmatch_lines(["*5 trials cannot show a rate above 0.9*"])


def test_reports_of_all_marked_tests(project: Project) -> None:
    """One HTML page and one Markdown summary, which is appended to."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(30, never_fails=True)
        def test_one(): pass

        @pytest.mark.trials(30, never_fails=True)
        def test_two(): assert False, "it is <b>broken</b>"
        """
    )
    summary = project.path / "summary.md"
    summary.write_text("# Before\n")

    result = project.run("--trialwise-html=out/report.html", "--trialwise-summary=summary.md")

    result.stdout.fnmatch_lines(["report: *out/report.html", "summary: *summary.md"])
    page = (project.path / "out" / "report.html").read_text()
    assert "test_it.py::test_one" in page
    assert "&lt;b&gt;broken" in page
    text = summary.read_text()
    assert text.startswith("# Before")
    assert "FAIL" in text


def test_a_report_that_cannot_be_written_does_not_hide_the_verdict(project: Project) -> None:
    """The session ends as it would have, and says so."""
    project.write(_PLAIN.format(marker="5, never_fails=True"))
    (project.path / "file").touch()

    result = project.run("--trialwise-html=file/report.html")

    assert 0 == result.ret
    result.stdout.fnmatch_lines(["the report was not written: *"])


# --- Resuming ---------------------------------------------------------------------------------


def test_resuming_runs_no_trial_again(project: Project) -> None:
    """Trials in the journal are counted; finished tests are kept; others start."""
    project.write(
        """
        import pytest
        from notes import note

        @pytest.mark.trials(30, at_least=0.8, curtail=False)
        def test_a(trial): note(f"a{trial.index}")

        @pytest.mark.trials(30, at_least=0.8, curtail=False)
        def test_b(trial): note(f"b{trial.index}"); assert trial.index != 3

        @pytest.mark.trials(30, at_least=0.8, curtail=False)
        def test_c(trial): note(f"c{trial.index}")
        """
    )
    project.run("--trialwise-budget-trials=50", "--deselect=test_it.py::test_c")
    assert [30, 20] == [len(one.trials) for one in project.records()]

    result = project.run("--trialwise-resume")

    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["test_it.py::test_a: finished before, kept"])
    expected = {f"{name}{index}": 1 for name in "abc" for index in range(30)}
    assert expected == Counter(project.notes())
    found = {one.plan.contract[-1]: len(one.trials) for one in project.records()}
    assert {"a": 30, "b": 30, "c": 30} == found
    assert 29 == next(
        one.verdict.findings[0].tally.passed
        for one in project.records()
        if one.plan.contract.endswith("b")
    )


def test_a_changed_test_starts_anew(project: Project) -> None:
    """Trials of another body do not count for this one."""
    project.write(_PLAIN.format(marker="30, at_least=0.8, curtail=False"))
    project.run("--trialwise-budget-trials=10").assert_outcomes(failed=1)
    path = project.write(_PLAIN.format(marker="30, at_least=0.8, curtail=False"))
    path.write_text(path.read_text().replace('note("body")', 'note("other")'))

    result = project.run("--trialwise-resume")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*not resumed, since the test has changed: *"])
    assert [10, 30] == [len(one.trials) for one in project.records()]


def test_a_resumed_failure_shows_what_it_knows(project: Project) -> None:
    """Reasons of an earlier session are counted; only their tracebacks are gone."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(30, at_least=0.8, curtail=False)
        def test_it(trial): assert trial.index > 20, "too early"
        """
    )
    project.run("--trialwise-budget-trials=25")

    result = project.run("--trialwise-resume")

    result.stdout.fnmatch_lines(["21 of 21 failed trials, here trial 0: too early*"])
