"""The `trial` fixture: index, input, seed; several criteria in one body; what a trial took."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from trialwise.engine.criterion_progress import issue_places, trial_seeds
from trialwise.model.evidence import StopReason
from trialwise.model.reply import Usage
from trialwise.model.trial import FailReason
from trialwise.model.verdict import Decision

if TYPE_CHECKING:
    from tests.plugin.conftest import Project


def test_index_input_and_seed_are_the_engines(project: Project) -> None:
    """A trial is given what the engine would give it: its order and its seeds, from the plan."""
    record = project.judge(
        """
        import pytest
        from notes import note

        @pytest.mark.trials(30, never_fails=True, inputs=["a", "b", "c"], seed=11)
        def test_it(trial):
            note(f"{trial.index}/{trial.input}/{trial.seed}")
        """
    )

    (experiment,) = record.plan.experiments
    order = issue_places(experiment, seed=11, each_input=False)
    seeds = trial_seeds(11, experiment.name)
    expected = [f"{index}/{'abc'[place]}/{seeds(index)}" for index, place in enumerate(order)]
    assert expected == project.notes()
    assert {"a": 10, "b": 10, "c": 10} == Counter(note.split("/")[1] for note in project.notes())


def test_an_input_that_is_changed_is_the_trials_own(project: Project) -> None:
    """One trial's change of a list or dict does not reach the next."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(6, never_fails=True, inputs=[{"messages": []}])
        def test_it(trial):
            assert trial.input == {"messages": []}
            trial.input["messages"].append("hello")
        """
    )

    project.run().assert_outcomes(passed=1)


def test_every_criterion_has_its_own_threshold(project: Project) -> None:
    """Three criteria of one body are counted and judged apart; a check raises nothing."""
    record = project.judge(
        """
        import pytest

        @pytest.mark.trials(
            100, polite={"at_least": 0.8}, criteria={"in-english": {"at_least": 0.9}},
            short={"never_fails": True}, confidence=0.9, keep_going=True,
        )
        def test_it(trial):
            polite = trial.check("polite", trial.index % 10 != 3, "no please")
            assert polite is (trial.index % 10 != 3)
            trial.check("in-english", trial.index % 10 not in (1, 2))
            trial.check("short", "some text")
        """
    )

    findings = {one.criterion: one for one in record.verdict.findings}
    assert {"in-english", "polite", "short"} == set(findings)
    assert Decision.PASS is findings["polite"].decision
    assert Decision.FAIL is findings["in-english"].decision
    assert Decision.PASS is findings["short"].decision
    assert [0.1, 0.1] == [round(findings[name].alpha or 0, 9) for name in ("polite", "in-english")]
    failed = record.trials[3].outcome("polite")
    assert ("no please", "test_it.py:9") == (failed.result.explanation, failed.postcondition)
    assert "in-english does not hold" == record.trials[1].outcome("in-english").result.explanation


def test_a_criterion_is_never_dropped(project: Project) -> None:
    """What was not checked did not pass; an assertion fails what was not checked before it."""
    record = project.judge(
        """
        import pytest

        @pytest.mark.trials(3, at_least=0.5, intent="smoke", curtail=False, early={"at_least": 0.5},
                            late={"at_least": 0.5})
        def test_it(trial):
            trial.check("early", True)
            if trial.index == 0:
                return
            assert trial.index == 1, "broken"
            trial.check("late", True)
            trial.check("late", False)
            trial.check("late", True)
        """
    )

    def found(index: int) -> dict[str, tuple[bool, FailReason | None, str]]:
        return {
            one.criterion: (one.passed, one.result.reason, one.result.explanation)
            for one in record.trials[index].outcomes
        }

    fine = (True, None, "")
    assert {
        "passes": fine,
        "early": fine,
        "late": (False, FailReason.NO_VALUE, "not checked in this trial"),
    } == found(0)
    assert {
        "passes": fine,
        "early": fine,
        "late": (False, FailReason.CONDITION, "late does not hold"),
    } == found(1)
    broken = (False, FailReason.CONDITION, "broken")
    told = {name: (passed, reason, said[:6]) for name, (passed, reason, said) in found(2).items()}
    assert {"passes": broken, "early": fine, "late": broken} == told


def test_what_is_expected_of_an_input_is_at_hand(project: Project) -> None:
    """Beside the input it belongs to, each trial's own; None where the input does not tell."""
    record = project.judge(
        """
        import pytest
        from trialwise import Input

        ASKED = [Input(id="sum", value="15 * 37", expected=["555"]), "Capital of Australia?"]

        @pytest.mark.trials(20, never_fails=True, inputs=ASKED)
        def test_it(trial):
            assert trial.expected == (["555"] if trial.input == "15 * 37" else None)
            if trial.expected:
                trial.expected.append("meddled with")
        """
    )

    assert {"sum", "2"} == {trial.input_id for trial in record.trials}
    assert all(trial.passed for trial in record.trials)


def test_without_a_threshold_of_its_own_a_body_fails_every_criterion(project: Project) -> None:
    """No assertion is lost because a check held before it."""
    record = project.judge(
        """
        import pytest

        @pytest.mark.trials(2, polite={"never_fails": True})
        def test_it(trial):
            trial.check("polite", True)
            assert trial.index == 0
        """
    )

    assert [True, False] == [trial.passed for trial in record.trials]


