"""`compare` and `compare_runs`: real runs in turn, stored like any other."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

import trialwise as tw
from trialwise.engine.ports import TrialContext
from trialwise.procedures.comparing.findings import Contrast
from trialwise.runtime.answers import Comparison
from trialwise.runtime.comparing import compare, compare_runs
from trialwise.runtime.verifying import verify
from trialwise.stores.runs import RunStore

QUESTIONS = ["one", "two", "three"]


def criteria(**options: Any) -> list[tw.Criterion]:
    return [tw.Criterion("right", tw.equals("yes"), at_least=0.9, **options)]


def contract(service: Any, **options: Any) -> tw.Contract:
    return tw.Contract("agent", service, criteria(**options))


def always(_question: str) -> str:
    return "yes"


def never(_question: str) -> str:
    return "no"


def often(_question: str, seed: int) -> str:
    """Right in three of four, by the trial's own seed."""
    return "yes" if seed // 2 % 4 else "no"


# --- In turn ----------------------------------------------------------------------------------


@pytest.mark.requirement(
    "statistical-ci lessons",
    "Conditions are compared with repetitions, pair by pair on the same tasks.",
    "`tw.compare(control, *candidates)`: arms take turns on the same inputs and seeds",
)
def test_both_services_get_the_same_inputs_and_seeds_in_turn() -> None:
    """Pair by pair, next to each other; who goes first changes."""
    calls: list[tuple[str, str, int]] = []

    def side(name: str) -> Any:
        def answer(trial: TrialContext) -> str:
            calls.append((name, trial.input, trial.seed))
            return "yes"

        return answer

    compare(contract(side("a")), contract(side("b")), inputs=QUESTIONS, trials=30, store=None)
    pairs = [calls[k : k + 2] for k in range(0, len(calls), 2)]

    assert 60 == len(calls)
    assert all({"a", "b"} == {name for name, *_ in pair} for pair in pairs)
    assert all(one[1:] == other[1:] for one, other in pairs)
    assert {"a", "b"} == {pair[0][0] for pair in pairs}
    assert {10} == set(Counter(given for _, given, _ in calls[::2]).values())


def test_side_by_side_trials_are_limited_over_both_services() -> None:
    """`concurrency` is how many are under way at once, whosever they are."""
    running, most = 0, 0

    async def count(_question: str) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.sleep(0.001)
        running -= 1
        return "yes"

    found = compare(
        contract(count), contract(count), inputs=QUESTIONS, trials=40, concurrency=3, store=None
    )

    assert 3 == most
    assert (40, 40) == (len(found.control.trials), len(found.candidate.trials))


@pytest.mark.slow
def test_a_wait_for_ones_turn_is_not_part_of_the_time_limit() -> None:
    """Two services that need 0.6 of a limit of 1 s each: waiting for the other costs nothing."""

    async def slow(_question: str) -> str:
        await anyio.sleep(0.6)
        return "yes"

    found = compare(
        contract(slow),
        contract(slow),
        inputs=["one"],
        trials=2,
        intent="smoke",
        timeout_s=1.0,
        store=None,
    )

    assert [True] * 4 == [one.passed for one in (*found.control.trials, *found.candidate.trials)]


def test_a_service_that_hangs_fails_by_the_time_limit() -> None:
    """The limit is kept behind the gate, and the plan says so."""

    async def hang(_question: str) -> str:
        await anyio.sleep_forever()
        return "yes"

    found = compare(
        contract(always), contract(hang), inputs=["one"], trials=8, timeout_s=0.02, store=None
    )

    assert {tw.ErrorClass.TIMEOUT} == {one.error_class for one in found.candidate.trials}
    assert 0.02 == found.candidate.plan.options.timeout_s
    assert Contrast.WORSE is found.findings[0].contrast


