"""Mistakes with the marker get the message that helps, before the first trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Project


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("0.9", "*first argument is the number of trials; did you mean at_least=0.9?*"),
        ("'90%'", "*did you mean at_least='90%'?*"),
        ("at_least=90", "*must lie strictly between 0 and 1, got 90; did you mean 0.9, or '90%'?*"),
        ("at_least=0.9, inputs=['a']", "*never uses them: take the fixture `trial`*"),
        ("at_least=0.9, tags=7", "*tags must be words, got 7*"),
        ("at_leats=0.9", "*did you mean 'at_least'?*"),
    ],
)
def test_a_mistake_is_an_error_of_collection_with_a_remedy(
    project: Project, marker: str, message: str
) -> None:
    """At the line of the test."""
    project.write(
        f"""
        import pytest

        @pytest.mark.trials({marker})
        def test_it(): pass
        """
    )

    result = project.run()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"test_it.py:4: test_it: {message}"])


def test_inputs_that_a_fixture_or_the_request_uses_are_used(project: Project) -> None:
    """The test itself need not take the trial."""
    project.write(
        """
        import pytest

        @pytest.fixture
        def question(trial): return trial.input

        @pytest.mark.trials(2, never_fails=True, inputs=["a"])
        def test_fixture(question): assert question == "a"

        @pytest.mark.trials(2, never_fails=True, inputs=["a"])
        def test_request(request): assert request.getfixturevalue("trial").input == "a"
        """
    )

    project.run().assert_outcomes(passed=2)


def test_the_marker_of_another_plugin_is_left_alone(project: Project) -> None:
    """It is ours only with an argument of ours, or with a misspelt one."""
    project.write(
        """
        import pytest
        from notes import note

        @pytest.mark.trials(20, min_success=0.9)
        def test_theirs(): note("once")

        @pytest.mark.trials(3, never_fails=True)
        def test_ours(): note("trial")
        """
    )

    project.run().assert_outcomes(passed=2)

    assert ["once", "trial", "trial", "trial"] == project.notes()


def test_a_fixture_that_does_not_exist_is_an_error_of_the_setup(project: Project) -> None:
    """As for any test, once, and no trial is run."""
    project.write(
        """
        import pytest
        from notes import note

        @pytest.fixture
        def tool(): note("tool")

        @pytest.mark.trials(at_least=0.9)
        def test_it(tool, nothing): note("trial")
        """
    )

    result = project.run()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*fixture 'nothing' not found", "*available fixtures:*"])
    assert [] == project.notes()


def test_an_expected_failure_of_unittest_is_refused(project: Project) -> None:
    """pytest's own marker says the same of the verdict."""
    project.write(
        """
        import pytest, unittest

        class TestIt(unittest.TestCase):
            @pytest.mark.trials(at_least=0.9)
            @unittest.expectedFailure
            def test_it(self): assert False
        """
    )

    result = project.run()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*unittest.expectedFailure*use @pytest.mark.xfail*"])


def test_hypothesis_on_a_method_passes_trial_after_trial(project: Project) -> None:
    """It takes an instance of the class for the test: all trials have one."""
    pytest.importorskip("hypothesis")
    project.write(
        """
        import pytest
        from hypothesis import given, settings, strategies as st

        class TestIt:
            @pytest.mark.trials(5, never_fails=True)
            @settings(max_examples=3, database=None)
            @given(st.integers())
            def test_it(self, number): assert number == number
        """
    )

    project.run("-p", "hypothesispytest").assert_outcomes(passed=1)


def test_tags_select_tests_by_k(project: Project) -> None:
    """As they select contracts of a suite."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(2, never_fails=True, tags=["nightly", "slow-one"])
        def test_it(): pass

        @pytest.mark.trials(2, never_fails=True, tags="other")
        def test_other(): pass
        """
    )

    project.run("-k", "nightly").assert_outcomes(passed=1, deselected=1)


def test_a_gate_has_a_line_and_gives_the_reason(project: Project) -> None:
    """A test that fails by its gate alone does not read PASS and "see below"."""
    project.write(
        """
        import pytest

        GATE = {"target": "reliability.passhat_k", "matcher": {"schema": {"minimum": 90}}}

        @pytest.mark.trials(8, at_least=0.1, curtail=False, reliability={"expect": [GATE]})
        def test_it(trial): assert trial.index % 3
        """
    )

    result = project.run()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E   FAIL: reliability: passhat_k 0, at least 90*",
            "PASS *62.5 %*test_it.py::test_it",
            "FAIL *test_it.py::test_it reliability",
            "*passhat_k 0, at least 90*",
        ]
    )
    assert "see below" not in result.stdout.str()