def test_an_unknown_criterion_ends_the_test(project: Project) -> None:
    """A misspelt name would be a criterion that is never counted: nothing goes on."""
    project.write(
        """
        import pytest
        from notes import note

        @pytest.mark.trials(20, grounded={"at_least": 0.8})
        def test_it(trial):
            note("body")
            trial.check("grunded", True)

        @pytest.mark.trials(20, at_least=0.8)
        def test_none(trial):
            trial.check("polite", True)
        """
    )

    result = project.run()

    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            '>*trial.check("grunded", True)',
            "E*the marker has no such criterion; did you mean 'grounded'?",
            "E*the marker has no such criterion; it names no criterion",
        ]
    )
    assert ["body"] == project.notes()


def test_what_a_trial_took_is_recorded(project: Project) -> None:
    """Tokens, money, latency and the reply stand in the record; several calls add up."""
    record = project.judge(
        """
        import pytest

        @pytest.mark.trials(4, never_fails=True)
        def test_it(trial):
            trial.record(tokens=30, cost=0.25, latency_s=1.5)
            trial.record(input_tokens=5, output_tokens=2, cost=0.5, latency_s=0.25, reply="hello")
        """
    )

    trial = record.trials[0]
    assert Usage(input_tokens=5, output_tokens=32) == trial.usage
    assert (0.75, 1.75, "hello") == (trial.cost_usd, trial.latency_s, trial.reply)
    assert (3.0, 4 * 37) == (record.verdict.spending.usd, record.verdict.spending.tokens)


SESSION = """
        import pytest

        CALLS = [{"id": str(n), "function": {"name": "find", "arguments": "{}"}} for n in range(4)]
        SESSION = [
            {"role": "user", "content": "Find it."},
            {"role": "assistant", "content": "Let me see.", "tool_calls": CALLS,
             "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
            *({"role": "tool", "tool_call_id": str(n), "content": "ok"} for n in range(4)),
            {"role": "assistant", "content": "Found it.",
             "usage": {"prompt_tokens": 9, "completion_tokens": 1}},
        ]

        @pytest.mark.trials(6, never_fails=True, stability={})
        def test_it(trial):
            trial.record(trace=TRACE)
"""


def test_the_session_of_an_agent_is_recorded(project: Project) -> None:
    """Its calls, messages, tokens and answer; a gate of the marker looks at it."""
    record = project.judge(SESSION.replace("TRACE", "SESSION"))
    trial = record.trials[0]
    assert Usage(input_tokens=14, output_tokens=3) == trial.usage
    assert trial.reply == "Found it."
    assert [call["name"] for call in trial.tool_calls] == ["find"] * 4
    assert ("assistant", "Found it.") in trial.messages
    (gate,) = record.verdict.gates
    assert (str(gate.decision), gate.checks[0].value) == ("FAIL", 0.25)  # one of four is distinct


def test_a_session_that_cannot_be_read_is_no_evidence(project: Project) -> None:
    record = project.judge(SESSION.replace("TRACE", '{"steps": []}'))
    (gate,) = record.verdict.gates
    assert str(gate.decision) == "INCONCLUSIVE"


def test_a_latency_that_is_not_recorded_is_the_bodys(project: Project) -> None:
    """The time of the body alone counts; that of its fixtures is kept apart."""
    record = project.judge(
        """
        import time
        import pytest

        @pytest.fixture
        def slow(): time.sleep(0.03)

        @pytest.mark.trials(2, never_fails=True)
        def test_it(slow): time.sleep(0.01)
        """
    )

    for trial in record.trials:
        assert trial.latency_s is not None
        assert trial.setup_s is not None
        assert trial.latency_s >= 0.01
        assert trial.setup_s >= 0.03


def test_wrong_amounts_are_errors_of_the_trial(project: Project) -> None:
    """A negative cost is no cost."""
    record = project.judge(
        """
        import pytest

        @pytest.mark.trials(1, never_fails=True)
        def test_it(trial): trial.record(cost=-1)
        """
    )

    said = record.trials[0].outcomes[0].result.explanation
    assert "InvalidArgument: cost must be at least 0, got -1" == said


def test_limits_on_latency_are_judged(project: Project) -> None:
    """A percentile of the recorded latencies is held against its limit."""
    record = project.judge(
        """
        import pytest

        @pytest.mark.trials(100, never_fails=True, latency={"p90": 0.5, "enforced": True})
        def test_it(trial): trial.record(latency_s=2.0)
        """
    )

    assert Decision.FAIL is record.verdict.decision
    assert [("p90", Decision.FAIL)] == [
        (one.constraint, one.decision) for one in record.verdict.latency
    ]


def test_a_budget_of_the_marker_ends_its_test(project: Project) -> None:
    """Money that is used up ends the test, undecided, with everything kept."""
    record = project.judge(
        """
        import pytest

        @pytest.mark.trials(100, at_least=0.9, budget={"usd": 1.0})
        def test_it(trial): trial.record(cost=0.1)
        """
    )

    assert StopReason.MONEY_BUDGET is record.verdict.stop
    assert Decision.INCONCLUSIVE is record.verdict.decision
    assert 10 == len(record.trials)


def test_every_input_can_be_judged_on_its_own(project: Project) -> None:
    """`each_input` asks the question of every input."""
    record = project.judge(
        """
        import pytest

        @pytest.mark.trials(40, at_least=0.8, each_input=True, inputs=["good", "bad"])
        def test_it(trial): assert trial.input == "good"
        """
    )

    (finding,) = record.verdict.findings
    assert [Decision.PASS, Decision.FAIL] == [one.decision for one in finding.by_input]


def test_the_fixture_is_for_marked_tests(project: Project) -> None:
    """A test without the marker has no trial."""
    project.write("def test_it(trial): pass")

    result = project.run()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*the trial fixture is for tests marked @pytest.mark.trials*"])
