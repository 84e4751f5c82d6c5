"""Beside other plugins: limits per trial, random numbers, reruns, coverage, selection."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from trialwise.model.trial import ErrorClass
from trialwise.model.verdict import Decision

if TYPE_CHECKING:
    from tests.plugin.conftest import Project


def test_a_limit_of_pytest_timeout_is_for_one_trial(project: Project) -> None:
    """All trials together may take longer; a trial that does is a timeout, and the next goes on."""
    record = project.judge(
        """
        import time
        import pytest

        @pytest.mark.timeout(0.2)
        @pytest.mark.trials(12, at_least=0.5, curtail=False)
        def test_it(trial):
            time.sleep(5 if trial.index in (2, 4) else 0.03)
        """,
        "-p",
        "timeout",
    )

    assert [2, 4] == [trial.index for trial in record.trials if not trial.passed]
    assert {ErrorClass.TIMEOUT} == {
        trial.error_class for trial in record.trials if not trial.passed
    }
    assert 12 == len(record.trials)


@pytest.mark.parametrize("only_bodies", ["true", "false"])
def test_a_limit_of_the_session_is_for_one_trial_too(project: Project, only_bodies: str) -> None:
    """The limit of the command line, for bodies alone or with their fixtures."""
    project.write(
        """
        import time
        import pytest

        @pytest.mark.trials(20, never_fails=True)
        def test_it(): time.sleep(0.03)

        def test_plain(): pass
        """
    )

    result = project.run("-p", "timeout", "--timeout=0.3", "-o", f"timeout_func_only={only_bodies}")

    result.assert_outcomes(passed=2)


def test_pytest_randomly_does_not_make_all_trials_the_same(project: Project) -> None:
    """Every trial draws its own random numbers, and the same ones with the same seed."""
    project.write(
        """
        import random
        import pytest
        from notes import note

        @pytest.fixture
        def drawn(): return random.random()

        @pytest.mark.trials(30, never_fails=True, seed=4)
        def test_it(drawn): note(f"{drawn}/{random.random()}")

        @pytest.mark.trials(30, never_fails=True, seed=4)
        def test_other(): pass
        """
    )

    result = project.run("-p", "randomly", "--randomly-seed=1")

    result.assert_outcomes(passed=2)
    first = project.notes()
    assert 30 == len({note.split("/")[0] for note in first})
    assert 30 == len({note.split("/")[1] for note in first})

    (project.path / "notes.txt").unlink()
    project.run("-p", "randomly", "--randomly-seed=1")
    assert first == project.notes()


def test_a_judged_test_is_not_rerun(project: Project) -> None:
    """`--reruns` reruns plain tests; a judged one keeps its first verdict, and is said to."""
    project.write(
        """
        import pytest
        from notes import note

        @pytest.mark.trials(10, never_fails=True)
        def test_judged(trial):
            note("judged")
            assert trial.index < 5

        def test_plain():
            note("plain")
            assert False
        """
    )

    result = project.run("-p", "rerunfailures", "--reruns=2")

    result.assert_outcomes(failed=2)
    assert {"judged": 6, "plain": 3} == Counter(project.notes())
    result.stdout.fnmatch_lines(["decided tests were not rerun: *"])
    assert 1 == len(project.records())


HALF_FAIL = """
    import pytest
    from notes import note

    @pytest.mark.trials(10, never_fails=True, curtail=False)
    def test_judged(trial):
        note("judged")
        assert trial.index < 5

    def test_plain():
        note("plain")
        assert False
    """


@pytest.mark.slow("-flaky-flaky---force-flaky --max-runs=3")
@pytest.mark.parametrize(
    ("plugin", "module", "option"),
    [
        ("pytest-retry", "pytest_retry", "--retries=2"),
        ("flaky", "flaky", "--force-flaky --max-runs=3"),
    ],
)
@pytest.mark.parametrize("workers", ["", pytest.param("-p xdist -n 2", marks=pytest.mark.slow)])
def test_a_failed_verdict_stays_failed_beside_plugins_that_rerun(
    project: Project, plugin: str, module: str, option: str, workers: str
) -> None:
    """pytest-retry and flaky rerun plain tests; a FAIL is decided once and stays a FAIL."""
    pytest.importorskip(module)
    project.write(HALF_FAIL)

    result = project.run_apart("-p", plugin, *option.split(), *workers.split())

    result.assert_outcomes(failed=2)
    assert result.ret == 1
    assert {"judged": 10, "plain": 3} == Counter(project.notes())
    (record,) = project.records()
    assert Decision.FAIL is record.verdict.decision
    result.stdout.fnmatch_lines(["decided tests were not rerun: *"])


def test_a_plugin_that_calls_a_marked_test_again_cannot_pass_it(project: Project) -> None:
    """One that nobody knows: it calls the test by itself and takes that for the outcome."""
    project.write(
        """
        import pytest

        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_runtest_makereport(item, call):
            report = yield
            if report.failed and call.when == "call":
                again = pytest.CallInfo.from_call(
                    lambda: item.ihook.pytest_runtest_call(item=item), when="call"
                )
                report = pytest.TestReport.from_item_and_call(item, again)
            return report
        """,
        "conftest.py",
    )
    project.write(
        """
        import pytest

        @pytest.mark.trials(10, never_fails=True)
        def test_judged(trial): assert trial.index < 5
        """
    )
    result = project.run()

    result.assert_outcomes(failed=1)


def test_a_plugin_that_turns_a_report_cannot_pass_a_failed_verdict(project: Project) -> None:
    """The outcome of a verdict is set last."""
    project.write(
        """
        import pytest

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(item, call):
            report = yield
            report.outcome = "passed"
            return report
        """,
        "conftest.py",
    )
    project.write(
        """
        import pytest

        @pytest.mark.trials(10, never_fails=True)
        def test_judged(trial): assert trial.index < 5
        """
    )
    result = project.run()

    result.assert_outcomes(failed=1)


@pytest.mark.slow
def test_the_decorator_of_flaky_is_refused(project: Project) -> None:
    """Like the marker: a decided test is not to be run until it passes."""
    pytest.importorskip("flaky")
    project.write(
        """
        import pytest
        from flaky import flaky

        @flaky(max_runs=3)
        @pytest.mark.trials(10, never_fails=True)
        def test_judged(trial): pass
        """
    )
    result = project.run_apart("-p", "flaky")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*flaky and @pytest.mark.trials exclude each other*"])


@pytest.mark.slow
def test_coverage_counts_every_trial(project: Project) -> None:
    """Lines that only a late trial reaches are covered."""
    project.write(
        """
        def late(index):
            if index == 7:
                return "seven"
            return ""
        """,
        "agent.py",
    )
    project.write(
        """
        import pytest
        from agent import late

        @pytest.mark.trials(10, never_fails=True)
        def test_it(trial): late(trial.index)
        """
    )

    result = project.run_apart("-p", "pytest_cov", "--cov=agent", "--cov-report=term-missing")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["agent.py * 4 * 0 * 100%"])


@pytest.mark.slow
def test_selection_and_last_failed(project: Project) -> None:
    """`-k` selects judged tests by name, `--lf` those that failed."""
    project.write(
        """
        import pytest
        from notes import note

        @pytest.mark.trials(3, never_fails=True)
        def test_good(): note("good")

        @pytest.mark.trials(3, never_fails=True)
        def test_bad(): note("bad"); assert False
        """
    )

    project.run("-k", "good").assert_outcomes(passed=1, deselected=1)
    project.run().assert_outcomes(passed=1, failed=1)
    project.run("--lf").assert_outcomes(failed=1)

    assert {"good": 6, "bad": 2} == Counter(project.notes())
    project.run("-p", "no:cacheprovider").assert_outcomes(passed=1, failed=1)


@pytest.mark.slow
def test_a_debugger_is_entered_where_a_trial_fails(project: Project) -> None:
    """`--pdb` opens in the body, not in the verdict."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(3, never_fails=True)
        def test_it(trial):
            local = f"trial {trial.index}"
            assert trial.index < 1
        """
    )

    child = project.pytester.spawn_pytest("--pdb")
    child.expect("assert 1 < 1")
    child.expect("(Pdb)")
    child.sendline("p local")
    child.expect("'trial 1'")
    child.sendline("q")
    child.close()


@pytest.mark.slow
def test_hypothesis_is_free_to_look_for_examples_in_every_trial(project: Project) -> None:
    """A property is a body like any other."""
    project.write(
        """
        import pytest
        from hypothesis import given, settings, strategies as st

        @pytest.mark.trials(3, never_fails=True)
        @settings(max_examples=5, database=None)
        @given(st.integers())
        def test_it(n): assert n == n
        """
    )

    project.run("-p", "hypothesispytest").assert_outcomes(passed=1)


def test_the_trialwise_fixture_runs_contracts_of_the_session(project: Project) -> None:
    """Built, run and kept as part of the session: its folders, its budget, its summary."""
    project.write(
        """
        def test_verified(trialwise):
            contract = trialwise.Contract(
                "sums", lambda question: "555",
                [trialwise.Criterion("answers", trialwise.contains("555"), at_least=0.9)],
            )
            result = trialwise.verify(contract, inputs=["What is 15 * 37?"])
            assert result.passed

        def test_wrong(trialwise):
            contract = trialwise.Contract(
                "wrong", lambda question: "554",
                [trialwise.Criterion("answers", trialwise.contains("555"), at_least=0.9)],
            )
            assert trialwise.run(contract, inputs=[1], trials=50).decision == "FAIL"
            trialwise.verify(contract, inputs=[1], trials=50)
        """
    )

    result = project.run("--trialwise-seed=8", "--junitxml=out.xml")

    result.assert_outcomes(passed=1, failed=1)
    found = [(one.plan.contract, one.verdict.decision, one.plan.seed) for one in project.records()]
    assert [
        ("sums", Decision.PASS, 8),
        ("wrong", Decision.FAIL, 8),
        ("wrong", Decision.FAIL, 8),
    ] == found
    result.stdout.fnmatch_lines(
        [
            "E   FAIL: 0 of 10 trials passed, *",
            "10 of 10 failed trials, here trial 0: *",
            "PASS  100.0 % * sums answers",
            "3 verdicts: 1 PASS, 2 FAIL*",
        ]
    )
    assert 'name="trialwise.sums.decision" value="PASS"' in (project.path / "out.xml").read_text()


def test_the_trialwise_fixture_draws_on_the_sessions_budget(project: Project) -> None:
    """A contract takes what is left, and one that finds nothing is not run."""
    project.write(
        """
        import pytest

        def contract(trialwise, name):
            criterion = trialwise.Criterion("fine", lambda value: True, at_least=0.9)
            return trialwise.Contract(name, lambda given: 1, [criterion])

        def test_one(trialwise):
            trialwise.run(contract(trialwise, "one"), inputs=[1], trials=40, curtail=False)

        def test_two(trialwise):
            result = trialwise.run(contract(trialwise, "two"), inputs=[1], trials=40)
            assert result.decision == "INCONCLUSIVE"

        def test_three(trialwise):
            trialwise.run(contract(trialwise, "three"), inputs=[1], trials=40)
        """
    )

    result = project.run("--trialwise-budget-trials=50")

    result.assert_outcomes(passed=2, failed=1)
    assert [40, 10] == [len(one.trials) for one in project.records()]
    result.stdout.fnmatch_lines(["the session's budget is used up: nothing was run"])


# --- Plugins that write reports ---------------------------------------------------------------

_REPORTED = """
import pytest

