"""A body runs once per trial, with fixtures of its own; what it raises is what the trial is."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from trialwise.model.evidence import StopReason
from trialwise.model.trial import ErrorClass
from trialwise.model.verdict import Decision

if TYPE_CHECKING:
    from tests.plugin.conftest import Project


def test_function_scoped_fixtures_are_fresh_and_wider_ones_shared(project: Project) -> None:
    """Thirty trials set up thirty functions' worth of fixtures, and one of every wider scope."""
    project.write(
        """
        import pytest
        from notes import note

        @pytest.fixture(scope="session")
        def server():
            note("server+"); yield "server"; note("server-")

        @pytest.fixture(scope="module")
        def database(server):
            note("database+"); yield []; note("database-")

        @pytest.fixture(scope="class")
        def schema(database):
            note("schema+"); yield; note("schema-")

        @pytest.fixture
        def connection(database):
            note("connection+"); yield []; note("connection-")

        @pytest.fixture(autouse=True)
        def clean():
            note("clean+"); yield; note("clean-")

        class TestAgent:
            @pytest.mark.trials(30, never_fails=True)
            def test_it(self, connection, schema, tmp_path, monkeypatch, capsys, caplog):
                assert connection == []
                connection.append("used")
                assert not list(tmp_path.iterdir())
                (tmp_path / "file").touch()
                monkeypatch.setenv("SEEN", "yes")
                print("hello")
                assert capsys.readouterr().out == "hello\\n"

        def test_afterwards(database):
            import os
            assert "SEEN" not in os.environ
        """
    )

    result = project.run()

    result.assert_outcomes(passed=2)
    wide = {f"{name}{sign}": 1 for name in ("server", "database", "schema") for sign in "+-"}
    own = {f"connection{sign}": 30 for sign in "+-"} | {f"clean{sign}": 31 for sign in "+-"}
    assert wide | own == Counter(project.notes())


def test_a_trial_ends_before_the_next_one_begins(project: Project) -> None:
    """Trials one by one: each is torn down before the next is set up."""
    project.write(
        """
        import pytest
        from notes import note

        @pytest.fixture
        def thing():
            note("+"); yield; note("-")

        @pytest.mark.trials(5, never_fails=True)
        def test_it(thing):
            note("body")
        """
    )

    project.run().assert_outcomes(passed=1)

    assert ["+", "body", "-"] * 5 == project.notes()


def test_methods_have_an_instance_of_their_own(project: Project) -> None:
    """Every trial of a method has a new instance, with xunit's setup and teardown around it."""
    project.write(
        """
        import pytest
        from notes import note

        @pytest.mark.trials(8, never_fails=True)
        class TestAgent:
            @classmethod
            def setup_class(cls): note("class+")
            @classmethod
            def teardown_class(cls): note("class-")
            def setup_method(self): self.calls = []; note("method+")
            def teardown_method(self): note("method-")

            def test_it(self):
                assert self.calls == []
                assert not hasattr(self, "seen")
                self.seen = True
                self.calls.append(1)
        """
    )

    project.run().assert_outcomes(passed=1)

    expected = {"class+": 1, "class-": 1, "method+": 8, "method-": 8}
    assert expected == Counter(project.notes())


def test_unittest_classes_are_run_as_unittest_runs_them(project: Project) -> None:
    """A TestCase is set up for each trial; its assertions, cleanups and coroutines are its own."""
    project.write(
        """
        import unittest
        import pytest
        from notes import note

        class Sync(unittest.TestCase):
            @classmethod
            def setUpClass(cls): note("class+")
            @classmethod
            def tearDownClass(cls): note("class-")
            def setUp(self): note("case+"); self.addCleanup(note, "cleanup")
            def tearDown(self): note("case-")

            @pytest.fixture(autouse=True)
            def _take_trial(self, trial): self.trial = trial

            @pytest.mark.trials(40, at_least=0.5)
            def test_sync(self):
                self.assertNotEqual(self.trial.index % 4, 3)

        class Async(unittest.IsolatedAsyncioTestCase):
            async def asyncSetUp(self): note("async+")

            @pytest.mark.trials(6, never_fails=True)
            async def test_async(self):
                self.assertTrue(True)
        """
    )

    project.run().assert_outcomes(passed=2)

    asynchronous, sync = sorted(project.records(), key=lambda one: one.plan.contract)
    assert 6 == asynchronous.verdict.findings[0].tally.trials
    trials = len(sync.trials)
    assert [trial.index % 4 != 3 for trial in sync.trials] == [one.passed for one in sync.trials]
    assert "1 == 1" not in sync.trials[3].outcomes[0].result.explanation
    assert "3 == 3" in sync.trials[3].outcomes[0].result.explanation
    expected = {"class+": 1, "class-": 1, "case+": trials, "case-": trials, "cleanup": trials}
    assert expected | {"async+": 6} == Counter(project.notes())


