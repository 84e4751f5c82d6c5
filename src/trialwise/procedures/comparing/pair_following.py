"""Follows the pairs of a comparison in order, and says when each test and all tests are decided.

A test is one criterion of one arm against another. Its rule looks at the pairs in the order of
inputs, without gaps: a trial that comes back early waits for those before it. So neither the number
of workers nor a restart changes what is decided. Pairs with a trial that was not measured, or that
no judge answered, are left out. The running comparison and the comparison of records both take
pairs from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from trialwise.model.plan import Plan
from trialwise.model.trial import Analysis, Trial
from trialwise.procedures.comparing.findings import ComparisonQuestion
from trialwise.procedures.comparing.pairing import read_pass
from trialwise.stats.paired import PairCounts
from trialwise.stats.paired_questions import PairedOutcome
from trialwise.stats.paired_rules import PairedConclusion, PairedRule

TestRules: TypeAlias = Mapping[tuple[str, str, str], PairedRule]
"""By the labels of the known arm and of the compared one, and by criterion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedTest:
    """One criterion of one arm against another."""

    against: int
    """The place of the known arm."""
    arm: int
    """The place of the arm that is compared with it."""
    criterion: str
    experiment: str
    analysis: Analysis
    rule: PairedRule | None
    """None where the number of pairs is fixed."""


def conclude_path(
    rule: PairedRule, path: Sequence[tuple[bool, bool]], *, ran_all: bool
) -> PairedConclusion:
    """Return what a rule concludes from pairs in order.

    Args:
        rule: How the pairs are decided.
        path: Whether the known arm and whether the other passed, without pairs that are left out.
        ran_all: Whether every planned pair was made.
    """
    limit = rule.max_pairs
    if ran_all and limit is not None and 0 < len(path) < limit:
        # Pairs that were left out are missing at the end. Which ones they are does not depend on
        # who won the others, so the end may come that much sooner.
        rule = replace(rule, max_pairs=len(path))
    return rule.conclude(path)


class _Followed:
    """One test while it is followed."""

    def __init__(self, test: PairedTest) -> None:
        self.test = test
        self.outcome: PairedOutcome | None = None
        self._waiting: tuple[dict[int, bool | None], dict[int, bool | None]] = ({}, {})
        self._next = 0
        self._cells = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}

    @property
    def counts(self) -> PairCounts:
        """The pairs so far that count."""
        both, only_a, only_b, neither = self._cells.values()
        return PairCounts(both=both, only_a=only_a, only_b=only_b, neither=neither)

    def add(self, side: int, trial: Trial) -> None:
        """Take a trial of the known arm (0) or of the other (1)."""
        if self.outcome is not None:
            return
        test = self.test
        waiting = self._waiting
        waiting[side][trial.index] = read_pass(trial, (test.criterion,), test.analysis)
        while self.outcome is None and self._next in waiting[0] and self._next in waiting[1]:
            first, second = waiting[0].pop(self._next), waiting[1].pop(self._next)
            self._next += 1
            if first is not None and second is not None:
                self._cells[first, second] += 1
                if test.rule is not None:
                    self.outcome = test.rule.decide(self.counts)


class PairFollowing:
    """The tests of a comparison while its arms run: a `RoundSchedule` of the engine.

    An arm takes part while one of its tests is open.

    Args:
        tests: All tests of the comparison.
    """

    def __init__(self, tests: Iterable[PairedTest]) -> None:
        self._tests: dict[str, list[_Followed]] = {}
        for test in tests:
            self._tests.setdefault(test.experiment, []).append(_Followed(test))

    def add(self, arm: int, trial: Trial) -> None:
        """Take a completed trial of an arm."""
        for one in self._tests.get(trial.experiment, ()):
            if one.test.against == arm:
                one.add(0, trial)
            elif one.test.arm == arm:
                one.add(1, trial)

    def takes_part(self, arm: int, experiment: str, index: int) -> bool:
        """Return whether a test of an arm is open."""
        return any(
            one.outcome is None and arm in (one.test.against, one.test.arm)
            for one in self._tests.get(experiment, ())
        )

    def is_decided(self, experiment: str) -> bool:
        """Return whether every test of an experiment is decided."""
        return all(one.outcome is not None for one in self._tests.get(experiment, ()))

    def count_open(self) -> int:
        """Count the tests that are not decided."""
        return sum(one.outcome is None for several in self._tests.values() for one in several)

    def list_standings(self) -> list[tuple[PairedTest, PairCounts, PairedOutcome | None]]:
        """List every test with its pairs so far, and what they show once that is decided."""
        return [
            (one.test, one.counts, one.outcome)
            for several in self._tests.values()
            for one in several
        ]


def list_tests(
    plans: Sequence[Plan], labels: Sequence[str], question: ComparisonQuestion
) -> list[tuple[str, str, str]]:
    """List the tests by the labels of two arms and by criterion.

    Args:
        plans: The plans of the arms' runs.
        labels: The labels of the arms.
        question: Which arms are compared with each other.
    """
    return [
        (labels[first], labels[second], name)
        for first, second in question.couple_arms(range(len(plans)))
        for name in list_shared_criteria(plans[first], plans[second])
    ]


def list_shared_criteria(first: Plan, second: Plan) -> list[str]:
    """List the criteria that two plans ask alike of the same inputs."""
    theirs = {one.criterion: one.experiment for one in second.criteria}
    return [one.criterion for one in first.criteria if theirs.get(one.criterion) == one.experiment]


def follow_pairs(
    plans: Sequence[Plan],
    labels: Sequence[str],
    question: ComparisonQuestion,
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
    places = {label: place for place, label in enumerate(labels)}
    tests = []
    for against, arm, criterion in list_tests(plans, labels, question):
        rule = rules.get((against, arm, criterion))
        if rules and rule is None:
            continue  # it advises, and no run waits for it
        plan = plans[places[against]]
        criteria = {one.criterion: one for one in plan.criteria}
        tests.append(
            PairedTest(
                against=places[against],
                arm=places[arm],
                criterion=criterion,
                experiment=criteria[criterion].experiment,
                analysis=plan.analysis,
                rule=rule,
            )
        )
    return PairFollowing(tests)
