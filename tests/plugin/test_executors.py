"""Executors in pytest: for contracts that a test runs, and not for marked tests."""

from __future__ import annotations

from tests.plugin.conftest import Project


def test_a_test_runs_a_contract_in_worker_processes(project: Project) -> None:
    """The fixture `trialwise` takes the executor like every other setting."""
    project.write(
        """
        import os
        import trialwise as tw

        def answer(question): return str(os.getpid())

        def test_it(trialwise):
            criterion = tw.Criterion("elsewhere", tw.matches("[0-9]+"), at_least=0.5)
            contract = tw.Contract("c", answer, [criterion])
            result = trialwise.verify(contract, inputs=["a"], trials=12, executor="processes:2")
            assert str(os.getpid()) not in {one.reply for one in result.trials}
        """
    )

    project.run_apart().assert_outcomes(passed=1)


def test_a_marked_test_is_refused_with_the_way_out(project: Project) -> None:
    """Its fixtures belong to the process of pytest."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(12, never_fails=True, executor="processes")
        def test_it(): pass
        """
    )

    result = project.run()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*executor='processes' cannot run a marked test*"])