def test_parametrised_cases_have_one_verdict_each(project: Project) -> None:
    """Each case is a contract of its own, known by its id."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(20, never_fails=True)
        @pytest.mark.parametrize("city", ["Paris", pytest.param("Rome", id="eternal")])
        @pytest.mark.parametrize("agent", [1, 2], indirect=True)
        def test_it(city, agent):
            assert (city, agent) != ("Rome", 20)

        @pytest.fixture
        def agent(request):
            return request.param * 10
        """
    )

    result = project.run()

    result.assert_outcomes(passed=3, failed=1)
    found = {one.plan.contract: one.verdict.decision for one in project.records()}
    assert {
        "test_it.py::test_it[1-Paris]": Decision.PASS,
        "test_it.py::test_it[1-eternal]": Decision.PASS,
        "test_it.py::test_it[2-Paris]": Decision.PASS,
        "test_it.py::test_it[2-eternal]": Decision.FAIL,
    } == found


def test_markers_of_modules_and_parameters(project: Project) -> None:
    """The nearest marker counts: a case's own before the test's, the test's before the module's."""
    project.write(
        """
        import pytest

        pytestmark = pytest.mark.trials(3, never_fails=True)

        def test_module(): pass

        @pytest.mark.trials(4, never_fails=True)
        def test_own(): pass

        @pytest.mark.trials(5, never_fails=True)
        @pytest.mark.parametrize(
            "case", ["a", pytest.param("b", marks=pytest.mark.trials(6, never_fails=True))]
        )
        def test_cases(case): pass
        """
    )

    project.run().assert_outcomes(passed=4)

    found = {one.plan.contract.split("::")[1]: len(one.trials) for one in project.records()}
    assert {"test_module": 3, "test_own": 4, "test_cases[a]": 5, "test_cases[b]": 6} == found


_ENDINGS = {
    "pass": (None, "none", ""),
    "assert 1 + 1 == 3": ("condition", "none", "assert (1 + 1) == 3"),
    "pytest.fail('bad')": ("condition", "none", "bad"),
    "pytest.xfail('known')": ("condition", "none", "xfail: known"),
    "pytest.skip('no network')": ("no-value", "none", "skipped: no network"),
    "{}['key']": ("no-value", "none", "KeyError: 'key'"),
    "raise SystemExit(3)": ("no-value", "none", "SystemExit: 3"),
    "raise TimeoutError('slow')": ("no-value", "timeout", "TimeoutError: slow"),
    "raise ConnectionResetError('gone')": (
        "no-value",
        "infrastructure",
        "ConnectionResetError: gone",
    ),
    "raise trialwise.ServiceError('429', trialwise.ErrorClass.INFRASTRUCTURE)": (
        "no-value",
        "infrastructure",
        "ServiceError: 429",
    ),
    "raise ExceptionGroup('several', [AssertionError('inner')])": ("condition", "none", "inner"),
}


@pytest.mark.parametrize("ending", _ENDINGS, ids=lambda ending: ending.partition("(")[0])
def test_what_a_body_raises_is_what_the_trial_is(project: Project, ending: str) -> None:
    """Each ending becomes one outcome, after a first trial that passes."""
    record = project.judge(
        f"""
        import pytest, trialwise

        @pytest.mark.trials(2, never_fails=True)
        def test_it(trial):
            if trial.index:
                {ending}
        """
    )

    trial = record.trials[1]
    outcome = trial.outcomes[0]
    result = outcome.result
    assert _ENDINGS[ending] == (result.reason, trial.error_class, result.explanation)
    assert (None if outcome.passed else "test_it.py:7") == outcome.postcondition


