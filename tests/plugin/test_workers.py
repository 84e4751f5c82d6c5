"""Across workers of pytest-xdist: one budget, one summary, reports as without them."""

from __future__ import annotations

from collections import Counter
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trialwise.model.evidence import StopReason
from trialwise.model.options import Budget
from trialwise.model.verdict import Decision
from trialwise.plugin.session import SessionBudget

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

_XDIST = ("-p", "xdist", "-n", "2")


@pytest.mark.slow
def test_workers_share_a_budget_and_a_summary(project: Project) -> None:
    """Two workers together start no more trials than the session may, and report as one."""
    project.write(
        """
        import time
        import pytest
        from notes import note

        @pytest.mark.trials(30, at_least=0.8, curtail=False)
        @pytest.mark.parametrize("case", range(4))
        def test_it(case):
            note("body")
            time.sleep(0.002)

        @pytest.mark.trials(3, never_fails=True)
        def test_bad():
            assert "one" == "two"
        """
    )

    result = project.run_apart(
        *_XDIST, "--trialwise-budget-trials=80", "--trialwise-html=report.html", "--dist=load"
    )

    assert 80 >= len(project.notes())
    records = project.records()
    assert 80 == sum(len(one.trials) for one in records)
    assert 5 == len(records)
    assert StopReason.TRIALS_BUDGET in {one.verdict.stop for one in records}
    found = Counter(one.verdict.decision for one in records)
    result.assert_outcomes(
        passed=found[Decision.PASS], failed=found[Decision.FAIL] + found[Decision.INCONCLUSIVE]
    )
    result.stdout.fnmatch_lines(["*= trialwise =*", "5 verdicts: *· 80 trials *", "report: *"])
    for record in records:
        result.stdout.fnmatch_lines([f"*{record.plan.contract.replace('[', '[[]')}"])
    assert all(one.plan.contract in (project.path / "report.html").read_text() for one in records)


@pytest.mark.slow
def test_workers_show_failures_as_one_process_does(project: Project) -> None:
    """Rewritten assertions, the short summary and JUnit's properties survive the way."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(3, never_fails=True)
        def test_bad():
            assert "one" == "two"

        @pytest.mark.trials(10, at_least=0.9)
        def test_refused(): pass
        """
    )

    result = project.run_apart(*_XDIST, "--junitxml=out.xml", "-k", "bad")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["test_it.py:8: test_refused: passes: 10 trials cannot show *"])
    assert 1 == result.stdout.str().count("ERROR collecting test_it.py")

    path = project.path / "test_it.py"
    path.write_text(path.read_text().replace("10, at_least", "100, at_least"))
    result = project.run_apart(*_XDIST, "--junitxml=out.xml")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "E   FAIL: 0 of 1 trial passed, 0.0 %; asked: no failure",
            "1 of 1 failed trial, here trial 0: assert 'one' == 'two'",
            "E       AssertionError: assert 'one' == 'two'",
            "FAILED test_it.py::test_bad - FAIL: 0 of 1 trial passed*",
        ]
    )
    assert 'name="trialwise.decision" value="FAIL"' in (project.path / "out.xml").read_text()


@pytest.mark.slow
def test_a_plan_is_printed_by_one_process(project: Project) -> None:
    """`-n` does not keep a plan from being printed once."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(3, never_fails=True)
        def test_it(): pass
        """
    )

    result = project.run_apart(*_XDIST, "--trialwise-plan")

    assert 1 == result.stdout.str().count("test_it.py::test_it: at most 3 trials")


def _spend(path: Path, results: object) -> None:
    budget = SessionBudget(Budget(trials=100), path)
    taken = 0
    while budget.take() is None:
        taken += 1
    results.put(taken)  # type: ignore[attr-defined]


def test_a_session_budget_is_never_overdrawn(tmp_path: Path) -> None:
    """Three processes that take as fast as they can get exactly what there is."""
    context = get_context("fork")
    results = context.Queue()
    path = tmp_path / "budget.json"
    workers = [context.Process(target=_spend, args=(path, results)) for _ in range(3)]
    for worker in workers:
        worker.start()

    taken = [results.get(timeout=60) for _ in workers]

    for worker in workers:
        worker.join()
    assert 100 == sum(taken)


def test_a_session_budget_counts_money_and_time(tmp_path: Path) -> None:
    """Ten times ten cents is a dollar; the clock starts with the first trial."""
    now = [50.0]
    budget = SessionBudget(
        Budget(usd=1.0, seconds=10), tmp_path / "budget.json", clock=lambda: now[0]
    )
    for _ in range(9):
        assert budget.take() is None
        budget.pay(0.1)
    left = budget.remaining()
    assert left is not None
    assert left.usd is not None
    assert 0.0999 < left.usd < 0.1001
    budget.pay(0.1)
    assert (StopReason.MONEY_BUDGET, "the session's budget of $1 is used up") == budget.take()
    assert budget.remaining() is None

    timed = SessionBudget(Budget(seconds=10), clock=lambda: now[0])
    assert timed.take() is None
    now[0] += 10
    assert (StopReason.TIME_BUDGET, "the session's budget of 10 s is used up") == timed.take()


def test_without_limits_a_session_budget_writes_nothing(tmp_path: Path) -> None:
    """Sessions without a budget touch no file."""
    budget = SessionBudget(Budget(), tmp_path / "missing" / "budget.json")

    assert budget.take() is None
    budget.pay(3.0)
    budget.pay(None, 4)

    assert Budget() == budget.remaining()
