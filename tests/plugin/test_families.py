"""Tests that are corrected together, by the keys of the marker."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.plugin.conftest import Project


def test_the_marked_tests_of_a_session_are_one_family(project: Project) -> None:
    project.write(
        """
        import pytest

        @pytest.mark.trials(at_least=0.8, correction="bonferroni")
        def test_one():
            pass

        @pytest.mark.trials(at_least=0.8, correction="bonferroni")
        def test_other():
            pass

        @pytest.mark.trials(at_least=0.8)
        def test_alone():
            pass
        """
    )
    project.run().assert_outcomes(passed=3)
    plans = {one.plan.contract.rpartition("::")[2]: one.plan for one in project.records()}
    assert plans["test_one"].family_size == plans["test_other"].family_size == 2
    assert plans["test_one"].criteria[0].alpha == 0.025
    assert plans["test_alone"].criteria[0].alpha == 0.05