def test_a_reply_that_comes_too_late_is_paid_for() -> None:
    """A service that does not let itself be cancelled has spent what it has spent."""

    async def stubborn(_question: str) -> tw.Reply:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.05)
        return tw.Reply(value="yes", latency_s=0.05, cost_usd=0.25)

    found = compare(
        contract(always),
        contract(stubborn),
        inputs=["one"],
        trials=4,
        intent="smoke",
        timeout_s=0.01,
        store=None,
    )

    assert [(tw.ErrorClass.TIMEOUT, 0.25)] * 4 == [
        (one.error_class, one.cost_usd) for one in found.candidate.trials
    ]


def test_a_retry_is_let_through_and_changes_no_order() -> None:
    """An attempt that failed for infrastructure is made again, in the same pair."""
    tried: Counter[int] = Counter()

    async def shaky(trial: TrialContext) -> str:
        tried[trial.index] += 1
        if trial.index == 1 and tried[1] == 1:
            error = tw.ServiceError("busy", tw.ErrorClass.INFRASTRUCTURE)
            error.retry_after_s = 0.0
            raise error
        return "yes"

    found = compare(
        contract(always), contract(shaky), inputs=["one"], trials=10, retries=1, store=None
    )

    assert [1, 2, 1] == [one.attempts for one in found.candidate.trials[:3]]
    assert 10 == len(found.control.trials)


class Shared:
    """A service that may not be used once it is closed."""

    def __init__(self) -> None:
        self.closed = 0

    async def call(self, trial: TrialContext) -> tw.Reply:
        assert not self.closed, trial
        await anyio.sleep(0)
        return tw.Reply(value="yes")

    async def aclose(self) -> None:
        self.closed += 1


def test_one_service_under_both_contracts_is_closed_when_both_are_done() -> None:
    """An A/A comparison of one object neither breaks nor leaks it."""
    service = Shared()
    found = compare(contract(service), contract(service), inputs=["one"], trials=10, store=None)

    assert (1, 1.0) == (service.closed, found.findings[0].p_value)


def test_several_samplings_are_compared_each_in_its_own_order() -> None:
    """Two experiments of different sizes, one after the other, pairs in turn within each."""
    calls: list[tuple[str, int]] = []

    def side(name: str, wrong: str) -> Any:
        def answer(input: str, seed: int) -> str:  # noqa: A002 - by that name it is given
            calls.append((name, seed))
            return "no" if input == wrong else "yes"

        return answer

    asked = [
        tw.Criterion("here", tw.equals("yes"), at_least=0.9, sampling="near"),
        tw.Criterion("there", tw.equals("yes"), at_least=0.9, sampling="far"),
    ]
    inputs = {"near": ["a", "b"], "far": ["c"]}
    found = compare(
        tw.Contract("agent", side("old", "c"), asked),
        tw.Contract("agent", side("new", ""), asked),
        inputs=inputs,
        trials={"near": 20, "far": 12},
        store=None,
    )
    seeds = [seed for _, seed in calls]

    assert [(20, 20), (12, 0)] == [
        (one.pairs.pairs, one.pairs.both) for one in found.findings if one.pairs
    ]
    assert [Contrast.NOT_TOLD_APART, Contrast.BETTER] == [one.contrast for one in found.findings]
    assert seeds[::2] == seeds[1::2]
    assert {"near", "far"} == {one.experiment for one in found.verdict.pairings}


# --- As many pairs as it takes ----------------------------------------------------------------


def test_without_a_number_of_pairs_the_runs_end_when_the_pairs_decide() -> None:
    """Wins only: as soon as this many in a row are rarer than half of 5 % between equals."""
    found = compare(contract(never), contract(always), inputs=QUESTIONS, seed=1, store=None)
    pairs = found.findings[0].pairs
    assert pairs is not None

    assert tw.Decision.PASS is found.decision
    assert "paired/sequential" == found.findings[0].decision_rule
    assert [pairs.pairs] * 2 == [len(one.record.trials) for one in found.arms]
    assert pairs.pairs == pairs.only_b
    # Half of 5 % for each direction; equal arms win a discordant pair with probability 1/2.
    assert 2**-pairs.pairs <= 0.025
    assert {tw.model.StopReason.DECIDED} == {one.record.verdict.stop for one in found.arms}
    assert [] == [d for one in found.arms for d in verify(one.record).differences]


