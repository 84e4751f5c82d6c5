"""The score of one reply: what several graders say of it, each with its weight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from trialwise.model.criterion import Criterion
from trialwise.model.outcome import CheckResult, ErrorClass, FailReason, Outcome, reaches
from trialwise.model.postcondition import Appraisal

#: Graders whose scores a failure names; the others are in the record.
_NAMED = 6


class Panel(NamedTuple):
    """The checks of a criterion that grades, and the score at which a reply passes."""

    criterion: str
    graders: tuple[tuple[str, float], ...]
    """The name and the weight of each."""
    pass_at: float

    @classmethod
    def of(cls, criterion: Criterion) -> Panel | None:
        """Return the panel of a criterion; None where its checks only pass or fail."""
        pass_at = criterion.lowest_pass
        return None if pass_at is None else cls(criterion.name, criterion.graders, pass_at)

    def grade(self, answers: Sequence[Appraisal]) -> Outcome:
        """Return the outcome of a reply: Σ weight · score / Σ weight, which passes or does not.

        A reply that a grader could not read gets 0 from it. Where a grader has no answer, or what
        was recorded does not tell, the reply is not measured.

        Args:
            answers: What each grader says, in their order.
        """
        for (name, _), one in zip(self.graders, answers, strict=True):
            if one.error_class is not ErrorClass.NONE:
                return Outcome(
                    criterion=self.criterion,
                    result=one.result,
                    postcondition=name,
                    error_class=one.error_class,
                )
            if one.result.reason is FailReason.UNKNOWN:
                return Outcome.of_failure(self.criterion, one.result, name)
        marks = tuple(one.result.mark for one in answers)
        weights = [weight for _, weight in self.graders]
        total = math.fsum(w * mark for w, mark in zip(weights, marks, strict=True))
        score = min(1.0, total / math.fsum(weights))
        if reaches(score, self.pass_at):
            result = CheckResult(passed=True, score=score)
            return Outcome(criterion=self.criterion, result=result, marks=marks)
        worst = min(range(len(marks)), key=lambda place: marks[place])
        said = answers[worst].result
        return Outcome(
            criterion=self.criterion,
            result=CheckResult.fail(
                self._explain(score, marks, said),
                evidence=said.evidence,
                reason=said.reason or FailReason.CONDITION,
                score=score,
            ),
            postcondition=self.graders[worst][0],
            marks=marks,
        )

    def _explain(self, score: float, marks: Sequence[float], worst: CheckResult) -> str:
        limit = f"the score is {score:.6g}, and {self.pass_at:g} passes"
        if len(marks) == 1:
            is_told = not worst.explanation or worst.explanation.startswith("the score is ")
            return worst.explanation or limit if is_told else f"{limit}: {worst.explanation}"
        named = [
            f"{name} {mark:.6g}"
            for (name, _), mark in zip(self.graders[:_NAMED], marks, strict=False)
        ]
        more = [f"{len(marks) - _NAMED} more"] if len(marks) > _NAMED else []
        return f"{limit}: {', '.join([*named, *more])}"
