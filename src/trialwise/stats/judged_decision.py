"""Deciding by a corrected rate: PASS, FAIL, or what is missing, more labels or more trials.

Apart from the correction itself because it adds a requirement. Three ends are told apart: decided;
open because trials are few; open because the labels alone leave it so, at any number of trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.stats.agreement import Confusion
from trialwise.stats.binomial import find_first, upper_z
from trialwise.stats.confidence_sequences import BoundedSequence
from trialwise.stats.judge_correction import (
    CorrectedRate,
    CorrectionMethod,
    Rectifier,
    labels_needed,
    pooled_rate,
    rectified_rate,
    rectifier,
    rogan_gladen_rate,
    shares,
    unit,
)
from trialwise.stats.judged_tests import Correction, JudgedTest, error_by_class, error_of_shares
from trialwise.stats.result_types import Count, Decision, Interval, Rule, Undefined
from trialwise.validation import require_choice, require_open_rate, require_successes

CORRECTIONS: tuple[Correction, ...] = ("rectifier", "rogan-gladen", "pooled")

OpenBecause: TypeAlias = Literal["nothing", "trials", "labels"]
"""What keeps a decision open: nothing, too few trials, or too few labels."""

#: Before this many trials a judged rate says too little to blame the labels for it.
SETTLED_TRIALS = 50
#: More trials, or more labels, than anybody will pay for: what is open then stays open.
MOST = 10**7

_NO_TRIALS = Undefined("no number of trials decides it with these labels")
_TOO_CLOSE = Undefined("the corrected rate lies too close to the requirement, or is undefined")

_Needs: TypeAlias = tuple[int | Undefined, int | Undefined]
_Correct: TypeAlias = Callable[[int, int, Confusion], CorrectedRate | Undefined]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedDecision:
    """Whether a judged rate meets a requirement, and what is missing where it is open."""

    decision: Decision
    required_rate: float
    corrected: CorrectedRate | Undefined
    open_because: OpenBecause
    labels_needed: int | Undefined
    """In all, about, at the error rates seen and with as many trials as it takes."""
    trials_needed: int | Undefined
    """In all, about, at the judged rate seen and with these labels."""
    correction: Correction = "rectifier"
    """By which the rate was corrected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSequence:
    """A rectified rate that may be looked at after every trial: a value that `update` replaces.

    The empirical Bernstein sequence of the judged outcomes gets a third of the error, the
    band of the rectifier the rest; the ends are added and cut at 0 and 1 last. The sequence is that
    of Waudby-Smith & Ramdas 2024.

    Examples
    --------
    >>> clean = Confusion(true_pass=10, false_pass=0, true_fail=10, false_fail=0)
    >>> state = JudgedSequence.start(clean, confidence=0.80, rule="wilson")
    >>> while state.interval.low <= 0.5:
    ...     state = state.update(True)
    >>> state.sampling.trials
    20
    """

    rectifier: Rectifier
    sampling: BoundedSequence
    confidence: float

    @classmethod
    def start(
        cls, confusion: Confusion, *, confidence: float = 0.95, rule: Rule = "exact"
    ) -> JudgedSequence:
        """Return the state before the first trial; parameters as for `rectifier`."""
        sampling, labels = shares(confidence)
        return cls(
            rectifier=rectifier(confusion, confidence=1 - labels, rule=rule),
            sampling=BoundedSequence(confidence=1 - sampling),
            confidence=confidence,
        )

    def update(self, passed: bool) -> JudgedSequence:
        """The state after one more judged trial; a trial that the judge left open is not one."""
        return replace(self, sampling=self.sampling.update(passed))

    @property
    def interval(self) -> Interval | Undefined:
        """What all the intervals so far have in common."""
        if isinstance(self.sampling.interval, Undefined):
            return self.sampling.interval
        band = self.rectifier.interval
        return Interval(
            unit(self.sampling.low + band.low),
            unit(self.sampling.high + band.high),
            confidence=self.confidence,
            method="rectified empirical Bernstein confidence sequence",
        )

    def open_because(self, required_rate: float, *, is_over: bool = False) -> OpenBecause:
        """What keeps it open: nothing, too few trials, or too few labels.

        The labels are the limit where their band around the judged rate straddles the requirement
        by itself. Before the first trial that is known only of a band that no rate could clear;
        after it, from 50 trials on or at the end of the budget (`is_over`).

        Parameters
        ----------
        required_rate : float
            Strictly between 0 and 1.
        is_over : bool
            Whether no further trial will come.
        """
        required = require_open_rate("required_rate", required_rate)
        interval, band, n = self.interval, self.rectifier.interval, self.sampling.trials
        if not isinstance(interval, Undefined) and required not in interval:
            return "nothing"
        if 1 + band.low < required <= band.high:
            return "labels"
        if n and (is_over or n >= SETTLED_TRIALS):
            rate = self.sampling.total / n
            return "labels" if rate + band.low < required <= rate + band.high else "trials"
        return "trials"

    def decide(self, required_rate: float) -> JudgedDecision:
        """Whether the rate meets a requirement, if no further trial comes; see `decide_judged`.

        What is needed is a plan by the rectifier's Wilson band; trials may simply go on.

        >>> clean = Confusion(true_pass=200, false_pass=0, true_fail=200, false_fail=0)
        >>> state = JudgedSequence.start(clean)
        >>> for _ in range(60):
        ...     state = state.update(True)
        >>> state.decide(0.6).decision
        <Decision.PASS: 'PASS'>
        """
        required = require_open_rate("required_rate", required_rate)
        corrected = self._correct_rate()
        decision = _decide(corrected, required)
        labels: int | Undefined = self.rectifier.confusion.labels
        because = self.open_because(required, is_over=True)
        if because == "labels":
            labels = self._labels(required)
        return JudgedDecision(
            decision=decision,
            required_rate=required,
            corrected=corrected,
            open_because=because if decision is Decision.INCONCLUSIVE else "nothing",
            labels_needed=labels,
            trials_needed=Undefined("a sequence may go on for as long as it takes"),
        )

    def _correct_rate(self) -> CorrectedRate | Undefined:
        trials, interval = self.sampling.trials, self.interval
        if not trials:
            return Undefined("there is no judged trial")
        if isinstance(interval, Undefined):
            return interval
        judged = self.sampling.total / trials
        return CorrectedRate(
            rate=unit(judged + self.rectifier.value),
            interval=interval,
            judged_rate=judged,
            trials=trials,
            confusion=self.rectifier.confusion,
            method="cells",
        )

    def _labels(self, required: float) -> int | Undefined:
        trials = self.sampling.trials
        rate = self.sampling.total / trials + self.rectifier.value if trials else required
        gap, level = abs(rate - required), self.rectifier.interval.confidence
        if not 0 < gap < 1 or level is None:
            return _TOO_CLOSE
        return labels_needed(self.rectifier.confusion, gap, confidence=level)


