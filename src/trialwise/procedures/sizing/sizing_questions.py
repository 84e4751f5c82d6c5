"""What a sequential plan is asked: two rates to tell apart, how surely, and within which means."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trialwise.decimals import complement
from trialwise.errors import InvalidArgument
from trialwise.procedures.sizing.sizing_base import PowerQuestion
from trialwise.stats.compliance_cutoffs import check_required_rate
from trialwise.stats.sequential.bound import fixed_size
from trialwise.stats.sequential.hypotheses import default_alternative
from trialwise.validation import (
    require_choice,
    require_count,
    require_given,
    require_open_rate,
    require_rate,
)

#: The longest design planned for: a search takes seconds at a thousand trials, a minute here.
LONGEST = 20_000


class Correction(StrEnum):
    """How the level is shared among criteria that are decided on the same trials."""

    NONE = "none"
    BONFERRONI = "bonferroni"


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialQuestion(PowerQuestion):
    """What is asked: tell a good rate from a bad one, at a confidence and a power.

    The confidence is 1 − P(FAIL) at the required rate, over all criteria together if corrected; the
    power is 1 − P(PASS) at the alternative.
    """

    required_rate: float
    """The good rate: FAIL is to be rare here and above."""
    alternative_rate: float
    """The bad rate: PASS is to be rare here and below."""
    expected_rate: float | None = None
    """The true rate at which the ways to ask are compared; half the allowed failures if None."""
    max_trials: int | None = None
    batch: int = 1
    """Results are judged every so many trials."""
    criteria: int = 1
    correction: Correction = Correction.NONE
    concurrency: int = 1

    def __post_init__(self) -> None:
        PowerQuestion.__post_init__(self)
        check_required_rate(self.required_rate)
        require_open_rate("alternative_rate", self.alternative_rate)
        if self.alternative_rate >= self.required_rate:
            allowed = f"lie below the required rate ({self.required_rate:g})"
            raise InvalidArgument("alternative_rate", self.alternative_rate, allowed)
        if self.family_alpha + self.beta >= 1:
            allowed = f"be above 1 - confidence ({self.family_alpha:g})"
            raise InvalidArgument("power", self.power, allowed)
        if self.expected_rate is not None:
            require_rate("expected_rate", self.expected_rate)
        require_given(self, "batch criteria concurrency max_trials", require_count, minimum=1)
        require_choice("correction", self.correction, tuple(Correction))
        if (self.max_trials or 0) > LONGEST:
            raise InvalidArgument("max_trials", self.max_trials, f"be at most {LONGEST}")

    @property
    def family_alpha(self) -> float:
        """1 − confidence, in decimals."""
        return complement(self.confidence)

    @property
    def alpha(self) -> float:
        """P(FAIL) allowed to each criterion at the required rate."""
        shares = self.criteria if self.correction is Correction.BONFERRONI else 1
        return self.family_alpha / shares

    @property
    def beta(self) -> float:
        """1 − power, in decimals."""
        return complement(self.power)

    @classmethod
    def usual_alternative(cls, required_rate: float) -> float:
        """Return the bad rate where none is given: ten points lower, but at least 1 %."""
        return default_alternative(check_required_rate(required_rate))

    @property
    def fixed_trials(self) -> int:
        """The smallest fixed sample that keeps both errors, exactly."""
        rates = self.required_rate, self.alternative_rate
        try:
            return fixed_size(*rates, alpha=self.alpha, beta=self.beta).trials
        except InvalidArgument:
            allowed = f"lie further below the required rate ({self.required_rate:g})"
            raise InvalidArgument("alternative_rate", self.alternative_rate, allowed) from None


def resolved_max_trials(question: SequentialQuestion) -> int:
    """Return the most trials: as asked, or twice the exact fixed sample in whole batches.

    >>> resolved_max_trials(SequentialQuestion(required_rate=0.9, alternative_rate=0.8))
    156
    """
    if question.max_trials is not None:
        return question.max_trials
    least = question.fixed_trials
    batches = -(-2 * least // question.batch)
    if batches * question.batch <= LONGEST:
        return batches * question.batch
    if least > LONGEST:
        allowed = (
            f"lie further below the required rate: to tell {question.required_rate:g} from it "
            f"takes {least} trials, and designs are planned for up to {LONGEST}"
        )
        raise InvalidArgument("alternative_rate", question.alternative_rate, allowed)
    return LONGEST
