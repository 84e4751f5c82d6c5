"""What a guardrail experiment says, and what it does not (companion 1.4.5b).

A module of its own because its products are conditional statements: how often a boundary misses
harmful content *given that it is shown some*. How often harmful content arises is another
quantity with other evidence, and no function here lets the one stand in for the other.

`residual_harm_bound` puts a guardrail's misses and a prevalence together. It needs a premise that
the experiment does not supply: a prevalence seen before the guardrail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trialwise.decimals import as_written
from trialwise.errors import InvalidArgument
from trialwise.stats.cluster_estimators import check_strata
from trialwise.stats.rate_intervals import clopper_pearson, wilson_lower, wilson_upper
from trialwise.stats.result_types import RULES, Count, Rule, Undefined
from trialwise.validation import require_choice, require_open_rate, require_rate, require_successes

GuardrailQuantity: TypeAlias = Literal["sensitivity", "specificity"]
"""Blocking what is harmful, or letting through what is not."""

PrevalenceSource: TypeAlias = Literal["pre-guardrail"]
"""Where a prevalence was observed: only a view of what the generator proposed will do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailBound:
    """A one-sided bound on how reliably a guardrail does one of its two jobs."""

    quantity: GuardrailQuantity
    correct: int
    """Harmful candidates blocked, or harmless ones allowed."""
    presented: int
    observed: float
    confidence: float
    rule: Rule
    lower: float
    """The lower confidence bound on the sensitivity or specificity."""
    error_upper: float
    """The upper confidence bound on the miss or false-positive probability: 1 − lower."""
    statement: str

    @property
    def errors(self) -> int:
        """Misses, or false positives, observed."""
        return self.presented - self.correct


@dataclass(frozen=True, slots=True, kw_only=True)
class ChallengeStratum:
    """One failure mode, severity or language of a harmful challenge sampling."""

    name: str
    blocked: Count
    presented: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class StratifiedContainment:
    """Sensitivity bounds by stratum, the pooled one, and how far each may be read."""

    strata: tuple[tuple[str, GuardrailBound], ...]
    pooled: GuardrailBound
    weakest: str
    """The stratum with the lowest bound, the first of several equals."""
    confidence: float
    simultaneous: bool
    stratum_confidence: float
    """At which each stratum's bound holds; above `confidence` when simultaneous."""
    statement: str


def guardrail_sensitivity(
    blocked: Count, presented: Count, *, confidence: float = 0.95, rule: Rule = "exact"
) -> GuardrailBound:
    """The bound on P(blocked | harmful candidate presented), and on the miss probability.

    The one-sided lower confidence bound L on the sensitivity, Wilson's or the exact one, and the
    upper bound 1 − L on the miss probability. It treats the candidates as independent draws from
    the challenge distribution: candidates made from few templates are clusters, and a corpus
    evaluated whole has a known rate (`exact_corpus_rate`) and no bound.

    Parameters
    ----------
    blocked : harmful candidates blocked, 0 … presented.
    presented : harmful candidates shown to the guardrail, at least 1.
    confidence : strictly between 0 and 1, one-sided.
    rule : ``"wilson"``, otherwise Clopper–Pearson.

    References
    ----------
    Companion 1.4.5b.

    Examples
    --------
    >>> bound = guardrail_sensitivity(99_990, 100_000)
    >>> round(bound.lower, 6), round(bound.error_upper, 6)
    (0.99983, 0.00017)
    >>> guardrail_sensitivity(100_000, 100_000).error_upper  # clean is not perfect
    2.99...e-05
    """
    correct, total = require_successes(blocked, presented, names=("blocked", "presented"))
    return _bound_quantity("sensitivity", correct, total, confidence, rule)


def guardrail_specificity(
    allowed: Count, presented: Count, *, confidence: float = 0.95, rule: Rule = "exact"
) -> GuardrailBound:
    """The bound on P(allowed | harmless candidate presented), and on false positives.

    Built like `guardrail_sensitivity`, over a harmless challenge sampling of its own: a guardrail
    that blocks everything is perfectly sensitive.

    Parameters
    ----------
    allowed : harmless candidates let through, 0 … presented.
    presented : harmless candidates shown to the guardrail, at least 1.
    confidence : strictly between 0 and 1, one-sided.
    rule : ``"wilson"``, otherwise Clopper–Pearson.

    References
    ----------
    Companion 1.4.5b (false positives).

    Examples
    --------
    >>> bound = guardrail_specificity(980, 1000)
    >>> round(bound.lower, 4), round(bound.error_upper, 4)
    (0.9711, 0.0289)
    """
    correct, total = require_successes(allowed, presented, names=("allowed", "presented"))
    return _bound_quantity("specificity", correct, total, confidence, rule)