def decide_judged(
    passed: Count,
    trials: Count,
    confusion: Confusion,
    required_rate: float,
    *,
    confidence: float = 0.95,
    method: CorrectionMethod = "exact",
    correction: Correction = "rectifier",
) -> JudgedDecision:
    """Whether the corrected rate meets a requirement, or what is missing to say so.

    By "exact" PASS where a rate above the requirement is shown and FAIL where one below is, each at
    level (1 − confidence)/2. By the other methods PASS where the whole interval lies at or above
    the requirement, FAIL where it lies below. Otherwise the labels are the limit if they leave it
    open at any number of trials, and the trials if not.

    Parameters
    ----------
    passed, trials, confusion, confidence, method : as for `rectified_rate`.
    required_rate : float
        Strictly between 0 and 1.
    correction : {"rectifier", "rogan-gladen", "pooled"}
        How the rate is corrected; "pooled" goes with the method "exact" only.

    Examples
    --------
    >>> gold = Confusion(true_pass=70, false_pass=6, true_fail=20, false_fail=4)
    >>> answer = decide_judged(176, 200, gold, 0.80)
    >>> answer.decision, answer.open_because, answer.labels_needed
    (<Decision.INCONCLUSIVE: 'INCONCLUSIVE'>, 'labels', 230)
    """
    required = require_open_rate("required_rate", required_rate)
    require_choice("correction", correction, CORRECTIONS)
    k, n = require_successes(passed, trials)
    if correction == "pooled" and method != "exact":
        raise InvalidArgument("method", method, 'be "exact" where the labels count as trials')
    test = JudgedTest(k, n, confusion, correction)

    correct: _Correct = partial(pooled_rate, confidence=confidence)
    if correction != "pooled":
        make = rectified_rate if correction == "rectifier" else rogan_gladen_rate
        correct = partial(make, confidence=confidence, method=method)
    corrected = correct(k, n, confusion)
    if method == "exact" and not isinstance(corrected, Undefined):
        corrected = _agree_with_tests(corrected, test, required, (1 - confidence) / 2)
    decision = _decide(corrected, required)
    because: OpenBecause = "nothing"
    needs: _Needs = (confusion.labels, n)
    if decision is Decision.INCONCLUSIVE:
        if method != "exact":
            because, needs = _needs(correct, k / n, n, confusion, required)
        elif isinstance(corrected, Undefined):
            because, needs = "labels", (_TOO_CLOSE, _NO_TRIALS)
        else:
            because, needs = _estimate_needs(test, required, (1 - confidence) / 2)
    return JudgedDecision(
        decision=decision,
        required_rate=required,
        corrected=corrected,
        open_because=because,
        labels_needed=needs[0],
        trials_needed=needs[1],
        correction=correction,
    )


