"""What pytest makes of a verdict, and what it shows of one that is no PASS."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import comb
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

_THREE_REASONS = """
    import pytest

    def agent(index):
        if index % 10 in (3, 5, 7, 9):
            raise ConnectionError(f"reset {index}")
        return {2: "sorry", 4: "no", 6: "never"}.get(index % 10, "confirmed")

    @pytest.mark.trials(50, at_least=0.9, curtail=False, analysis="intent-to-treat")
    def test_books_a_table(trial):
        print("asked", trial.index)
        answer = agent(trial.index)
        if trial.index == 8:
            pytest.fail("too expensive")
        if trial.index == 18:
            raise ValueError("odd")
        assert "confirmed" in answer
"""
_UNDECIDED = """
    import pytest

    @pytest.mark.trials(at_least=0.9, margin=0.1, power=0.8, max_trials=50)
    def test_it(trial): assert trial.index % 7 != 3
"""


def exact_interval(passed: int, trials: int) -> tuple[float, float]:
    """The rates at which a result like this one or further away has a chance of 5 % a side."""

    def chance(counts: range, rate: float) -> float:
        return sum(comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in counts)

    def first(holds: Callable[[float], bool]) -> float:
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high

    return (
        first(lambda rate: chance(range(passed, trials + 1), rate) >= 0.05),
        first(lambda rate: chance(range(passed + 1), rate) <= 0.05),
    )


def test_a_fail_shows_numbers_rule_and_the_most_frequent_reasons(project: Project) -> None:
    """Rate, interval, threshold, rule, and three reasons with one rewritten assertion each."""
    project.write(_THREE_REASONS)

    result = project.run()

    result.assert_outcomes(failed=1)
    low, high = exact_interval(13, 50)
    result.stdout.fnmatch_lines(
        [
            "*_ test_books_a_table _*",
            f"E   FAIL: 13 of 50 trials passed, 26.0 % [[]{100 * low:.1f}, {100 * high:.1f}[]]; *",
            "    rule: PASS with at least 49 of 50, FAIL with at most 40, between: INCONCLUSIVE",
            "      (compliance/exact-binomial/2)",
            "    interval: 90 %, Clopper-Pearson, exact",
            "20 of 37 failed trials (infrastructure), here trial 3: ConnectionError: reset 3",
            ">       answer = agent(trial.index)",
            ">           raise ConnectionError(*",
            "15 of 37 failed trials, here trial 2: assert 'confirmed' in 'sorry'",
            '>       assert "confirmed" in answer',
            "E       AssertionError: assert 'confirmed' in 'sorry'",
            "test_it.py:17: AssertionError",
            "1 of 37 failed trials, here trial 8: too expensive",
            "and 1 failure of 1 other kind",
            "*Captured stdout of trial 2 call*",
            "asked 2",
            "FAILED test_it.py::test_books_a_table - FAIL: 13 of 50 trials passed, 26.0 %*",
        ]
    )
    text = result.stdout.str()
    assert 3 == len(re.findall(r"^\d+ of 37 failed trials", text, re.MULTILINE))
    assert "asked 12\n" not in text


@pytest.mark.parametrize(
    ("style", "shown", "hidden"),
    [
        ("short", ['    assert "confirmed" in answer', "E   AssertionError*"], ">  "),
        ("line", ["*test_it.py:9: FAIL: 13 of 50 trials passed*"], ">  "),
        ("no", ["FAILED test_it.py::test_books_a_table - FAIL: 13 of 50*"], "E   "),
        ("native", ["Traceback (most recent call last):", "*ConnectionError: reset 3"], ">  "),
    ],
)
def test_tracebacks_obey_their_option(
    project: Project, style: str, shown: list[str], hidden: str
) -> None:
    """`--tb` styles reasons as it styles any traceback."""
    project.write(_THREE_REASONS)

    result = project.run(f"--tb={style}")

    result.stdout.fnmatch_lines(shown)
    assert f"\n{hidden}" not in result.stdout.str().replace("E   FAIL", "")


def test_a_failed_check_is_shown_at_its_place(project: Project) -> None:
    """A check that does not hold looks like the assertion it might have been."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(60, polite={"at_least": 0.9}, short={"at_least": 0.5},
                            keep_going=True)
        def test_it(trial):
            answer = "No."
            trial.check("short", len(answer) < 10)
            trial.check("polite", "please" in answer, "no please")
        """
    )

    result = project.run()

    result.stdout.fnmatch_lines(
        [
            "E   FAIL: polite: 0 of 11 trials passed, *; asked: at least 90 %; decided at*",
            "E   *of 26 later trials 0 passed (0.0 %)",
            "    polite: FAIL, 0 of 11 trials passed*",
            "    short: PASS, *",
            "37 of 37 failed trials, here trial 0: no please",
            '>       trial.check("polite", "please" in answer, "no please")',
            "E       CheckFailed: polite: no please",
            "test_it.py:9: CheckFailed",
        ]
    )


def test_an_inconclusive_test_fails_with_its_own_wording(project: Project) -> None:
    """By default an open question is not a green one."""
    project.write(_UNDECIDED)

    result = project.run("-v")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_it INCONCLUSIVE*",
            "E   INCONCLUSIVE: 43 of 50 trials passed, *; asked: at least 90 %",
            "INCONCLUSIVE test_it.py::test_it - INCONCLUSIVE: 43 of 50*",
        ]
    )


@pytest.mark.slow("fail-failed-ini", "xfail-xfailed-command line", "pass-passed-command line")
@pytest.mark.parametrize("where", ["command line", "ini"])
@pytest.mark.parametrize(
    ("choice", "outcome"),
    [("fail", "failed"), ("skip", "skipped"), ("xfail", "xfailed"), ("pass", "passed")],
)
def test_inconclusive_can_be_mapped(
    project: Project, choice: str, outcome: str, where: str
) -> None:
    """Whatever pytest is told, the summary says what it was."""
    project.write(_UNDECIDED)
    args = []
    if where == "ini":
        project.ini(trialwise_inconclusive=choice)
    else:
        args = [f"--trialwise-inconclusive={choice}"]

    result = project.run(*args)

    result.assert_outcomes(**{outcome: 1})
    result.stdout.fnmatch_lines(["INCONCLUSIVE  86.0 %*test_it.py::test_it"])


def test_xfail_is_about_the_verdict(project: Project) -> None:
    """A test marked xfail is expected to FAIL as a whole, not in one trial."""
    project.write(
        """
        import pytest

        @pytest.mark.xfail(reason="known")
        @pytest.mark.trials(30, never_fails=True)
        def test_fails(trial): assert trial.index < 20

        @pytest.mark.xfail(reason="known")
        @pytest.mark.trials(30, never_fails=True)
        def test_passes(): pass

        @pytest.mark.xfail(run=False)
        @pytest.mark.trials(30, never_fails=True)
        def test_never(): raise SystemExit
        """
    )

    project.run().assert_outcomes(xfailed=2, xpassed=1)


def test_the_junit_file_has_the_verdict(project: Project) -> None:
    """pytest's own JUnit file carries the numbers as properties of the test."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(100, at_least=0.9, origin="SLO")
        def test_it(trial):
            trial.record(cost=0.01)
            assert trial.index != 4
        """
    )

    project.run("--junitxml=out.xml").assert_outcomes(passed=1)

    properties = ElementTree.parse(project.path / "out.xml").iter("property")
    found = {one.attrib["name"]: one.attrib["value"] for one in properties}
    (record,) = project.records()
    finding = record.verdict.findings[0]
    trials = finding.tally.trials
    low, high = exact_interval(trials - 1, trials)
    assert {
        "trialwise.decision": "PASS",
        "trialwise.trials": str(trials),
        "trialwise.passes.decision": "PASS",
        "trialwise.passes.passed": str(trials - 1),
        "trialwise.passes.rate": str(round((trials - 1) / trials, 6)),
        "trialwise.passes.interval_low": str(round(low, 6)),
        "trialwise.passes.interval_high": str(round(high, 6)),
        "trialwise.passes.required_rate": "0.9",
        "trialwise.passes.rule": "compliance/exact-binomial/2",
        "trialwise.seed": str(record.plan.seed),
    }.items() <= found.items()
    assert (project.path / found["trialwise.run"] / "record.json").is_file()


@pytest.mark.slow
def test_the_summary_names_every_judged_test_and_what_they_may_be_wrong_about(
    project: Project,
) -> None:
    """A line a criterion, totals, and the union bounds by kind of error, never added up."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(100, at_least=0.9, confidence=0.97)
        def test_fixed(trial): trial.record(cost=0.5)

        @pytest.mark.trials(at_least=0.9, max_trials=50)
        def test_sequential(): pass

        @pytest.mark.trials(at_least=0.8)
        def test_another(): assert False

        @pytest.mark.trials(7, never_fails=True)
        class TestNever:
            def test_it(self): pass

        def test_plain(): pass
        """
    )

    result = project.run()

    result.assert_outcomes(passed=4, failed=1)
    trials = {one.plan.contract: one.verdict.spending.trials for one in project.records()}
    result.stdout.fnmatch_lines(
        [
            "*= trialwise =*",
            "PASS  100.0 %  *test_it.py::test_fixed",
            "PASS  100.0 %  *required ≥ 90 %  35 trials  test_it.py::test_sequential",
            "FAIL    0.0 %  *test_it.py::test_another",
            "PASS  0 of 7 failed (no claim about the population) *test_it.py::TestNever::test_it",
            f"4 verdicts: 3 PASS, 1 FAIL · {sum(trials.values())} trials *",
        ]
    )
    text = " ".join(result.stdout.str().split())
    # Both errors are stated, what has none is named, and no bound says "any".
    assert re.search(r"this suite would still pass in at most [\d.]+ % of runs", text)
    assert "Not counted: passes (passes in 99.3 % of runs if 1 reply in 1,000 fails)" in text
    assert re.search(r"it would fail in at most [\d.]+ % of runs", text)
    assert "at most any" not in text
    assert f"${0.5 * trials['test_it.py::test_fixed']:.2f}" in result.stdout.str()


def test_the_first_failure_can_end_the_session(project: Project) -> None:
    """`-x` and `--maxfail` count a decided test as one."""
    project.write(
        """
        import pytest
        from notes import note

        @pytest.mark.trials(10, never_fails=True)
        def test_first(): assert False

        @pytest.mark.trials(10, never_fails=True)
        def test_second(): note("second")
        """
    )

    project.run("-x").assert_outcomes(failed=1)

    assert [] == project.notes()


@pytest.mark.slow('urllib.request.urlopen("http://127.0.0.1:9/")')
@pytest.mark.parametrize(
    "call",
    [
        'raise ConnectionError("refused")',
        'urllib.request.urlopen("http://127.0.0.1:9/")',
        'requests.get("http://127.0.0.1:9/")',
        'httpx2.get("http://127.0.0.1:9/")',
    ],
)
def test_a_service_that_is_not_there_is_inconclusive_by_any_client(
    project: Project, call: str
) -> None:
    """0.1.0: INCONCLUSIVE for the built-in exception, FAIL for the clients'."""
    project.write(
        f"""
        import httpx2, pytest, requests, urllib.request

        @pytest.mark.trials(at_least=0.5, margin=0.2)
        def test_it():
            {call}
        """
    )

    result = project.run()

    result.stdout.fnmatch_lines(["*INCONCLUSIVE*"])
    result.stdout.no_fnmatch_line("*FAIL:*")