@pytest.mark.slow
def test_an_interrupt_in_a_body_stops_everything(project: Project) -> None:
    """A `KeyboardInterrupt` is nobody's failure; what is complete is kept."""
    project.write(
        """
        import pytest
        from notes import note

        @pytest.fixture
        def own():
            note("+"); yield; note("-")

        @pytest.mark.trials(10, never_fails=True)
        def test_it(trial, own):
            if trial.index == 3:
                raise KeyboardInterrupt

        def test_after(): note("after")
        """
    )

    result = project.run_apart()

    assert pytest.ExitCode.INTERRUPTED == result.ret
    (record,) = project.records()
    assert (3, StopReason.INTERRUPTED) == (len(record.trials), record.verdict.stop)
    assert {"+": 4, "-": 4} == Counter(project.notes())
    result.stdout.fnmatch_lines(["INCONCLUSIVE *test_it.py::test_it"])


def test_a_first_trial_that_is_skipped_skips_the_test(project: Project) -> None:
    """Nothing was counted yet: the test cannot be run here, and leaves no run behind."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(5, never_fails=True)
        def test_body(): pytest.importorskip("no_such_module")

        @pytest.fixture
        def gpu(): pytest.skip("no GPU")

        @pytest.mark.trials(5, never_fails=True)
        def test_fixture(gpu): pass

        @pytest.mark.skipif(True, reason="not today")
        @pytest.mark.trials(5, never_fails=True)
        def test_mark(): raise SystemExit

        @pytest.fixture(scope="module")
        def licence(): pytest.skip("no licence")

        @pytest.mark.trials(5, never_fails=True)
        def test_shared(licence): pass
        """
    )

    result = project.run("-rs")

    result.assert_outcomes(skipped=4)
    result.stdout.fnmatch_lines_random(
        ["*no_such_module*", "*no GPU*", "*not today*", "*no licence*"]
    )
    assert [] == [*(project.path / ".trialwise" / "runs").iterdir()]


def test_a_later_skip_counts_as_not_passed(project: Project) -> None:
    """A body must not choose its own trials: skipped ones stay in the rate."""
    record = project.judge(
        """
        import pytest

        @pytest.mark.trials(100, at_least=0.9)
        def test_it(trial):
            if trial.index % 5 == 4:
                pytest.skip("rate limit")
        """
    )

    finding = record.verdict.findings[0]
    assert Decision.FAIL is finding.decision
    skipped = sum(trial.index % 5 == 4 for trial in record.trials)
    assert finding.tally.failed == skipped > 0
    # Under either analysis: what a body skips is not excused.
    assert finding.intent_to_treat == finding.per_protocol
    assert finding.per_protocol is not None
    assert finding.per_protocol.failed == skipped


def test_what_a_fixture_skips_later_is_not_measured(project: Project) -> None:
    """A fixture ends before the body begins, so that it cannot know the reply."""
    record = project.judge(
        """
        import pytest

        @pytest.fixture
        def quota(trial):
            if trial.index % 5 == 4:
                pytest.skip("rate limit")

        @pytest.mark.trials(40, at_least=0.9)
        def test_it(quota): pass
        """
    )

    finding = record.verdict.findings[0]
    skipped = [trial for trial in record.trials if trial.index % 5 == 4]
    assert {ErrorClass.PRE_VALIDATION} == {trial.error_class for trial in skipped}
    assert Decision.PASS is finding.decision
    assert 0 == finding.tally.failed
    assert finding.intent_to_treat is not None
    assert finding.intent_to_treat.failed == len(skipped)


def test_mostly_broken_trials_end_the_test_without_a_decision(project: Project) -> None:
    """A fixture that fails in most trials says nothing of the service: INCONCLUSIVE."""
    project.write(
        """
        import pytest

        @pytest.fixture
        def flaky(trial):
            if trial.index % 4:
                raise RuntimeError("no connection")

        @pytest.mark.trials(60, at_least=0.9, curtail=False)
        def test_it(flaky): pass
        """
    )

    result = project.run()

    (record,) = project.records()
    assert StopReason.ERROR_RATE is record.verdict.stop
    assert Decision.INCONCLUSIVE is record.verdict.decision
    assert record.trials[1].error_class is ErrorClass.PRE_VALIDATION
    result.stdout.fnmatch_lines(
        ["E*INCONCLUSIVE: *", "*here trial 1: a fixture failed: RuntimeError: no connection"]
    )


def test_a_shared_fixture_that_fails_is_an_error_of_the_test(project: Project) -> None:
    """Fifty trials could only say it fifty times: no trial is run."""
    project.write(
        """
        import pytest
        from notes import note

        @pytest.fixture(scope="module")
        def database(): raise RuntimeError("no database")

        @pytest.mark.trials(50, never_fails=True)
        def test_it(database): note("body")
        """
    )

    result = project.run()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ERROR at setup of test_it*", "E*RuntimeError: no database"])
    assert [] == project.notes()


