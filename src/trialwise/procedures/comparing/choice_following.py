"""Follows the rounds of several arms in order, and says which of them the next round asks.

Rounds are counted in the order of inputs, without gaps: a trial that comes back early waits for
those before it. So neither the number of workers nor a restart changes what is chosen, and the same
code chooses while the arms run and from the records of their runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from trialwise.errors import InvalidArgument
from trialwise.model.plan import Plan
from trialwise.model.trial import Analysis, Trial
from trialwise.procedures.comparing.choice_findings import ChoiceQuestion
from trialwise.stats.arm_selection import ArmSelection


class ChoiceFollowing:
    """The choice while its arms run: a `RoundSchedule` of the engine.

    Args:
        plans: The plans of the arms' runs, of one seed.
        question: What is asked.
    """

    def __init__(self, plans: Sequence[Plan], question: ChoiceQuestion) -> None:
        self.criteria, self.experiment = find_criteria(plans, question.criterion)
        """What a trial has to pass, and the experiment they belong to."""
        self.question = question
        """What is asked."""
        self.selection = ArmSelection(
            len(plans),
            smallest_difference=question.smallest_difference,
            alpha=question.alpha,
            break_ties=question.break_ties,
            edition=question.edition,
        )
        self._analyses = [plan.analysis for plan in plans]
        self._waiting: list[dict[int, bool | None]] = [{} for _ in plans]
        self.rounds = 0
        """How many rounds were counted."""

    def add(self, arm: int, trial: Trial) -> None:
        """Take a completed trial of an arm."""
        if trial.experiment != self.experiment or trial.index < self.rounds:
            return
        self._waiting[arm][trial.index] = read_pass(trial, self.criteria, self._analyses[arm])
        selection = self.selection
        while selection.outcome is None and self._is_complete():
            selection.add_round({one: self._waiting[one][self.rounds] for one in self._asked})
            for waiting in self._waiting:
                waiting.pop(self.rounds, None)
            self.rounds += 1

    @property
    def _asked(self) -> tuple[int, ...]:
        return self.selection.next_arms

    def _is_complete(self) -> bool:
        return all(self.rounds in self._waiting[arm] for arm in self._asked)

    def takes_part(self, arm: int, experiment: str, index: int) -> bool:
        """Return whether an arm is asked in a round, as far as the rounds before it tell."""
        return experiment == self.experiment and arm in self._asked

    def is_decided(self, experiment: str) -> bool:
        """Return whether no further round is needed."""
        return experiment != self.experiment or self.selection.outcome is not None


def read_pass(trial: Trial, criteria: Sequence[str], analysis: Analysis) -> bool | None:
    """Return whether a trial passed all of some criteria; None where it was not measured.

    Args:
        trial: Of one arm.
        criteria: By name.
        analysis: Whose trials count.
    """
    outcomes = [trial.outcome(name) for name in criteria]
    if analysis.leaves_out(trial.error_class) or any(map(trial.is_unjudged, outcomes)):
        return None
    return all(one.passed for one in outcomes)


def find_criteria(plans: Sequence[Plan], criterion: str | None) -> tuple[tuple[str, ...], str]:
    """Find what a trial has to pass, and the experiment in which that is asked.

    Args:
        plans: The plans of all arms.
        criterion: The one that decides; None for all criteria that every arm has together.

    Raises:
        InvalidArgument: The arms do not have it, or the criteria have several samplings.
    """
    known = {one.criterion: one.experiment for one in plans[0].criteria}
    for plan in plans[1:]:
        known = {
            one.criterion: known.get(one.criterion, "")
            for one in plan.criteria
            if one.criterion in known
        }
    if criterion is not None:
        if criterion not in known:
            raise InvalidArgument("criterion", criterion, f"be one of {', '.join(known)}")
        return (criterion,), known[criterion]
    decided = {one.criterion for one in plans[0].criteria if one.standing.reported_at is None}
    counted = {name: place for name, place in known.items() if name in decided} or known
    if not counted:
        raise InvalidArgument("criterion", None, "exist: the arms share no criterion")
    experiments = set(counted.values())
    if len(experiments) > 1:
        allowed = "be named: the criteria are asked of different inputs"
        raise InvalidArgument("criterion", None, allowed)
    return tuple(counted), experiments.pop()