@pytest.mark.parametrize(("works", "verdict"), [("False", "INCONCLUSIVE"), ("True", "FAIL")])
def test_a_refused_request_is_a_failure_only_where_others_were_answered(
    project: Project, works: str, verdict: str
) -> None:
    """Before the first answer the address, the key or the model is wrong."""
    project.write(
        f"""
        import pytest

        class NotFound(Exception):
            status_code = 404

        @pytest.mark.trials(20, at_least=0.5)
        def test_it(trial):
            if trial.index or not {works}:
                raise NotFound("no such model")
        """
    )

    result = project.run()

    result.stdout.fnmatch_lines([f"E   {verdict}*"])
    if verdict == "INCONCLUSIVE":
        result.stdout.fnmatch_lines(["*set up wrongly*"])


def test_a_marked_test_that_was_inconclusive_before_states_the_joint_error(
    project: Project,
) -> None:
    """Each session is one run: two of them have two chances of a wrong decision."""
    project.write(_UNDECIDED.replace("50", "30"))
    first, second = project.run(), project.run()

    assert "their errors add" not in first.stdout.str()
    assert "their errors add" in " ".join(second.stdout.str().split())


def test_trials_that_were_not_measured_are_no_failed_trials(project: Project) -> None:
    """Every third trial does not reach the service: the others alone are counted as failed."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(10, at_least=0.5, curtail=False)
        def test_it(trial):
            if trial.index % 3 == 2:
                raise ConnectionError("reset")
            assert trial.index < 0
        """
    )

    result = project.run()

    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert re.search(r"^10 of 10 failed trials, here trial 0", text, re.MULTILINE), text
    assert re.search(r"^(\d+) of \1 trials not measured \(infrastructure\), here", text, re.M), text
