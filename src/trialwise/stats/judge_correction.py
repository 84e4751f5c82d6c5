"""A judged rate, corrected for the judge's own errors as people's labels measured them.

A judge that passes 10 % of what is bad reports 82 % where 80 % is true, and no number of trials
mends that: the interval around 82 % only closes in on the wrong number. Two corrections, for two
ways to come by labels:

- the *rectifier* adds what the judge missed less what it let through, as shares of all labels
  (prediction-powered inference with λ = 1; Angelopoulos et al. 2023). The labelled units must be
  drawn as the judged ones were: the same service, the same inputs.
- *Rogan–Gladen* divides by how well the judge tells good from bad (Rogan & Gladen 1978). Only its
  sensitivity and specificity must carry over, so labels may be collected by class. Weak judges
  make it wide.

Both carry the uncertainty of the labels, which more trials do not shrink.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trialwise.stats.agreement import Confusion
from trialwise.stats.binomial import upper_z
from trialwise.stats.judged_tests import JudgedTest
from trialwise.stats.paired import paired_difference_interval
from trialwise.stats.rate_intervals import clopper_pearson, wilson_interval
from trialwise.stats.result_types import RULES, Count, Interval, Rule, Undefined
from trialwise.validation import require_choice, require_open_rate, require_successes

CorrectionMethod: TypeAlias = Literal["exact", "boxes", "cells", "score"]
"""How an interval is made: by exact tests, by exact or Wilson's cells, or by square-and-add."""

METHODS: tuple[CorrectionMethod, ...] = ("exact", "boxes", "cells", "score")

#: Of the error allowed, the trials' part; the rest goes to the labels, which are the dearer ones.
SAMPLING_SHARE = 1 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAccuracy:
    """What a judge gets right of what is good and of what is bad."""

    sensitivity: float | Undefined
    """P(the judge passes | people pass)."""
    sensitivity_interval: Interval | Undefined
    specificity: float | Undefined
    """P(the judge fails | people fail)."""
    specificity_interval: Interval | Undefined


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectifier:
    """What to add to a judged rate: (false fails − false passes)/labels, with its band."""

    value: float
    interval: Interval
    """From two cells, together at the confidence."""
    confusion: Confusion

    @property
    def floor(self) -> float:
        """Half the band's width: no number of trials makes the corrected rate surer than this."""
        return self.interval.width / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedRate:
    """A judged rate corrected for the judge's errors."""

    rate: float
    """Cut at 0 and 1, as the interval is."""
    interval: Interval
    judged_rate: float
    trials: int
    confusion: Confusion
    method: CorrectionMethod


def judge_accuracy(
    confusion: Confusion, *, confidence: float = 0.95, rule: Rule = "exact"
) -> JudgeAccuracy:
    """Sensitivity and specificity of a judge, each with its own two-sided interval.

    The true passes among what people pass, and the true fails among what people fail.

    Parameters
    ----------
    confusion : Confusion
        The judge's verdicts beside people's labels.
    confidence : float
        Of each interval, strictly between 0 and 1.
    rule : {"exact", "wilson", "fisher"}
        Wilson or Clopper–Pearson.

    Returns
    -------
    JudgeAccuracy
        Sensitivity is Undefined without a label that passes, specificity without one that fails.

    Examples
    --------
    >>> accuracy = judge_accuracy(
    ...     Confusion(true_pass=45, false_pass=10, true_fail=40, false_fail=5))
    >>> accuracy.sensitivity, accuracy.specificity
    (0.9, 0.8)
    """
    level = require_open_rate("confidence", confidence)
    require_choice("rule", rule, RULES)

    def share(right: int, of: int, kind: str) -> tuple[float | Undefined, Interval | Undefined]:
        if not of:
            missing = Undefined(f"no label says {kind}")
            return missing, missing
        return right / of, _cell(right, of, 1 - level, rule)

    sensitivity = share(confusion.true_pass, confusion.good, "pass")
    specificity = share(confusion.true_fail, confusion.bad, "fail")
    return JudgeAccuracy(
        sensitivity=sensitivity[0],
        sensitivity_interval=sensitivity[1],
        specificity=specificity[0],
        specificity_interval=specificity[1],
    )