@pytest.fixture
def tool(record_property):
    record_property("kind", "tool")
    yield 7

@pytest.fixture(scope="module")
def shared(): yield 2

@pytest.mark.trials(at_least=0.5, seed=1)
def test_good(tool, shared): print("said")

@pytest.mark.trials(at_least=0.9, seed=1)
def test_bad(tool): assert False, "no luck"

@pytest.mark.trials(at_least=0.5, seed=1, concurrency=3)
def test_side_by_side(tool, shared): pass

def test_plain(tool): pass
"""


def test_allure_sees_each_test_once(project: Project) -> None:
    """A result for each test with its verdict, and none for any trial or its fixtures."""
    pytest.importorskip("allure_pytest")
    project.write(_REPORTED)

    result = project.run_apart("-p", "allure_pytest", "--alluredir=al")

    result.assert_outcomes(passed=3, failed=1)
    found = [json.loads(one.read_text()) for one in (project.path / "al").glob("*-result.json")]
    assert {
        "test_good": "passed",
        "test_bad": "failed",
        "test_side_by_side": "passed",
        "test_plain": "passed",
    } == {one["name"]: one["status"] for one in found}
    assert 4 == len(found)
    (bad,) = (one for one in found if one["name"] == "test_bad")
    assert "FAIL: 0 of 4 trials passed" in bad["statusDetails"]["message"]
    fixtures = [
        before["name"]
        for one in (project.path / "al").glob("*-container.json")
        for before in json.loads(one.read_text()).get("befores", ())
    ]
    assert 1 == fixtures.count("shared")
    assert 1 == fixtures.count("tool")


@pytest.mark.slow
def test_a_json_report_has_each_test_once(project: Project) -> None:
    """With its three phases."""
    pytest.importorskip("pytest_jsonreport")
    project.write(_REPORTED)

    result = project.run_apart("-p", "metadata", "-p", "pytest_jsonreport", "--json-report")

    result.assert_outcomes(passed=3, failed=1)
    report = json.loads((project.path / ".report.json").read_text())
    assert {"passed": 3, "failed": 1, "total": 4, "collected": 4} == report["summary"]
    assert all({"setup", "call", "teardown"} <= set(one) for one in report["tests"])


def test_a_reporter_of_any_kind_sees_each_phase_of_a_test_once(project: Project) -> None:
    """Also one that nobody knows: it is told by what it listens to; a conftest sees trials."""
    project.write(_REPORTED)
    project.write(
        """
        from notes import note

        class Reporter:
            def pytest_runtest_logreport(self, report): note(f"report-{report.when}")
            def pytest_runtest_call(self, item): note(f"reporter-{item.name}")
            def pytest_fixture_setup(self, fixturedef): note(f"fixture-{fixturedef.argname}")

        def pytest_configure(config): config.pluginmanager.register(Reporter(), "reporter")
        def pytest_runtest_call(item): note(f"conftest-{item.name}")
        """,
        "conftest.py",
    )

    project.run()

    seen = Counter(project.notes())
    assert 4 == seen["report-setup"] == seen["report-call"] == seen["report-teardown"]
    assert 1 == seen["reporter-test_good"] == seen["reporter-test_bad"] == seen["fixture-tool"]
    assert 1 == seen["fixture-shared"]
    assert seen["conftest-test_bad"] > 1


def test_a_property_is_recorded_once_for_the_test(project: Project) -> None:
    """Not once for each trial."""
    project.write(_REPORTED)

    project.run("--junitxml=out.xml")

    text = (project.path / "out.xml").read_text()
    assert 4 == text.count('<property name="kind" value="tool"')
    assert "*" in (project.path / ".trialwise" / ".gitignore").read_text().splitlines()


def test_the_trialwise_fixture_compares_services_in_the_session(project: Project) -> None:
    """Kept where the session keeps its runs, on its budget, with a line of its summary each."""
    project.write(
        """
        import pytest

        @pytest.fixture
        def old(trialwise):
            return trialwise.Contract(
                "sums", lambda question: "554",
                [trialwise.Criterion("answers", trialwise.contains("555"), at_least=0.9)],
                sampling=["What is 15 * 37?"],
            )

        def test_better(trialwise, old):
            new = old.with_service(lambda question: "555")
            found = trialwise.verify_comparison(old, new, labels=["old", "new"])
            assert found.passed

        def test_worse(trialwise, old):
            new = old.with_service(lambda question: "555")
            assert trialwise.compare(new, old).decision == "FAIL"
            trialwise.verify_comparison(new, old, labels=["new", "old"])

        def test_alike(trialwise, old):
            trialwise.verify_comparison(old, old, max_trials=20)
        """
    )

    result = project.run(
        "--trialwise-seed=8", "--trialwise-inconclusive=skip", "--junitxml=out.xml"
    )

    result.assert_outcomes(passed=1, failed=1, skipped=1)
    result.stdout.fnmatch_lines(["*FAIL: old is worse*", "*FAIL  answers, old against new: *"])
    result.stdout.fnmatch_lines(["=* trialwise =*", "PASS  new is better*", "FAIL  *worse*"])
    assert {8} == {one.plan.seed for one in project.records()}
    properties = (project.path / "out.xml").read_text()
    assert 'name="trialwise.old / new.decision" value="PASS"' in properties
