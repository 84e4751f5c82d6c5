"""Whether a judge agrees with people well enough to decide anything, as its labels show it."""

from __future__ import annotations

import math
from enum import StrEnum

from trialwise.stats.agreement import ALL_ALIKE, Confusion
from trialwise.stats.binomial import find_first
from trialwise.stats.rate_intervals import clopper_pearson
from trialwise.stats.result_types import Undefined

#: Krippendorff 2004, p. 241: rely on 0.800 and above, conclude tentatively from 0.667 on.
RELIABLE, TENTATIVE = 0.800, 0.667
#: Below this many labelled units an alpha says little, however high it is.
FEWEST_UNITS = 20


class Certification(StrEnum):
    """What an alpha between a judge and people allows."""

    PASS = "pass"
    MARGINAL = "marginal"
    FAIL = "fail"
    CONTESTABLE = "contestable"
    """Too few labels to say, or labels that show no agreement beyond chance."""


def alpha_lower_bound(confusion: Confusion, *, confidence: float = 0.95) -> float | Undefined:
    """The alpha that a judge's labels show: the true one is at least this, at the confidence.

    For two raters and two ratings alpha is 1 − d/e: d is the share of units on which they differ,
    and e the disagreement that chance gives at the share of passes. The bound puts the one-sided
    Clopper–Pearson limit of d in its place and keeps e as observed. Enumerated over all tables, the
    bound exceeds the true alpha in at most 1 − confidence of gold sets, with 20 to 400 labels of
    which 2 % to 98 % pass. The fewer units pass or fail, the lower it is.

    Parameters
    ----------
    confusion : Confusion
        The judge's verdicts beside people's labels.
    confidence : float
        Strictly between 0 and 1. One-sided.

    Returns
    -------
    float or Undefined
        Undefined where judge and people gave one rating throughout.

    Examples
    --------
    >>> measured = Confusion(true_pass=48, false_pass=2, true_fail=48, false_fail=2)
    >>> round(alpha_lower_bound(measured), 3)
    0.822
    """
    limit = clopper_pearson(
        confusion.disagreements, confusion.labels, confidence=confidence, side="upper"
    ).high
    chance = _chance_disagreement(confusion)
    return chance if isinstance(chance, Undefined) else 1 - limit / chance


def certify_judge(confusion: Confusion, *, confidence: float | None = 0.95) -> Certification:
    """Whether a judge agrees with people well enough for its verdicts to decide anything.

    By nominal alpha, with Krippendorff's customary limits: 0.800 passes, 0.667 is marginal. The
    labels must show the limit (`alpha_lower_bound`): of judges whose true alpha is below 0.800, at
    most 5 % pass. An estimate that happens to be above it is not enough, because with 50 labels a
    judge of 0.750 has one in about 40 % of gold sets. A judge whose estimate is at least 0.667 and
    whose bound is lower is contestable: its labels are too few to say. Fewer than 20 labels, and
    ratings that are all alike, are contestable too.

    Parameters
    ----------
    confusion : Confusion
        The judge's verdicts beside people's labels.
    confidence : float or None
        Strictly between 0 and 1. None takes the estimate instead of the bound, and lets a judge
        pass where all ratings are alike, as cerberus does.

    Examples
    --------
    >>> certify_judge(Confusion(true_pass=48, false_pass=2, true_fail=48, false_fail=2))
    <Certification.PASS: 'pass'>
    >>> few = Confusion(true_pass=12, false_pass=1, true_fail=12, false_fail=0)
    >>> certify_judge(few), certify_judge(few, confidence=None)
    (<Certification.CONTESTABLE: 'contestable'>, <Certification.PASS: 'pass'>)
    """
    if confusion.labels < FEWEST_UNITS:
        return Certification.CONTESTABLE
    chance = _chance_disagreement(confusion)
    if isinstance(chance, Undefined):
        return Certification.PASS if confidence is None else Certification.CONTESTABLE
    estimate = 1 - confusion.disagreements / confusion.labels / chance
    if confidence is None:
        return _certify(estimate)
    shown = alpha_lower_bound(confusion, confidence=confidence)
    assert not isinstance(shown, Undefined)  # both are undefined together
    if shown < TENTATIVE <= estimate:
        return Certification.CONTESTABLE
    return _certify(shown)


def labels_to_certify(confusion: Confusion, *, confidence: float = 0.95) -> int | Undefined:
    """About how many labels in all would certify a judge that goes on as it did on these.

    The smallest multiple of the shares in `confusion`, rounded to whole labels, whose bound reaches
    0.800.

    Parameters
    ----------
    confusion : Confusion
        The judge's verdicts beside people's labels.
    confidence : float
        Strictly between 0 and 1. One-sided.

    Returns
    -------
    int or Undefined
        Undefined where alpha is undefined or not above 0.800: then more labels do not help.

    Examples
    --------
    >>> labels_to_certify(Confusion(true_pass=12, false_pass=1, true_fail=12, false_fail=0))
    88
    """
    chance = _chance_disagreement(confusion)
    if isinstance(chance, Undefined):
        return chance
    allowed, differing = (1 - RELIABLE) * chance, confusion.disagreements / confusion.labels
    if differing >= allowed:
        return Undefined("its agreement is too low, whatever the number of labels")

    def is_enough(labels: int) -> bool:
        k = math.ceil(differing * labels - 1e-9)
        return clopper_pearson(k, labels, confidence=confidence, side="upper").high <= allowed

    most = max(confusion.labels, FEWEST_UNITS)
    while not is_enough(most):
        most *= 2
    return find_first(FEWEST_UNITS - 1, most, is_enough)


def _certify(alpha: float) -> Certification:
    if alpha >= RELIABLE:
        return Certification.PASS
    return Certification.MARGINAL if alpha >= TENTATIVE else Certification.FAIL


def _chance_disagreement(confusion: Confusion) -> float | Undefined:
    """The share of disagreement that chance gives: 1 − alpha is the observed share over this."""
    ratings = 2 * confusion.labels
    passes = 2 * confusion.true_pass + confusion.disagreements
    if passes in (0, ratings):
        return Undefined(ALL_ALIKE)
    return 2 * passes * (ratings - passes) / (ratings * (ratings - 1))