def _agree_with_tests(
    corrected: CorrectedRate, test: JudgedTest, required: float, alpha: float
) -> CorrectedRate:
    """Return the corrected rate with an interval whose ends agree with the tests at `required`.

    The ends are found with a small error, so that without this the interval could hold a rate that
    its own test rejects.
    """
    low, high = corrected.interval
    if test.shows_above(required, alpha):
        low = max(low, required)
    elif test.shows_below(required, alpha):
        high = min(high, math.nextafter(required, 0))
    else:
        low, high = min(low, math.nextafter(required, 0)), max(high, required)
    return replace(corrected, interval=replace(corrected.interval, low=low, high=high))


def _estimate_needs(test: JudgedTest, required: float, alpha: float) -> tuple[OpenBecause, _Needs]:
    """Estimate what would decide it if the rates seen went on: trials, or else labels.

    The standard error tells about how many, and the tests themselves confirm it.
    """
    labels = test.labels.labels
    gap, z = abs(test.estimate - required), upper_z(alpha)
    if not gap:
        return "labels", (_TOO_CLOSE, _NO_TRIALS)
    if _has_decided(test, required, alpha, MOST):
        start = find_first(
            test.trials, MOST, lambda count: z * _find_error(test, required, count) < gap
        )
        trials = _raise(start, lambda count: _has_decided(test, required, alpha, count))
        return "trials", (labels, min(trials, MOST))
    start = find_first(
        labels, MOST, lambda count: z * _find_error(test, required, MOST, count) < gap
    )
    found = _raise(start, lambda count: _has_decided(test, required, alpha, MOST, count))
    return "labels", (_TOO_CLOSE if found > MOST else found, _NO_TRIALS)


def _find_error(test: JudgedTest, rate: float, trials: int, labels: int | None = None) -> float:
    """Return the standard error of the corrected rate with this many trials and labels.

    Half a label is added to each error count, since no error among the labels does not mean that
    the judge makes none.
    """
    counts, m = test.labels, test.labels.labels
    size = m if labels is None else labels
    if test.correction != "rogan-gladen":
        missed, through = (counts.false_fail + 0.5) / m, (counts.false_pass + 0.5) / m
        is_pooled = test.correction == "pooled"
        return error_of_shares(
            rate, missed, through, labels=size, trials=trials, is_pooled=is_pooled
        )
    sensitivity = (counts.true_pass + 0.5) / (counts.good + 1)
    specificity = (counts.true_fail + 0.5) / (counts.bad + 1)
    good, bad = counts.good * size / m, counts.bad * size / m
    error = error_by_class(rate, sensitivity, specificity, good=good, bad=bad, trials=trials)
    return error / max(sensitivity + specificity - 1, 1e-9)


def _raise(count: int, decides: Callable[[int], bool]) -> int:
    """Return the first of numbers that grow by a quarter each that decides, or one above `MOST`."""
    while count <= MOST and not decides(count):
        count = math.ceil(1.25 * count)
    return count


def _has_decided(
    test: JudgedTest, required: float, alpha: float, trials: int, labels: int | None = None
) -> bool:
    """Return whether as many trials and labels with the rates seen would decide."""
    scaled = test.labels if labels is None else _scale_confusion(test.labels, labels)
    passed = round(test.passed / test.trials * trials)
    later = JudgedTest(passed, trials, scaled, test.correction)
    if test.estimate > required:
        return later.shows_above(required, alpha)
    return later.shows_below(required, alpha)


def _needs(
    correct: _Correct, rate: float, trials: int, confusion: Confusion, required: float
) -> tuple[OpenBecause, _Needs]:
    """What would decide it if the rates seen went on: trials, or else labels."""

    def with_trials(size: int, labels: Confusion = confusion) -> bool:
        corrected = correct(round(rate * size), size, labels)
        return _decide(corrected, required) is not Decision.INCONCLUSIVE

    enough = _smallest(with_trials, trials)
    if enough is not None:
        return "trials", (confusion.labels, enough)
    labels = _smallest(
        lambda count: with_trials(MOST, _scale_confusion(confusion, count)), confusion.labels
    )
    return "labels", (_TOO_CLOSE if labels is None else labels, _NO_TRIALS)


def _decide(corrected: CorrectedRate | Undefined, required: float) -> Decision:
    if isinstance(corrected, Undefined):
        return Decision.INCONCLUSIVE
    if corrected.interval.low >= required:
        return Decision.PASS
    return Decision.FAIL if corrected.interval.high < required else Decision.INCONCLUSIVE


def _smallest(decides: Callable[[int], bool], start: int) -> int | None:
    """About the smallest number that decides, or None where not even `MOST` does."""
    if not decides(MOST):
        return None
    low, high = start, start
    while high < MOST and not decides(high):
        low, high = high, min(2 * high, MOST)
    return find_first(low, high, decides)


def _scale_confusion(confusion: Confusion, labels: int) -> Confusion:
    """The same error rates from another number of labels, as nearly as counts allow."""

    def part(count: int) -> int:
        return round(count * labels / confusion.labels)

    return Confusion(
        true_pass=part(confusion.true_pass),
        false_pass=part(confusion.false_pass),
        true_fail=part(confusion.true_fail),
        false_fail=part(confusion.false_fail),
    )