def test_a_teardown_that_fails_is_reported_once_beside_the_verdict(project: Project) -> None:
    """The body passed, so the trial did; the error of its fixture is an error of the test."""
    project.write(
        """
        import pytest

        @pytest.fixture
        def leaky(trial):
            yield
            if trial.index in (2, 5, 7):
                raise RuntimeError("still open")

        @pytest.mark.trials(10, never_fails=True)
        def test_it(leaky): pass
        """
    )

    result = project.run()

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["*ERROR at teardown of test_it*", "*RuntimeError: still open", "*2 other trials"]
    )


def test_failed_subtests_fail_their_trial_and_nothing_else(project: Project) -> None:
    """A subtest is part of a trial: it is neither reported by itself nor fails a passing test."""
    pytest.importorskip("_pytest.subtests", reason="pytest 9 has the fixture")
    project.write(
        """
        import unittest
        import pytest

        @pytest.mark.trials(60, at_least=0.8)
        def test_it(subtests, trial):
            for part in range(3):
                with subtests.test("part", part=part):
                    assert (trial.index, part) != (3, 1)

        class Old(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def _take_trial(self, trial): self.trial = trial

            @pytest.mark.trials(60, at_least=0.8)
            def test_old(self):
                with self.subTest(part=1):
                    self.assertNotEqual(self.trial.index, 4)
        """
    )

    result = project.run()

    result.assert_outcomes(passed=2)
    new, old = project.records()
    assert [3] == [trial.index for trial in new.trials if not trial.passed]
    assert [4] == [trial.index for trial in old.trials if not trial.passed]
    assert "assert (3, 1) != (3, 1)" in new.trials[3].outcomes[0].result.explanation


def test_what_a_body_sees_of_itself_is_the_test(project: Project) -> None:
    """Node id, marks, properties and the environment are as for any test."""
    project.write(
        """
        import os
        import pytest

        @pytest.mark.other
        @pytest.mark.trials(3, never_fails=True)
        def test_it(request, record_property, trial):
            assert request.node.nodeid == "test_it.py::test_it"
            assert request.node.name == "test_it"
            assert request.node.get_closest_marker("other")
            assert request.getfixturevalue("late") == 7
            assert os.environ["PYTEST_CURRENT_TEST"] == "test_it.py::test_it (call)"
            record_property("index", trial.index)

        @pytest.fixture
        def late(): return 7
        """
    )

    result = project.run("--junitxml=out.xml", "-W", "ignore::pytest.PytestUnknownMarkWarning")

    result.assert_outcomes(passed=1)
    text = (project.path / "out.xml").read_text()
    assert all(f'<property name="index" value="{index}"' in text for index in range(3))


def test_tests_without_the_marker_are_untouched(project: Project) -> None:
    """Beside a marked test, plain ones run once, as ever."""
    project.write(
        """
        import pytest
        from notes import note

        def test_plain(): note("plain")

        @pytest.mark.trials(4, never_fails=True)
        def test_marked(): note("marked")

        @pytest.mark.parametrize("n", [1, 2])
        def test_cases(n): note("case")
        """
    )

    project.run().assert_outcomes(passed=4)

    assert {"plain": 1, "marked": 4, "case": 2} == Counter(project.notes())


@pytest.mark.parametrize("executor", ["local", "processes:1"])
def test_a_mistake_in_the_code_of_a_test_is_no_verdict(project: Project, executor: str) -> None:
    """A name that does not exist ends the test at its first trial, whatever the service says."""
    project.write(
        f"""
        import pytest

        @pytest.mark.trials(20, at_least=0.5, executor={executor!r})
        def test_it(trial):
            assert jsn.loads("1") == 1
        """
    )

    result = project.run_apart("--trialwise-inconclusive=pass")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*name 'jsn' is not defined*"])
    result.stdout.no_fnmatch_line("*FAIL *at least*")
    assert not [*project.path.rglob("record.json")]


def test_a_service_that_raises_such_an_error_fails_its_trials(project: Project) -> None:
    """In another file it is the service's own failure, as in a suite."""
    (project.path / "service.py").write_text("def ask():\n    return missing\n")
    project.write(
        """
        import pytest, service

        @pytest.mark.trials(20, at_least=0.5)
        def test_it(trial):
            assert service.ask()
        """
    )

    project.run_apart().assert_outcomes(failed=1)

    assert [*project.path.rglob("record.json")]