def rectifier(confusion: Confusion, *, confidence: float = 0.95, rule: Rule = "exact") -> Rectifier:
    """What to add to a judged rate, δ = (false fails − false passes)/labels, with its band.

    The band is [L_a − U_b, U_a − L_b] from the intervals [L_a, U_a] of the false fails and
    [L_b, U_b] of the false passes, each at 1 − (1 − confidence)/2, so that both hold together.

    Parameters as for `judge_accuracy`; here the confidence is that of the band.

    Examples
    --------
    >>> confusion = Confusion(true_pass=45, false_pass=10, true_fail=40, false_fail=5)
    >>> delta = rectifier(confusion, rule="wilson")
    >>> delta.value, round(delta.interval.low, 6), round(delta.interval.high, 6)
    (-0.05, -0.168258, 0.073042)
    >>> round(delta.floor, 6)
    0.12065
    """
    alpha = 1 - require_open_rate("confidence", confidence)
    require_choice("rule", rule, RULES)
    m = confusion.labels
    missed = _cell(confusion.false_fail, m, alpha / 2, rule)
    let_through = _cell(confusion.false_pass, m, alpha / 2, rule)
    return Rectifier(
        value=_shift(confusion),
        interval=Interval(
            missed.low - let_through.high,
            missed.high - let_through.low,
            confidence=confidence,
            method=f"two {rule} cells",
        ),
        confusion=confusion,
    )


def rectified_rate(
    passed: Count,
    trials: Count,
    confusion: Confusion,
    *,
    confidence: float = 0.95,
    method: CorrectionMethod = "exact",
) -> CorrectedRate:
    """The judged rate plus the rectifier, with an interval for both uncertainties.

    - "exact": the rates that no exact one-sided test rejects, half of the error on each side; see
      `judged_tests`. At least `confidence` at every rate and for every judge.
    - "boxes": Clopper–Pearson cells, their errors added up, a third of them the trials'. It covers
      as surely and is about twice as wide.
    - "cells": the same with Wilson cells, as `rectifier` has them.
    - "score": Wilson's interval for the judged rate and Tango's for the rectifier, a paired
      difference, squared and added (Zou & Donner 2008). Near `confidence`, not guaranteed: over the
      grid of the tests at 95 % its least and mean coverage are 0.947 and 0.968 with 50 labels and
      100 trials.

    The labelled units must be drawn as the judged ones were.

    Parameters
    ----------
    passed, trials : int
        What the judge passed, of how many; trials ≥ 1.
    confusion : Confusion
        The judge's verdicts beside people's labels.
    confidence : float
        Strictly between 0 and 1, two-sided.
    method : {"exact", "boxes", "cells", "score"}
        The construction.

    Examples
    --------
    >>> gold = Confusion(true_pass=70, false_pass=6, true_fail=20, false_fail=4)
    >>> corrected = rectified_rate(164, 200, gold, method="score")
    >>> [round(value, 3) for value in (corrected.rate, *corrected.interval)]
    [0.8, 0.707, 0.883]
    """
    k, n = require_successes(passed, trials)
    require_choice("method", method, METHODS)
    return _correct(JudgedTest(k, n, confusion, "rectifier"), confidence, method)


#: Labels of a class below which the score interval misses far more often than it says.
_FEWEST_FOR_SCORE = 8