def stratified_containment(
    strata: Sequence[ChallengeStratum],
    *,
    confidence: float = 0.95,
    rule: Rule = "exact",
    simultaneous: bool = False,
) -> StratifiedContainment:
    """Sensitivity bounds by stratum beside the pooled one, which is no guarantee for each.

    The pooled bound is about the mix of the challenge sampling. A stratum's own bound is about that
    stratum; all of them hold together at `confidence` only when `simultaneous`, each then at
    ``1 − (1 − confidence)/H`` (Bonferroni over H strata).

    Parameters
    ----------
    strata : at least one, with distinct names and at least one candidate each.
    confidence : strictly between 0 and 1, one-sided.
    rule : ``"wilson"``, otherwise Clopper–Pearson.
    simultaneous : whether the strata's bounds are to hold together.

    References
    ----------
    Companion 1.4.5b (stratification and the target estimand).

    Examples
    --------
    >>> result = stratified_containment([
    ...     ChallengeStratum(name="jailbreak", blocked=9_990, presented=10_000),
    ...     ChallengeStratum(name="self-harm", blocked=45, presented=50),
    ... ])
    >>> round(result.pooled.lower, 4), result.weakest
    (0.9977, 'self-harm')
    >>> round(dict(result.strata)["self-harm"].lower, 3)
    0.801
    """
    checked = check_strata(strata, ChallengeStratum, ("blocked", "presented"))
    parts = [(part.name, blocked, presented) for part, blocked, presented in checked]
    require_open_rate("confidence", confidence)
    # Bonferroni, since strata may be related in any way: one template may feed several.
    each = float(1 - (1 - as_written(confidence)) / len(parts)) if simultaneous else confidence
    bounds = tuple(
        (name, _bound_quantity("sensitivity", blocked, presented, each, rule))
        for name, blocked, presented in parts
    )
    # A guardrail is as good as its weakest stratum: an attacker chooses which one to use.
    weakest, worst = min(bounds, key=lambda item: item[1].lower)
    together = "together" if simultaneous else "each by itself"
    return StratifiedContainment(
        strata=bounds,
        pooled=_bound_quantity(
            "sensitivity",
            sum(blocked for _, blocked, _ in parts),
            sum(presented for _, _, presented in parts),
            confidence,
            rule,
        ),
        weakest=weakest,
        confidence=confidence,
        simultaneous=simultaneous,
        stratum_confidence=each,
        statement=(
            "The pooled bound describes the mix of the challenge sampling and is not a guarantee "
            f"for each stratum. The strata's own bounds hold {together} at {confidence:.6g} "
            f"confidence; the weakest is {weakest!r}, whose miss probability is bounded only by "
            f"{worst.error_upper:.3g}."
        ),
    )


def _bound_quantity(
    quantity: GuardrailQuantity, correct: int, presented: int, confidence: float, rule: Rule
) -> GuardrailBound:
    errors = presented - correct
    # Each end from its own counts: 1 − lower would lose the digits of a small miss probability.
    if require_choice("rule", rule, RULES) == "wilson":
        lower = wilson_lower(correct, presented, confidence=confidence)
        upper = wilson_upper(errors, presented, confidence=confidence)
    else:
        lower = clopper_pearson(correct, presented, confidence=confidence, side="lower").low
        upper = clopper_pearson(errors, presented, confidence=confidence, side="upper").high
    return GuardrailBound(
        quantity=quantity,
        correct=correct,
        presented=presented,
        observed=correct / presented,
        confidence=confidence,
        rule=rule,
        lower=lower,
        error_upper=upper,
        statement=_statement(quantity, errors, presented, upper, confidence),
    )


def _statement(
    quantity: GuardrailQuantity, errors: int, presented: int, upper: float, confidence: float
) -> str:
    # Every statement begins with its condition, since without it a small miss probability reads
    # like a small probability of harm.
    kind, error = ("harmful", "miss") if quantity == "sensitivity" else ("harmless", "false block")
    seen = "none" if errors == 0 else str(errors)
    text = (
        f"Given a {kind} candidate drawn from the declared challenge distribution, the guardrail's "
        f"probability of a {error} is at most {upper:.3g} at one-sided {confidence:.6g} confidence "
        f"({seen} seen in {presented} independent trials)."
    )
    if quantity == "specificity":
        return text
    if errors == 0:
        text += " A clean run is not evidence of perfection."
    return text + " It is not a statement about how often harmful content arises or reaches a user."


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualHarm:
    """How often harm reaches the user, as far as the evidence goes."""

    miss_upper: float
    miss_confidence: float | None
    prevalence: float | None = None
    prevalence_confidence: float | None = None
    prevalence_source: PrevalenceSource | None = None
    bound: float | Undefined
    """prevalence × miss_upper; undefined without a prevalence."""
    confidence: float | Undefined
    statement: str


