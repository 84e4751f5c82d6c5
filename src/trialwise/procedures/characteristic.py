"""The operating characteristic of one criterion: how its rule decides, whatever the true rate is.

Each procedure makes it from the plan that decides, so that margin, `undecided`, intent, early stops
and a baseline's own sampling are all in it. Whatever states a chance asks this object, and
`chances` puts the criteria of contracts and suites together. Nothing else computes a chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from trialwise.decimals import as_written
from trialwise.documents.numbers import as_percent
from trialwise.model.plan import CriterionPlan, Limits
from trialwise.model.verdict import Decision
from trialwise.stats.binomial import raw_cdf, raw_tail

#: The mean of the trials of a fixed design takes a walk over trials × failures. Beyond this many
#: states nobody waits for it.
_MOST_STATES = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """How likely each decision is at one true rate."""

    rate: float
    meaning: str = ""
    """What this rate stands for, such as "as required"."""
    passes: float
    fails: float
    inconclusive: float = 0.0
    mean_trials: float | None = None

    def of(self, decision: Decision) -> float:
        """Return the chance of a PASS or of a FAIL."""
        return self.passes if decision is Decision.PASS else self.fails


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleError:
    """One way in which a rule can be wrong."""

    wrong: Decision
    """The decision that is wrong."""
    event: str
    allowed: float | None
    """The limit that the design keeps; None where it keeps none."""
    actual: float | None = None
    """How often it happens at `rate`, exactly; None where that is not known."""
    rate: float | None = None
    """The true rate at which it happens most often."""
    is_worst: bool = True
    """Whether `actual` is the most for every true state, and not for one of them only."""

    @classmethod
    def at_rate(
        cls, wrong: Decision, at: Callable[[float], Chance], rate: float, allowed: float | None
    ) -> RuleError:
        """Return how often a decision is made at the true rate where it is wrong most often."""
        event = f"{wrong} at a true rate of {as_percent(rate)}"
        actual = at(rate).of(wrong)
        return cls(wrong=wrong, event=event, allowed=allowed, actual=actual, rate=rate)

    @property
    def value(self) -> float:
        """The most that is known of it: exact where it can be, else the limit."""
        # At one state only, the error may be larger at another, where the limit still holds.
        known = [one for one in (self.actual, self.allowed) if one is not None]
        return known[0] if self.is_worst else max(known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Characteristic:
    """How a rule decides: its chances at any true rate, and its errors."""

    at: Callable[[float], Chance] | None = None
    """The chances at a true rate; None where they depend on more than a rate."""
    limits: Limits | None = None
    """Of a fixed number of trials: its mean trials take a walk, which only a forecast is worth."""
    states: tuple[tuple[float, str], ...] = ()
    """The true rates that show what the rule does, each with its meaning."""
    errors: tuple[RuleError, ...] = ()
    uncounted: Mapping[Decision, str] = field(default_factory=dict)
    """Why a wrong PASS or FAIL is not limited, as what follows the name of the criterion."""
    strength: tuple[float, Decision] | None = None
    """The true rate, and the decision that a design with adequate power makes there."""

    @property
    def chances(self) -> tuple[Chance, ...]:
        """The chances at each of the rates that show what the rule does."""
        if self.at is None:
            return ()
        return tuple(self.foresee(rate, meaning) for rate, meaning in self.states)

    def foresee(self, rate: float, meaning: str = "") -> Chance:
        """Return the chances at a true rate with the mean trials, which may take a walk.

        Args:
            rate: The true rate.
            meaning: What it stands for.
        """
        assert self.at is not None
        found = replace(self.at(rate), meaning=meaning)
        if self.limits is None:
            return found
        return replace(found, mean_trials=count_mean_trials(self.limits, rate))

    def error_of(self, wrong: Decision) -> RuleError | None:
        """Return how often a decision is wrong; None where that is not limited."""
        return next((one for one in self.errors if one.wrong is wrong), None)

    @property
    def power(self) -> float | None:
        """The chance of the decision that is wanted where the power is claimed."""
        if self.strength is None or self.at is None:
            return None
        rate, wanted = self.strength
        return self.at(rate).of(wanted)


def limit_by_levels(plan: CriterionPlan, alpha_limits: Decision = Decision.PASS) -> Characteristic:
    """Return what is known where no rule in counts decides: the levels that its bounds keep.

    Estimators, means and rates that are corrected for a judge's errors depend on more than a rate.

    Args:
        plan: With its levels.
        alpha_limits: The wrong decision that `alpha` limits. The other one has `beta` or
            `fail_alpha`, if it is limited.
    """
    levels = {Decision.PASS: plan.alpha, Decision.FAIL: plan.failing.fail_alpha}
    if alpha_limits is Decision.FAIL:
        levels = {Decision.PASS: plan.beta, Decision.FAIL: plan.alpha}
    names = {Decision.PASS: "PASS although it is too low", Decision.FAIL: "FAIL as required"}
    why = {Decision.PASS: NO_KNOWN_ERROR, Decision.FAIL: UNSHOWN}
    kept = {wrong: level for wrong, level in levels.items() if level is not None}
    errors = (RuleError(wrong=one, event=names[one], allowed=level) for one, level in kept.items())
    uncounted = {wrong: why[wrong] for wrong in levels if wrong not in kept}
    return Characteristic(errors=tuple(errors), uncounted=uncounted)


#: Why a wrong decision is not counted where nothing limits it.
NO_KNOWN_ERROR = "no known error"
#: Why a wrong FAIL is not limited where whatever is not shown FAILs.
UNSHOWN = "also fails where the required rate is only not shown"


def count_fixed(
    plan: CriterionPlan, cutoff: int, most: int, required: float, shown: float
) -> Characteristic:
    """Return the characteristic of a fixed number of trials.

    Args:
        plan: Its levels and its limits.
        cutoff: The fewest successes that PASS.
        most: The most successes that FAIL.
        required: The rate that is required.
        shown: The rate that a PASS rules out: lower by the margin.
    """
    size = plan.trials

    def at(rate: float) -> Chance:
        passes, fails = raw_tail(cutoff, size, rate), raw_cdf(most, size, rate)
        still_open = 0.0 if most == cutoff - 1 else max(0.0, 1 - passes - fails)
        return Chance(rate=rate, passes=passes, fails=fails, inconclusive=still_open)

    half = float((as_written(required) + 1) / 2)
    rates = ((required, "as required"), (half, "half the allowed failures"))
    lower = () if shown == required else ((shown, "the margin below"),)
    return Characteristic(
        at=at,
        limits=plan.limits,
        states=(*rates, *lower),
        errors=(
            RuleError.at_rate(Decision.PASS, at, shown, plan.alpha),
            RuleError.at_rate(Decision.FAIL, at, required, plan.failing.fail_alpha),
        ),
        strength=(half if shown == required else required, Decision.PASS),
    )


def count_mean_trials(limits: Limits, rate: float) -> float | None:
    """Compute the mean trials of a fixed design, which ends once its verdict is certain.

    None where that takes too long, or where no count decides before the end.
    """
    size, cutoff = limits.cap, limits.cutoff
    if cutoff is None or not limits.curtailed or cutoff > size:
        return None
    most = cutoff - 1 if limits.most_failing is None else limits.most_failing
    if size * min(size - most, size) > _MOST_STATES:
        return None
    # A run of a fixed size needs no walk; `check` does.
    from trialwise.stats.sequential.walks import Rule, characteristic

    # As failures after n trials: it PASSes once the cutoff's successes are in, FAILs once more have
    # failed than it allows, and is left open once neither can be reached.
    open_from = size - cutoff + 1
    futile = [(open_from, n - most - 1) for n in range(size + 1)] if limits.ends_open else []
    rule = Rule([n - cutoff for n in range(size + 1)], [size - most] * (size + 1), futile)
    return characteristic(rule, rate).mean_trials