def test_arms_that_never_differ_end_at_the_most_pairs_undecided() -> None:
    found = compare(contract(always), contract(always), inputs=QUESTIONS, max_trials=40, store=None)

    assert (tw.Decision.INCONCLUSIVE, 40) == (found.decision, len(found.control.trials))
    assert {tw.model.StopReason.COMPLETE} == {one.record.verdict.stop for one in found.arms}


@pytest.mark.requirement(
    "statistical-ci lessons",
    "More than two conditions are compared at once.",
    '`tw.compare(control, first, second)`; `against="all"` for every pair of arms',
)
def test_several_candidates_are_compared_and_a_decided_one_is_asked_no_more() -> None:
    """One candidate is much better, one is like the control: the first one's calls are saved."""
    found = compare(
        contract(never),
        contract(always),
        contract(never),
        inputs=QUESTIONS,
        labels=["old", "new", "same"],
        max_trials=60,
        store=None,
    )
    better, same = found.findings

    assert ("new", "same") == (better.arm, same.arm)
    assert (Contrast.BETTER, Contrast.NOT_TOLD_APART) == (better.contrast, same.contrast)
    assert better.pairs is not None
    assert [60, better.pairs.pairs, 60] == [len(one.record.trials) for one in found.arms]
    # Two tests share 5 %: a quarter of it for each direction of each.
    assert 2**-better.pairs.pairs <= 0.0125


def test_every_arm_is_compared_with_every_other_on_request() -> None:
    found = compare(
        contract(never),
        contract(always),
        contract(never),
        inputs=QUESTIONS,
        labels=["old", "new", "same"],
        against="all",
        max_trials=60,
        store=None,
    )

    assert [("old", "new"), ("old", "same"), ("new", "same")] == [
        (one.against, one.arm) for one in found.findings
    ]
    assert Contrast.WORSE is found.findings[2].contrast


def test_concurrency_does_not_change_what_is_decided() -> None:
    """Pairs count in the order of inputs, whichever comes back first."""

    async def slow(trial: TrialContext) -> str:
        await anyio.sleep((trial.seed % 7) / 1000)
        return "yes" if trial.seed // 2 % 4 else "no"

    def seen(concurrency: int) -> Any:
        found = compare(
            contract(slow),
            contract(always),
            inputs=QUESTIONS,
            seed=5,
            concurrency=concurrency,
            store=None,
        )
        one = found.findings[0]
        return one.pairs, one.p_value, one.interval, found.decision

    assert seen(1) == seen(8)


def test_a_pair_that_could_not_be_measured_is_left_out_of_the_decision() -> None:
    """The rule sees the pairs before and after it as if it were not there."""

    def shaky(trial: TrialContext) -> str:
        if trial.index == 2:
            raise tw.ServiceError("busy", tw.ErrorClass.INFRASTRUCTURE)
        return "yes"

    whole = compare(contract(never), contract(always), inputs=QUESTIONS, seed=1, store=None)
    found = compare(contract(never), contract(shaky), inputs=QUESTIONS, seed=1, store=None)

    assert whole.findings[0].pairs == found.findings[0].pairs
    assert len(whole.control.trials) + 1 == len(found.control.trials)


# --- What ends a comparison -------------------------------------------------------------------