def rogan_gladen_rate(
    passed: Count,
    trials: Count,
    confusion: Confusion,
    *,
    confidence: float = 0.95,
    method: CorrectionMethod = "exact",
) -> CorrectedRate | Undefined:
    """(judged rate + specificity − 1)/(sensitivity + specificity − 1), with an interval.

    - "exact": as for `rectified_rate`; at least `confidence`.
    - "boxes": the worst of the box that three Clopper–Pearson cells span. It covers as surely and
      is wider.
    - "cells": the same with Wilson cells.
    - "score": after Lang & Reiczigel 2014, who also add two to the labels that the variances of the
      accuracies are divided by; without, it is a little wider. Near `confidence`, not guaranteed:
      over the grid of the tests at 95 % its least and mean coverage are 0.957 and 0.976 with 25
      labels of each class and 100 trials, 0.933 and 0.976 with 40 and 10. With fewer labels of one
      class it falls far below (0.886 with 45 and 5, near 0 with 19 and 1), so that it needs 8.

    Labels may be collected by class. Where the box reaches a judge that tells nothing apart, the
    interval is [0, 1].

    Parameters as for `rectified_rate`; the labels' part of the error is halved between the classes.

    Returns
    -------
    CorrectedRate or Undefined
        Undefined without labels of both classes, for a judge no better than chance, and by "score"
        with fewer than 8 labels of either class.

    Examples
    --------
    >>> gold = Confusion(true_pass=45, false_pass=10, true_fail=40, false_fail=5)
    >>> corrected = rogan_gladen_rate(76, 100, gold, method="score")
    >>> [round(value, 3) for value in (corrected.rate, *corrected.interval)]
    [0.8, 0.642, 0.974]
    """
    k, n = require_successes(passed, trials)
    require_choice("method", method, METHODS)
    require_open_rate("confidence", confidence)
    if not confusion.good or not confusion.bad:
        return Undefined("labels of both classes are needed: some that pass and some that fail")
    if method == "score" and min(confusion.good, confusion.bad) < _FEWEST_FOR_SCORE:
        return Undefined(
            f"the score interval needs at least {_FEWEST_FOR_SCORE} labels that pass and as many "
            'that fail: use method="exact"'
        )
    if confusion.true_pass / confusion.good + confusion.true_fail / confusion.bad <= 1:
        return Undefined("the judge tells good from bad no better than chance")
    return _correct(JudgedTest(k, n, confusion, "rogan-gladen"), confidence, method)


def pooled_rate(
    passed: Count, trials: Count, confusion: Confusion, *, confidence: float = 0.95
) -> CorrectedRate:
    """The rate of labels and trials together, corrected for the judge's errors on the trials.

    The labelled outputs must be those of the same service, as it is now, on the same inputs. Then
    this is the narrowest of the corrected rates: what people passed of the labels and what the
    judge passed of the trials are counted together, plus the judge's net error on the trials. The
    interval holds the rates that no exact one-sided test rejects.

    Parameters as for `rectified_rate`.

    Examples
    --------
    >>> gold = Confusion(true_pass=70, false_pass=6, true_fail=20, false_fail=4)
    >>> round(pooled_rate(164, 200, gold).rate, 3)
    0.78
    """
    k, n = require_successes(passed, trials)
    return _correct(JudgedTest(k, n, confusion, "pooled"), confidence, "exact")


def _correct(test: JudgedTest, confidence: float, method: CorrectionMethod) -> CorrectedRate:
    """The estimate of a test, with an interval by the method that is asked for."""
    require_open_rate("confidence", confidence)
    ends = _find_ends(test, confidence, method)
    return CorrectedRate(
        rate=unit(test.estimate),
        interval=Interval(*map(unit, ends), confidence=confidence, method=method),
        judged_rate=test.passed / test.trials,
        trials=test.trials,
        confusion=test.labels,
        method=method,
    )


def _find_ends(
    test: JudgedTest, confidence: float, method: CorrectionMethod
) -> tuple[float, float]:
    k, n, labels = test.passed, test.trials, test.labels
    by_class, alpha = test.correction == "rogan-gladen", (1 - confidence) / 2
    if method == "exact":
        return test.lower_bound(alpha), test.upper_bound(alpha)
    if method == "score":
        if by_class:
            return _lang_reiczigel(k, n, labels, upper_z(alpha))
        return _squared_and_added(k, n, labels, confidence)
    rule: Rule = "exact" if method == "boxes" else "wilson"
    # The errors of the trials and of the labels add up to all of it, whatever they have in common.
    sampling, of_labels = shares(confidence)
    cell = _cell(k, n, sampling, rule)
    if by_class:
        accuracies = (labels.true_pass, labels.good), (labels.true_fail, labels.bad)
        return _box(cell, *(_cell(*one, of_labels / 2, rule) for one in accuracies))
    band = rectifier(labels, confidence=1 - of_labels, rule=rule).interval
    return cell.low + band.low, cell.high + band.high


