"""Follows the pairs of a comparison in order, and says when each test and all tests are decided.

A test is one criterion of one arm against another. Its rule looks at the pairs in the order of
inputs, without gaps: a trial that comes back early waits for those before it. So neither the number
of workers nor a restart changes what is decided. Pairs with a trial that was not measured, or that
no judge answered, are left out. The running comparison and the comparison of records both take
pairs from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from random import Random
from typing import TypeAlias

from trialwise.documents.numbers import as_percent, as_probability
from trialwise.model.plan import Plan
from trialwise.model.trial import Analysis, Trial
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing import findings
from trialwise.procedures.comparing.pairing import pair_trials, read_pass
from trialwise.stats.multiplicity import Correction, adjust
from trialwise.stats.paired import PairCounts, PairedOutcome, decide_outcome
from trialwise.stats.paired_rules import PairedRule, plan_paired_rule
from trialwise.stats.rate_intervals import clopper_pearson

TestRules: TypeAlias = Mapping[tuple[str, str, str], PairedRule]
"""By the labels of the known arm and of the compared one, and by criterion."""


def fit_rule(rule: PairedRule, counting: int, *, ran_all: bool) -> PairedRule:
    """Return a rule whose last pair is the last one that counts.

    Args:
        rule: How the pairs are decided.
        counting: How many pairs count; those that are left out do not.
        ran_all: Whether every planned pair was made.
    """
    limit = rule.max_pairs
    if ran_all and limit is not None and 0 < counting < limit:
        # Pairs that were left out are missing at the end. Which ones they are does not depend on
        # who won the others, so the end may come that much sooner.
        return replace(rule, max_pairs=counting)
    return rule


_CELLS = ((True, True), (True, False), (False, True), (False, False))


@dataclass(slots=True, kw_only=True, eq=False)
class PairedTest:
    """One criterion of one arm against another, while its pairs are followed."""

    name: str = ""
    against: int
    """The place of the known arm."""
    arm: int
    """The place of the arm that is compared with it."""
    criterion: str
    experiment: str
    analysis: Analysis
    rule: PairedRule | None
    """None where the number of pairs is fixed."""
    outcome: PairedOutcome | None = None
    _waiting: tuple[dict[int, bool | None], dict[int, bool | None]] = field(
        default_factory=lambda: ({}, {})
    )
    _next: int = 0
    _cells: dict[tuple[bool, bool], int] = field(default_factory=lambda: dict.fromkeys(_CELLS, 0))

    @property
    def counts(self) -> PairCounts:
        """The pairs so far that count."""
        both, only_a, only_b, neither = self._cells.values()
        return PairCounts(both=both, only_a=only_a, only_b=only_b, neither=neither)

    def add(self, arm: int, trial: Trial) -> None:
        """Take a trial of an arm; that of another arm, or after the end, changes nothing."""
        if self.outcome is not None or arm not in (self.against, self.arm):
            return
        ours, theirs = self._waiting
        side = ours if arm == self.against else theirs
        side[trial.index] = read_pass(trial, (self.criterion,), self.analysis)
        while self.outcome is None and self._next in ours and self._next in theirs:
            first, second = ours.pop(self._next), theirs.pop(self._next)
            self._next += 1
            if first is not None and second is not None:
                self._cells[first, second] += 1
                if self.rule is not None:
                    self.outcome = self.rule.decide(self.counts)

    def describe(self) -> findings.ArmsRow:
        """Describe how the test stands."""
        pairs, outcome, decision = self.counts, self.outcome, None
        won = f"{pairs.discordant:,} discordant: {pairs.only_b:,} won, {pairs.only_a:,} lost"
        if self.rule is not None and outcome is not None:
            decision = decide_outcome(self.rule.question, outcome)
        return findings.ArmsRow(self.name, won, outcome, after=pairs.pairs, decision=decision)


class PairFollowing:
    """The tests of a comparison while its arms run: a `RoundSchedule` of the engine.

    An arm takes part while one of its tests is open.

    Args:
        tests: All tests of the comparison.
    """

    def __init__(self, tests: Iterable[PairedTest]) -> None:
        self.tests = tuple(tests)
        # Without rules nothing is decided before the end, and no arm is left out.
        self.is_fixed = all(one.rule is None for one in self.tests)
        # A description tests nothing.
        self.unit = "pair" if self.tests else "round"

    def _list_open(self, experiment: str) -> list[PairedTest]:
        of_it = (one for one in self.tests if one.experiment == experiment)
        return [one for one in of_it if one.outcome is None]

    def add(self, arm: int, trial: Trial) -> None:
        """Take a completed trial of an arm."""
        for one in self._list_open(trial.experiment):
            one.add(arm, trial)

    def takes_part(self, arm: int, experiment: str, index: int) -> bool:
        """Return whether a test of an arm is open."""
        return any(arm in (one.against, one.arm) for one in self._list_open(experiment))

    def is_decided(self, experiment: str) -> bool:
        """Return whether every test of an experiment is decided."""
        return not self._list_open(experiment)

    def count_open(self) -> int:
        """Count the tests that are not decided."""
        return sum(one.outcome is None for one in self.tests)

    def list_rows(self) -> list[findings.ArmsRow]:
        """List how every test stands."""
        return [one.describe() for one in self.tests]


def list_tests(
    plans: Sequence[Plan], labels: Sequence[str], question: findings.ComparisonQuestion
) -> list[tuple[str, str, str]]:
    """List the tests by the labels of two arms and by criterion.

    Args:
        plans: The plans of the arms' runs.
        labels: The labels of the arms.
        question: Which arms are compared with each other.
    """
    known = [{one.criterion: one.experiment for one in plan.criteria} for plan in plans]
    return [
        (labels[first], labels[second], name)
        for first, second in question.couple_arms(range(len(plans)))
        for name, place in known[first].items()
        # Only what both ask of the same inputs is compared pair by pair.
        if known[second].get(name) == place
    ]


def follow_pairs(
    plans: Sequence[Plan],
    labels: Sequence[str],
    question: findings.ComparisonQuestion,
    rules: TestRules,
) -> PairFollowing:
    """Return what follows the tests of a comparison.

    Args:
        plans: The plans of the arms' runs.
        labels: The labels of the arms.
        question: What is asked.
        rules: The rule of each test; none where the number of pairs is fixed, so that nothing is
            decided before the end.
    """
    tests = []
    for against, arm, criterion in list_tests(plans, labels, question):
        rule = rules.get((against, arm, criterion))
        if rules and rule is None:
            continue  # it advises, and no run waits for it
        place = labels.index(against)
        (planned,) = (one for one in plans[place].criteria if one.criterion == criterion)
        tests.append(
            PairedTest(
                name=f"{criterion}, {arm} against {against}",
                against=place,
                arm=labels.index(arm),
                criterion=criterion,
                experiment=planned.experiment,
                analysis=plans[place].analysis,
                rule=rule,
            )
        )
    return PairFollowing(tests)


# How often a comparison finds a difference between two arms whose labels were swapped at random.
#
# In a comparison of a service with itself no difference is there by construction. Swapping the two
# outcomes within each pair, with a coin for each, makes further such comparisons of the same pairs:
# whatever makes pairs alike or unlike stays, and only who is called the candidate changes. The
# share of them in which a difference is found may not exceed the level.
#
# For one criterion the share is exact: all ways to swap are followed together, pair by pair.
# Several criteria share the coins of their pairs, and their p-values are adjusted together, so a
# random sample of the ways is followed.

#: Ways to swap that are followed where there are too many for all.
RELABELLINGS = 2_000

_ALIKE = (
    "No difference was found, and none could be: in every pair both passed or both failed. The "
    "service probably replies the same to the same seed; for this check it has to run without one."
)

Outcomes: TypeAlias = Sequence[tuple[bool, bool] | None]
"""Whether the first and the second arm passed, pair by pair; None for a pair that is left out."""


def relabel_arms(
    verdict: findings.ComparisonVerdict,
    arms: Sequence[findings.ArmRun],
    rules: TestRules,
    *,
    seed: int = 0,
) -> findings.ComparisonVerdict:
    """Conclude the comparison of a service with itself.

    It passes where no difference was found, and where swapping labels at random keeps the level. It
    is INCONCLUSIVE where no pair was discordant, since then nothing could be found.

    Args:
        verdict: What its two arms came to, asked whether they are different.
        arms: The two runs.
        rules: The rules that they were made by; those of a fixed size where there are none.
        seed: Of the coins.
    """
    outcomes: dict[str, Outcomes] = {}
    used: dict[str, PairedRule] = {}
    testing = [one for one in verdict.findings if one.p_value is not None]
    control, candidate = arms
    asked = verdict.question
    places: dict[str, int] = {}
    for one in testing:
        pairs = pair_trials(control, candidate, one.experiment).pairs
        told = [pair.read(one.criterion, control.record.plan.analysis) for pair in pairs]
        # The pairs of another sampling have coins of their own.
        start = places.setdefault(one.experiment, sum(map(len, outcomes.values())))
        outcomes[one.criterion] = [*[None] * start, *told]
        counting = sum(pair is not None for pair in told)
        rule = rules.get((control.label, candidate.label, one.criterion))
        if rule is None:
            level = asked.alpha / len(testing)
            used[one.criterion] = plan_paired_rule(pairs=max(1, counting), alpha=level)
        else:
            ran_all = rule.max_pairs is not None and len(told) >= rule.max_pairs
            used[one.criterion] = fit_rule(rule, counting, ran_all=ran_all)
    if not outcomes:
        return verdict
    share = relabel_pairs(outcomes, used, level=asked.alpha, correction=asked.correction, seed=seed)
    found = [
        one.criterion for one in testing if one.contrast is not findings.Contrast.NOT_TOLD_APART
    ]
    if all(one is None or one[0] == one[1] for one in chain.from_iterable(outcomes.values())):
        decision, statement = Decision.INCONCLUSIVE, _ALIKE
    else:
        is_kept = not found and not share.exceeds_level
        decision = Decision.PASS if is_kept else Decision.FAIL
        statement = _state_share(share, found)
    return replace(verdict, decision=decision, statement=statement, relabelled=share)


def _state_share(share: findings.RelabelledShare, found: Sequence[str]) -> str:
    """State whether a difference was found, and how often one would be."""
    level = as_percent(share.level)
    head = (
        f"A difference was found in {', '.join(found)} although there is none: that happens in at "
        f"most {level} of such comparisons."
        if found
        else "No difference was found, and by construction there is none."
    )
    often = as_probability(share.share)
    if share.interval is not None:
        low, high = map(as_probability, share.interval)
        often = f"{often} of {share.relabellings:,} ways (95 % interval {low} to {high})"
    else:
        often = f"{often} of all ways"
    tail = "which is more than the limit of" if share.exceeds_level else "and the limit is"
    return (
        f"{head} With labels swapped at random within its pairs, one is found in {often}, "
        f"{tail} {level}."
    )


def relabel_pairs(
    outcomes: Mapping[str, Outcomes],
    rules: Mapping[str, PairedRule],
    *,
    level: float,
    correction: Correction = "holm",
    relabellings: int = RELABELLINGS,
    seed: int = 0,
) -> findings.RelabelledShare:
    """Return how often a difference is found where labels are swapped at random within pairs.

    Args:
        outcomes: By criterion; the same place is the same pair in each.
        rules: By criterion: how its pairs are decided.
        level: Of all tests together.
        correction: How the tests share it.
        relabellings: How many ways to swap are followed where there are several criteria.
        seed: Of the coins.

    >>> from trialwise.stats.paired import PairedOutcome
    >>> from trialwise.stats.paired_rules import plan_paired_rule
    >>> pairs = [(True, False), (False, True)] * 4
    >>> rule = plan_paired_rule(pairs=len(pairs))
    >>> share = relabel_pairs({"right": pairs}, {"right": rule}, level=0.05)
    >>> share.share, share.is_exact  # 2 of 256 ways: one arm wins all 8
    (0.0078125, True)
    """
    followed = {name: _Remembering(rules[name]) for name in outcomes}
    if len(outcomes) == 1:
        ((name, only),) = outcomes.items()
        return findings.RelabelledShare(share=followed[name].find_share(only), level=level)
    coins = Random(seed)
    length = max(map(len, outcomes.values()), default=0)
    found = 0
    for _ in range(relabellings):
        bits = coins.getrandbits(max(1, length))
        p_values = [followed[name].find_p_value(one, bits) for name, one in outcomes.items()]
        found += adjust(p_values, method=correction, alpha=level).number_rejected > 0
    return findings.RelabelledShare(
        share=found / relabellings,
        found=found,
        relabellings=relabellings,
        interval=clopper_pearson(found, relabellings, confidence=0.95),
        level=level,
    )


class _Remembering:
    """A rule that remembers what it said, since many ways to swap come to the same counts."""

    def __init__(self, rule: PairedRule) -> None:
        # Pairs that are alike count the same, whether both passed or neither did.
        def count(first: int, second: int, alike: int) -> PairCounts:
            return PairCounts(both=alike, only_a=first, only_b=second, neither=0)

        @cache
        def decide(first: int, second: int, alike: int) -> PairedOutcome | None:
            return rule.decide(count(first, second, alike))

        @cache
        def find_p_value(first: int, second: int, alike: int) -> float:
            found = decide(first, second, alike)
            return rule.find_p_value(count(first, second, alike), found)

        self._decide, self._find_p_value = decide, find_p_value

    def find_share(self, outcomes: Outcomes) -> float:
        """Return the probability that a difference is shown, over all ways to swap."""
        states, shown, alike = {(0, 0): 1.0}, 0.0, 0
        for pair in outcomes:
            if pair is None:
                continue
            if pair[0] == pair[1]:
                alike += 1
                after = states
            else:
                after = {}
                for (first, second), weight in states.items():
                    for state in ((first + 1, second), (first, second + 1)):
                        after[state] = after.get(state, 0.0) + weight / 2
            states = {}
            for state, weight in after.items():
                said = self._decide(*state, alike)
                if said is None:
                    states[state] = weight
                elif said != "not shown":
                    shown += weight
            if not states:
                break
        return shown

    def find_p_value(self, outcomes: Outcomes, bits: int) -> float:
        """Return the p-value of one way to swap; 1 where the pairs end before the rule does."""
        first = second = alike = 0
        for place, pair in enumerate(outcomes):
            if pair is None:
                continue
            if pair[0] == pair[1]:
                alike += 1
            elif pair[0] ^ (bits >> place & 1):
                first += 1
            else:
                second += 1
            if self._decide(first, second, alike) is not None:
                return self._find_p_value(first, second, alike)
        return 1.0