def test_a_budget_holds_for_all_arms_together() -> None:
    """Ten cents are spent by both; what both have is compared."""

    def priced(answer: str) -> Any:
        return lambda _question: tw.Reply(value=answer, cost_usd=0.01)

    found = compare(
        contract(priced("yes")),
        contract(priced("no")),
        inputs=QUESTIONS,
        trials=50,
        budget=tw.Budget(usd=0.1),
        store=None,
    )

    stops = {one.verdict.stop for one in (found.control, found.candidate)}
    assert {tw.model.StopReason.MONEY_BUDGET} == stops
    assert (5, 5) == (len(found.control.trials), len(found.candidate.trials))
    assert "paired/anytime-bet" == found.findings[0].decision_rule


@pytest.mark.parametrize(
    ("budget", "stop", "trials"),
    [
        (tw.Budget(tokens=500), tw.model.StopReason.TOKEN_BUDGET, 20),
        (tw.Budget(tokens=520), tw.model.StopReason.TOKEN_BUDGET, 20),
        (tw.Budget(trials=14), tw.model.StopReason.TRIALS_BUDGET, 14),
        (tw.Budget(trials=15), tw.model.StopReason.TRIALS_BUDGET, 14),
        (tw.Budget(seconds=0.5), tw.model.StopReason.TIME_BUDGET, None),
    ],
    ids=["tokens", "tokens for half a pair", "trials", "trials for half a pair", "seconds"],
)
def test_every_limit_holds_for_all_arms_together(
    budget: tw.Budget, stop: tw.model.StopReason, trials: int | None
) -> None:
    """Whichever limit ends one arm ends all; nothing is decided by what was cut short."""

    async def answer(_question: str) -> tw.Reply:
        await anyio.sleep(0.01)
        return tw.Reply(value="yes", usage=tw.Usage(input_tokens=20, output_tokens=5))

    found = compare(contract(answer), contract(answer), inputs=QUESTIONS, budget=budget, store=None)

    assert {stop} == {one.record.verdict.stop for one in found.arms}
    made = sum(len(one.record.trials) for one in found.arms)
    assert trials is None or trials == made
    assert made <= 100
    assert tw.Decision.INCONCLUSIVE is found.decision


def test_a_hook_before_each_trial_belongs_to_its_arm() -> None:
    """What resets a service is called right before its own trial, never before another's."""
    events: list[str] = []

    def side(name: str) -> tw.Contract:
        def answer(_question: str) -> str:
            events.append(name)
            return "yes"

        return replace(contract(answer), before_each=lambda: events.append(f"reset {name}"))

    compare(side("a"), side("b"), inputs=QUESTIONS, trials=8, store=None)

    assert 32 == len(events)
    assert all(
        reset == f"reset {asked}" for reset, asked in zip(events[::2], events[1::2], strict=True)
    )


def test_any_number_of_arms_is_compared_in_a_running_loop() -> None:
    """Async services are called in the caller's loop, and other tasks go on."""

    async def main() -> Comparison:
        loop = asyncio.get_running_loop()

        def side(answer: str) -> tw.Contract:
            async def ask(_question: str) -> str:
                assert loop is asyncio.get_running_loop()
                await asyncio.sleep(0)
                return answer

            return contract(ask)

        return await tw.acompare(side("no"), side("yes"), side("yes"), inputs=QUESTIONS, store=None)

    found = asyncio.run(main())
    assert ["control", "candidate 1", "candidate 2"] == [one.label for one in found.arms]
    assert tw.Decision.PASS is found.decision


def test_when_one_run_ends_the_other_does_not_go_on_alone() -> None:
    """A trial without a partner compares nothing; what both have is compared."""

    class Closing(tw.ServiceError):
        stops_run = True

    def closes(trial: TrialContext) -> str:
        if trial.index == 5:
            raise Closing("the service was closed", tw.ErrorClass.INFRASTRUCTURE)
        return "yes"

    found = compare(contract(closes), contract(never), inputs=QUESTIONS, trials=50, store=None)

    assert "the service was closed" in found.control.verdict.aborted
    assert "another arm of the comparison ended" in found.candidate.verdict.aborted
    # The candidate may have gone first in the pair that the end cut in two.
    assert 5 == len(found.control.trials) <= len(found.candidate.trials) <= 6
    assert 5 == found.verdict.pairings[0].pairs
    assert any("another arm of the comparison ended" in one for one in found.verdict.caveats)