def labels_needed(confusion: Confusion, half_width: float, *, confidence: float = 0.95) -> int:
    """How many labels make the rectifier's Wilson band about as narrow as asked for.

    ⌈4 z² ē/w²⌉ at the mean ē of the two error rates seen, or ⌈z² (1 − w)/w⌉ without any error, z
    at (1 − confidence)/4. A plan, not a promise: the error rates will be others.

    Parameters
    ----------
    confusion : Confusion
        The labels so far.
    half_width : float
        w: at most this far either way, strictly between 0 and 1.
    confidence : float
        Of the band.

    Examples
    --------
    >>> labels_needed(Confusion(true_pass=45, false_pass=5, true_fail=45, false_fail=5), 0.05)
    402
    >>> labels_needed(Confusion(true_pass=50, false_pass=0, true_fail=50, false_fail=0), 0.10)
    46
    """
    w = require_open_rate("half_width", half_width)
    z = upper_z((1 - require_open_rate("confidence", confidence)) / 4)
    share = confusion.disagreements / (2 * confusion.labels)
    needed = 4 * z * z * share / (w * w) if share else z * z * (1 - w) / w
    return math.ceil(needed)


def shares(confidence: float) -> tuple[float, float]:
    """The error left to the trials and to the labels."""
    alpha = 1 - require_open_rate("confidence", confidence)
    return alpha * SAMPLING_SHARE, alpha * (1 - SAMPLING_SHARE)


def unit(value: float) -> float:
    """A rate cut at 0 and 1."""
    return min(max(value, 0.0), 1.0)


def _cell(k: int, n: int, alpha: float, rule: Rule) -> Interval:
    make = wilson_interval if rule == "wilson" else clopper_pearson
    return make(k, n, confidence=1 - alpha)


def _shift(confusion: Confusion) -> float:
    return (confusion.false_fail - confusion.false_pass) / confusion.labels


def _squared_and_added(
    k: int, n: int, confusion: Confusion, confidence: float
) -> tuple[float, float]:
    """The two distances to each end, at right angles: the errors are independent."""
    judged, cell = k / n, wilson_interval(k, n, confidence=confidence)
    # What people pass less what the judge passes, on the same units: a paired difference.
    band = paired_difference_interval(
        confusion.true_pass,
        confusion.false_fail,
        confusion.false_pass,
        confusion.true_fail,
        confidence=confidence,
    )
    shift = _shift(confusion)
    centre = judged + shift
    return (
        centre - math.hypot(judged - cell.low, shift - band.low),
        centre + math.hypot(cell.high - judged, band.high - shift),
    )


def _box(judged: Interval, sensitivity: Interval, specificity: Interval) -> tuple[float, float]:
    """The least and greatest rate over the box.

    (q + t − 1)/(s + t − 1) rises in q, falls in s and rises in t wherever it lies in [0, 1].
    """
    if sensitivity.low + specificity.low <= 1:
        return 0.0, 1.0
    low = (judged.low + specificity.low - 1) / (sensitivity.high + specificity.low - 1)
    high = (judged.high + specificity.high - 1) / (sensitivity.low + specificity.high - 1)
    return low, high


def _lang_reiczigel(k: int, n: int, confusion: Confusion, z: float) -> tuple[float, float]:
    """Wilson's shrinkage of the judged rate and Laplace's of the accuracies, then a normal one.

    With q, s, t the shrunken judged rate, sensitivity and specificity, r their corrected rate:
    r + 2z²(r v_s − (1 − r) v_t) ± z √(q(1 − q)/(n + z²) + r² v_s + (1 − r)² v_t)/(s + t − 1), where
    v_s = s(1 − s)/good and v_t = t(1 − t)/bad.
    """
    size = n + z * z
    judged = (k + z * z / 2) / size
    sensitivity = (confusion.true_pass + 1) / (confusion.good + 2)
    specificity = (confusion.true_fail + 1) / (confusion.bad + 2)
    told_apart = sensitivity + specificity - 1
    if told_apart <= 0:
        return 0.0, 1.0
    rate = (judged + specificity - 1) / told_apart
    good = sensitivity * (1 - sensitivity) / confusion.good
    bad = specificity * (1 - specificity) / confusion.bad
    shift = 2 * z * z * (rate * good - (1 - rate) * bad)
    variance = judged * (1 - judged) / size + rate**2 * good + (1 - rate) ** 2 * bad
    spread = z * math.sqrt(variance) / told_apart
    return rate + shift - spread, rate + shift + spread