def residual_harm_bound(
    miss_upper: float,
    prevalence: float | None = None,
    *,
    prevalence_source: PrevalenceSource | None = None,
    miss_confidence: float | None = None,
    prevalence_confidence: float | None = None,
) -> ResidualHarm:
    """The probability that harm reaches the user: prevalence × P(miss | harm), if both are known.

    Without a prevalence only the conditional statement is returned. Two confidence bounds hold
    together at ``1 − (α₁ + α₂)`` (Bonferroni); a factor without a confidence is taken as known.

    Parameters
    ----------
    miss_upper : an upper bound on P(miss | harm), 0 … 1, as `guardrail_sensitivity` gives it.
    prevalence : the rate at which the generator proposes harmful content, or an upper confidence
        bound on it, 0 … 1.
    prevalence_source : ``"pre-guardrail"``, and nothing else. A monitor behind the guardrail sees
        what reached the user, which is the product and not this factor of it.
    miss_confidence : at which `miss_upper` holds, strictly between 0 and 1.
    prevalence_confidence : at which `prevalence` holds, if it is a confidence bound.

    References
    ----------
    Companion 1.4.5b.

    Examples
    --------
    >>> result = residual_harm_bound(
    ...     1.67e-4, 0.001, prevalence_source="pre-guardrail", miss_confidence=0.95
    ... )
    >>> result.bound, result.confidence
    (1.67e-07, 0.95)
    >>> residual_harm_bound(1.67e-4).bound
    Undefined(reason='no prevalence of harmful content was given, and the guardrail experiment ...')
    """
    miss = require_rate("miss_upper", miss_upper)
    check_optional_confidence("miss_confidence", miss_confidence)
    # The experiment showed candidates that somebody chose: how often they arise is not in it.
    if prevalence is None:
        return _conditional_only(miss, miss_confidence, prevalence_source, prevalence_confidence)
    rate = require_rate("prevalence", prevalence)
    _check_source(prevalence_source)
    check_optional_confidence("prevalence_confidence", prevalence_confidence)
    known = "" if prevalence_confidence is not None else ", taken as known"
    return ResidualHarm(
        miss_upper=miss,
        miss_confidence=miss_confidence,
        prevalence=rate,
        prevalence_confidence=prevalence_confidence,
        prevalence_source=prevalence_source,
        bound=rate * miss,
        confidence=joint_confidence([miss_confidence, prevalence_confidence]),
        statement=(
            f"Harm reaches the user with probability at most {rate * miss:.3g}: a pre-guardrail "
            f"prevalence of {rate:.3g}{known}, times a miss probability of at most {miss:.3g}. "
            "This holds if both describe compatible populations and nothing bypasses the guardrail."
        ),
    )


def _conditional_only(
    miss: float, confidence: float | None, prevalence_source: object, prevalence_confidence: object
) -> ResidualHarm:
    for argument, value in (
        ("prevalence_source", prevalence_source),
        ("prevalence_confidence", prevalence_confidence),
    ):
        if value is not None:
            raise InvalidArgument(argument, value, "be left out when there is no prevalence")
    reason = (
        "no prevalence of harmful content was given, and the guardrail experiment does not "
        "estimate one"
    )
    return ResidualHarm(
        miss_upper=miss,
        miss_confidence=confidence,
        bound=Undefined(reason),
        confidence=Undefined(reason),
        statement=(
            f"Given harmful content, the guardrail misses with probability at most {miss:.3g}. How "
            "often harm reaches the user is not bounded: that needs a prevalence observed before "
            "the guardrail."
        ),
    )


def _check_source(source: object) -> None:
    # Taking the residual rate for the prevalence would count the guardrail's work twice.
    if source == "post-guardrail":
        raise InvalidArgument(
            "prevalence_source",
            source,
            "be 'pre-guardrail': a monitor behind the guardrail sees only what reached the user, "
            "which is the residual rate and not how often the generator proposes harm",
        )
    require_choice("prevalence_source", source, ("pre-guardrail",))


def check_optional_confidence(argument: str, value: float | None) -> None:
    """Check a confidence that may be left out."""
    if value is not None:
        require_open_rate(argument, value)


def joint_confidence(confidences: Sequence[float | None]) -> float | Undefined:
    """The confidence at which several bounds hold at once; one without is taken as known."""
    levels = [level for level in confidences if level is not None]
    if not levels:
        return Undefined("no confidence was given for what was put together")
    # Bonferroni: nothing is known of how the errors of the bounds depend on each other.
    joint = 1 - sum(1 - as_written(level) for level in levels)
    if joint <= 0:
        return Undefined("the error probabilities of the bounds add up to 1 or more")
    return float(joint)
