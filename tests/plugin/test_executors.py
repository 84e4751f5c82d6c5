"""Executors in pytest: for contracts that a test runs, and for marked tests without fixtures."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from tests.plugin.conftest import Project

from trialwise.model.evidence import StopReason


@pytest.mark.slow
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


def test_a_marked_test_runs_in_worker_processes(project: Project) -> None:
    """The body finds its trial there; the verdict is that of a run in this process."""
    project.write(
        """
        import os
        import pytest

        @pytest.mark.trials(
            40, inputs=[1, 2], executor="EXECUTOR", seed=3, curtail=False,
            even={"at_least": 0.2}, never={"at_least": 0.5},
        )
        def test_it(trial):
            trial.record(reply=str(os.getpid()), cost=0.5, tokens=7)
            trial.check("even", (trial.input + trial.seed) % 2 == 0)
            trial.check("never", False, "as it should be")
            assert trial.seed % 5, "a fifth"
        """.replace("EXECUTOR", "processes:2")
    )
    source = (project.path / "test_it.py").read_text()
    result = project.run_apart()
    (there,) = project.records()
    (project.path / "test_it.py").write_text(source.replace("processes:2", "local"))
    project.run_apart()
    here = project.records()[-1]

    result.assert_outcomes(failed=1)
    assert {one.reply for one in here.trials} & {one.reply for one in there.trials} == set()
    assert len({one.reply for one in there.trials}) == 2
    assert [one.outcomes for one in there.trials] == [one.outcomes for one in here.trials]
    assert there.verdict.decision is here.verdict.decision
    assert there.verdict.spending.usd == here.verdict.spending.usd == 20
    assert there.verdict.spending.tokens == 280


@pytest.mark.slow
def test_a_failing_body_is_shown_with_its_traceback(project: Project) -> None:
    """pytest's own words for the assertion come back, and the place."""
    project.write(
        """
        import pytest

        def compute(n): return n * 2

        @pytest.mark.trials(20, at_least=0.8, executor={"processes": 2}, curtail=False)
        def test_it(trial):
            if trial.index % 2: raise KeyError("odd")
            assert compute(2) == 5
        """
    )

    result = project.run_apart()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*in test_it*", "*assert compute(2) == 5*", "*AssertionError: assert 4 == 5*"]
    )
    (record,) = project.records()
    explanations = {one.outcomes[0].result.explanation for one in record.trials}
    assert explanations == {"assert 4 == 5", "KeyError: 'odd'"}
    assert {one.outcomes[0].postcondition for one in record.trials} == {
        "test_it.py:8",
        "test_it.py:9",
    }


@pytest.mark.slow
def test_parameters_methods_and_async_bodies_run_in_workers(project: Project) -> None:
    """They need nothing of this process."""
    project.write(
        """
        import asyncio
        import os
        import pytest

        HERE = os.getpid()

        @pytest.mark.parametrize("number", [2, 3])
        @pytest.mark.trials(8, never_fails=True, executor="processes:2", concurrency=4)
        async def test_later(number, trial):
            await asyncio.sleep(0.01)
            assert number in (2, 3) and os.getpid() != HERE

        class TestIt:
            value = 5

            @pytest.mark.trials(8, never_fails=True, executor="processes:1")
            def test_method(self, trial):
                assert os.getpid() != HERE
                self.value += 1  # of this trial's own instance
                assert self.value == 6
        """
    )

    project.run_apart().assert_outcomes(passed=3)


def test_a_fixture_of_this_process_is_refused_by_name(project: Project) -> None:
    """One sentence for each test, with the way out, and no trial."""
    project.write(
        """
        import pytest

        @pytest.fixture
        def connection(): return 5

        @pytest.mark.trials(8, never_fails=True, executor="processes")
        def test_it(connection, trial): pass
        """
    )

    result = project.run()

    result.assert_outcomes(errors=1)
    output = result.stdout.str()
    assert (
        "executor='processes' runs the body in other processes, and the fixture 'connection' "
        "belongs to this one" in output
    )
    assert "trialwise.run(contract, executor='processes')" in output


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("def test_it(tmp_path): pass", "'tmp_path'"),
        ("def test_it(request): pass", "'request'"),
        ("def setup_function(): pass\ndef test_it(): pass", "'setup_function'"),
        (
            "@pytest.fixture(autouse=True)\ndef database(): yield\ndef test_it(trial): pass",
            "'database'",
        ),
    ],
)
def test_other_fixtures_are_refused_as_well(project: Project, body: str, named: str) -> None:
    """Also those of pytest itself, and functions that it calls before each test."""
    project.write(
        "import pytest\n"
        "pytestmark = pytest.mark.trials(8, never_fails=True, executor='processes')\n" + body
    )

    result = project.run()

    result.assert_outcomes(errors=1)
    assert f"the fixture {named} belongs to this one" in result.stdout.str()


@pytest.mark.slow
def test_a_test_that_skips_itself_in_a_worker_is_skipped(project: Project) -> None:
    """As it is in this process: by its first trial."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(8, never_fails=True, executor="processes:1")
        def test_it(): pytest.skip("not today")
        """
    )

    result = project.run_apart("-rs")

    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*not today*"])


@pytest.mark.slow
def test_an_unknown_criterion_in_a_worker_ends_the_test(project: Project) -> None:
    """No setting turns that into a pass."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(8, right={"at_least": 0.5}, executor="processes:1")
        def test_it(trial): trial.check("rihgt", True)
        """
    )

    result = project.run_apart("--trialwise-inconclusive=pass")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the marker has no such criterion*"])


@pytest.mark.slow
def test_the_budget_of_the_session_holds_in_workers(project: Project) -> None:
    """A trial is charged before it starts, whichever process runs it."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(30, at_least=0.5, executor="processes:2", curtail=False)
        def test_it(): pass
        """
    )

    project.run_apart("--trialwise-budget-trials=11")

    (record,) = project.records()
    assert len(record.trials) == 11


@pytest.mark.slow
def test_ctrl_c_keeps_what_workers_have_done(project: Project) -> None:
    """The session ends as pytest says, with a record, and is resumed."""
    project.write(
        """
        import time
        import pytest
        from notes import note

        @pytest.mark.trials(30, at_least=0.5, executor="processes:2", curtail=False)
        def test_it(trial):
            note(trial.index)
            time.sleep(0.02 if trial.index < 12 else 0.15)
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest"], cwd=project.path, stdout=subprocess.PIPE, text=True
    )
    ends = time.monotonic() + 60
    while len(project.notes()) < 13 and time.monotonic() < ends:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)

    assert pytest.ExitCode.INTERRUPTED == process.returncode, output
    (record,) = project.records()
    assert record.verdict.stop is StopReason.INTERRUPTED
    assert 0 < len(record.trials) < 30
    project.run_apart("--trialwise-resume").assert_outcomes(passed=1)
    (record,) = project.records()
    assert [one.index for one in record.trials] == list(range(30))