def test_an_input_that_could_not_be_measured_is_asked_again() -> None:
    """Both arms end with as many measured trials as were planned."""
    tried: Counter[int] = Counter()

    def shaky(trial: TrialContext) -> str:
        tried[trial.index] += 1
        if trial.index in (3, 4):
            raise tw.ServiceError("busy", tw.ErrorClass.INFRASTRUCTURE)
        return "yes"

    found = compare(contract(always), contract(shaky), inputs=QUESTIONS, trials=12, store=None)

    assert [12, 14] == [len(one.trials) for one in (found.control, found.candidate)]
    assert {12, 13} < set(tried)
    assert [] == [d for one in (found.control, found.candidate) for d in verify(one).differences]


def test_an_error_that_is_not_the_services_is_raised_as_it_is() -> None:
    """Neither wrapped in a group nor lost, and nothing hangs."""

    def broken(_text: str) -> str:
        raise LookupError("the redactor is broken")

    with pytest.raises(LookupError, match="redactor"):
        compare(
            contract(always), contract(never), inputs=["one"], trials=10, store=None, redact=broken
        )


INTERRUPTED = """
import os, signal, sys, threading
import anyio
import trialwise as tw
from trialwise.runtime.comparing import compare

async def slow(question, index):
    if index == 5:
        os.kill(os.getpid(), signal.SIGINT)
    await anyio.sleep(0.001)
    return "yes"

contract = tw.Contract("agent", slow, [tw.Criterion("right", tw.equals("yes"), at_least=0.9)])
try:
    compare(contract, contract, inputs=["one"], trials=100_000, store=sys.argv[1])
except tw.RunInterrupted as stopped:
    print(len(stopped.result.control.trials) < 100, stopped)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals to oneself are POSIX")
def test_ctrl_c_keeps_and_compares_what_is_complete(tmp_path: Path) -> None:
    """One gentle interrupt ends both runs, and both records are kept."""
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert run.stdout.startswith("True interrupted after"), run.stderr
    assert 2 == len(RunStore(tmp_path).list())
    assert all(one.is_decided for one in RunStore(tmp_path).list())


# --- Stored like any other --------------------------------------------------------------------


def test_both_runs_are_kept_and_give_the_same_comparison_again(tmp_path: Path) -> None:
    """From the folders alone a stranger compares them again, and each record verifies."""
    found = compare(
        contract(often), contract(always), inputs=QUESTIONS, trials=60, seed=3, store=tmp_path
    )
    paths = [str(path) for path in found.paths]
    again = compare_runs(paths[0], paths[1], store=tmp_path)
    by_name = compare_runs(found.control.run_id, found.candidate.run_id, store=tmp_path)

    assert found.verdict == again.verdict == by_name.verdict
    assert Contrast.BETTER is found.findings[0].contrast
    assert found.control.plan.seed == found.candidate.plan.seed == 3
    assert [] == [d for one in (found.control, found.candidate) for d in verify(one).differences]


def test_replies_are_recorded_and_replayed_for_each_arm(tmp_path: Path) -> None:
    """Under the labels of the arms, so that one contract can be two of them."""
    file, calls = tmp_path / "replies.jsonl", Counter[str]()

    def side(name: str) -> Any:
        def answer(_question: str, seed: int) -> str:
            calls[name] += 1
            return "yes" if name == "new" or seed // 2 % 4 else "no"

        return answer

    def run(**more: Any) -> Comparison:
        found: tw.Comparison = compare(
            contract(side("old")),
            contract(side("new")),
            inputs=QUESTIONS,
            labels=["old", "new"],
            seed=3,
            store=None,
            **more,
        )
        return found

    first = run(record=file)
    made = dict(calls)
    again = run(replay=file)

    assert made == dict(calls)
    assert first.findings[0].pairs == again.findings[0].pairs
    assert first.decision is again.decision is tw.Decision.PASS
    with pytest.raises(tw.TrialwiseError, match="holds"):
        run(record=file)


def test_results_of_plain_runs_can_be_compared(tmp_path: Path) -> None:
    """Two runs made by `run`, in memory or stored, with the same seed and nothing cut off."""
    options: dict[str, Any] = {
        "inputs": QUESTIONS, "trials": 60, "seed": 3, "curtail": False, "store": tmp_path,
    }  # fmt: skip
    old, new = tw.run(contract(often), **options), tw.run(contract(always), **options)
    found = compare_runs(old, new, labels=("old", "new"))

    assert ("paired/mcnemar-exact", Contrast.BETTER) == (
        found.findings[0].decision_rule,
        found.findings[0].contrast,
    )
    assert found.paths == (old.path, new.path)
    assert any("one after the other" in one for one in found.verdict.caveats)


def test_a_run_that_is_not_there_is_named(tmp_path: Path) -> None:
    """With what to do about it, as everywhere."""
    with pytest.raises(tw.errors.RunNotFound, match="no run"):
        compare_runs("yesterday", "today", store=tmp_path)


# --- Before the first trial -------------------------------------------------------------------


def test_too_few_pairs_are_refused_before_the_first_trial() -> None:
    """Five pairs cannot tell anything apart at 95 %, whatever they show."""
    calls: list[str] = []

    with pytest.raises(tw.DesignRefused, match="At least 6 pairs are needed"):
        compare(contract(calls.append), contract(always), inputs=["one"], trials=5, store=None)

    assert [] == calls
    assert compare(
        contract(never), contract(always), inputs=["one"], trials=5, intent="smoke", store=None
    ).findings[0].p_value == pytest.approx(1 / 16)


def test_sizes_and_thresholds_of_the_criteria_play_no_part() -> None:
    """Neither a baseline, nor a trials of its own, nor a sequential rule changes the pairs."""
    several = [
        tw.Criterion("a", tw.equals("yes"), at_least=0.99, trials=500),
        tw.Criterion("b", tw.equals("yes"), no_worse_than="baseline"),
        tw.Criterion("c", tw.equals("yes"), never_fails=True, each_input=True),
    ]
    old = tw.Contract("agent", never, several, latency=tw.Latency.within(p95=0.1, enforced=True))
    found = compare(old, old.with_service(always), inputs=QUESTIONS, trials=12, store=None)

    assert [12, 12, 12] == [one.pairs.pairs for one in found.findings if one.pairs]


def test_contracts_bring_their_own_inputs_where_they_are_the_same() -> None:
    """One of them is enough; two different ones are refused."""
    old = tw.Contract("agent", never, criteria(), sampling=["one", "two"])
    new = contract(always)

    assert 10 == len(compare(old, new, trials=10, store=None).candidate.trials)
    assert 10 == len(compare(new, old, trials=10, store=None).candidate.trials)
    with pytest.raises(tw.InvalidArgument, match="inputs must be the same for all arms"):
        compare(old, old.with_inputs(["one", "three"]), trials=10, store=None)
    with pytest.raises(tw.InvalidArgument, match="inputs must be given"):
        compare(new, new, trials=10, store=None)


def test_contracts_that_ask_different_things_are_refused() -> None:
    """No shared criterion, one name for two, or two claims: nothing was run."""
    other = tw.Contract("agent", always, [tw.Criterion("kind", tw.equals("yes"), at_least=0.9)])
    changed = tw.Contract("agent", always, [tw.Criterion("right", tw.equals("no"), at_least=0.9)])
    wide = tw.Contract(
        "agent",
        always,
        criteria(),
        claim=tw.model.Claim(population=tw.model.PopulationClaim.FINITE_CORPUS),
    )
    for wrong, why in ((other, "share a criterion"), (changed, "ask the same"), (wide, "one for")):
        with pytest.raises(tw.InvalidArgument, match=why):
            compare(contract(always), wrong, inputs=["one"], trials=10, store=None)


@pytest.mark.parametrize("setting", [{"baseline": "b-1"}, {"horizon": 10}], ids=str)
def test_settings_without_a_meaning_here_are_refused(setting: dict[str, Any]) -> None:
    """A comparison has no baseline."""
    with pytest.raises(tw.InvalidArgument, match="needs no baseline"):
        compare(contract(always), contract(never), inputs=["one"], store=None, **setting)


# --- Ways to look at it -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def compared() -> Comparison:
    """A comparison with a margin, setup and hostile names."""

    def priced(_question: str, seed: int) -> tw.Reply:
        from trialwise.model.reply import Setup

        value = "yes" if seed // 2 % 4 else "no"
        usage = tw.Usage(input_tokens=20, output_tokens=5)
        return tw.Reply(value=value, cost_usd=0.02, usage=usage, setup=Setup(seconds=1.5))

    named = "<b>right</b>\x1b[2J"
    asked = [tw.Criterion(named, tw.equals("yes"), at_least=0.9)]
    return compare(
        tw.Contract("agent", priced, asked),
        tw.Contract("agent", lambda _question: tw.Reply(value="yes", cost_usd=0.01), asked),
        inputs=QUESTIONS,
        trials=80,
        seed=3,
        margin=0.05,
        labels=("old", "new"),
        store=None,
    )


def test_it_is_shown_as_text_without_anything_that_moves_a_cursor(compared: Comparison) -> None:
    """Counts, rates, direction, cost, setup apart; in 80 columns of plain ASCII."""
    out = io.StringIO()
    compared.show(stream=out)
    text = out.getvalue()
    found = compared.findings[0]

    assert text.isascii()
    assert "\x1b" not in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert f"{found.wins}/{found.wins}" in text
    assert "better" in text
    assert "PASS  new is better: 32.5 points, at least " in text
    cost = next(line.split() for line in text.splitlines() if line.startswith("  cost "))
    assert ["$0.02", "$0.01"] == cost[1:3]
    assert "setup of old, kept apart: 2" in text


def test_it_becomes_plain_values(compared: Comparison) -> None:
    """Fit for JSON, with the numbers of the findings."""
    plain = json.loads(json.dumps(compared.to_dict()))

    assert "better" == plain["findings"][0]["contrast"]
    assert compared.findings[0].wins == plain["findings"][0]["pairs"]["only_b"]
    assert 0.05 == plain["question"]["margin"]


def test_it_has_a_short_name_of_its_own(compared: Comparison) -> None:
    """A traceback or a terminal shows no thousand trials."""
    assert repr(compared).startswith("<Comparison PASS: new is better: 32.5 points, at least ")
    assert "<Result PASS: 'agent', 0 of 40 trials failed>" == repr(
        tw.run(contract(always), inputs=["one"], seed=1, store=None)
    )


def test_threads_end_with_the_comparison() -> None:
    """Nothing is left running."""
    before = threading.active_count()
    compare(contract(often), contract(always), inputs=["one"], trials=20, concurrency=4, store=None)

    # Told to end, a thread takes a moment; and a worker of anyio's may linger idle.
    deadline = time.monotonic() + 20
    while threading.active_count() > before + 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before + 1


def test_interrupts_are_handled_as_before_afterwards() -> None:
    """The caller's own handler is back."""
    before = signal.getsignal(signal.SIGINT)
    compare(contract(always), contract(always), inputs=["one"], trials=10, store=None)

    assert before is signal.getsignal(signal.SIGINT)
