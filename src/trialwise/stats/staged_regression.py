"""A comparison with a baseline that stops as soon as its counts decide, with exact errors.

A scheme (`staged_schemes`) has boundaries for every baseline of a size, and needs the fewest
trials. What follows is the rule for sizes without one, and of earlier plans.

After n trials Boschloo's test decides at most of alpha; a few looks on the way spend the rest, each
by Boschloo's test of the trials so far. Whatever the common rate, a false alarm is at most the sum
of these levels, which is alpha. A run that is not going to be signalled PASSes early: as soon as a
service at the rate that is to be found would still FAIL with a small probability only. Passing
early can only take away false alarms, and raises the chance to miss such a service from b to at
most b/(1 − that probability) (Lan, Simon and Halperin 1982).
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from trialwise.stats.binomial import likely_counts, raw_cdf
from trialwise.stats.regression_cutoffs import RegressionCutoff, boschloo_region, regression_cutoff
from trialwise.stats.sequential.walks import Rule, characteristic
from trialwise.stats.staged_schemes import Boundaries, StagedScheme, list_nodes
from trialwise.stats.unconditional import RejectionRegion, find_supremum

# --- The level of a scheme, and its search --------------------------------------------------------
#
# How often the boundaries of a scheme FAIL although nothing has changed, proven at every rate.
#
# Every path of a test that ends with FAIL is counted, in whole numbers, for every baseline. Given
# how many of all trials passed, all orders are equally likely at every common rate, so that the
# counts give the probability a_s of a FAIL given s passes, without a rate in it. P(FAIL) at a rate
# is the mean of a_S over a binomial S, whose largest value `unconditional` bounds from above.
#
# The heights of a scheme are found by repetition. P(FAIL) at a rate depends on the boundaries of
# nearby baselines only, and its logarithm changes about as fast as their height does, so each
# height is moved by what is missing at its rate.

#: The schemes that ship, beside this module; `python -m tools.designs --regression` writes them.
SHIPPED = "staged_schemes.json"
#: Trials of baseline and test together up to which a search takes about two seconds at most.
LARGEST_SEARCH = 1_300
#: Baselines too small for likelihood ratios to decide much.
FEWEST_TRIALS = 10
#: A scheme that uses less than this share of alpha, for a handful of trials, finds too little.
_LEAST = 0.5
#: How far below alpha the level is aimed.
_AIM = 0.98
#: Rates between two nodes at which the level is looked at while heights are searched for.
_BETWEEN = 4
#: How far a height moves for a relative excess of 1, and for a lack; the largest lack that counts.
_LOWER, _RAISE, _LARGEST_LACK = 0.8, 0.7, 0.6
#: So many times heights move both ways; after that they are lowered only, until the level holds.
_BOTH_WAYS, _MOST_ROUNDS = 2, 20
#: A height that is lowered again and again is lowered by this much more each time.
_HASTE = 0.02
#: Fewer expected passes or failures of a baseline than this: a height follows the next inner one.
_FEW = 2


@lru_cache(maxsize=16)
def find_level(scheme: StagedScheme) -> float:
    """The largest probability of a FAIL over every common rate, rounded up."""
    return _round_up(find_supremum(_count_fails(scheme)).high)


@lru_cache(maxsize=16)
def find_scheme(
    baseline_trials: int,
    margin: float,
    *,
    alpha: float = 0.05,
    power: float = 0.80,
    most_trials: int | None = None,
    waits: bool = False,
) -> StagedScheme | None:
    """Find the scheme for baselines of a size: a shipped one, or one that is searched for.

    None where a search would take too long (the shipped ones go further), and for a few trials.

    Args:
        baseline_trials: Trials of a baseline.
        margin: The loss that is to be found.
        alpha: The largest probability of a FAIL if nothing has changed.
        power: The wanted probability of finding the loss.
        most_trials: A limit on the trials of a test.
        waits: Whether only all trials together decide.

    Examples
    --------
    >>> scheme = find_scheme(50, 0.2)
    >>> accept, reject = scheme.boundaries(48)
    >>> accept[12], reject[4]
    (0, 3)
    """
    if baseline_trials < FEWEST_TRIALS:
        return None
    scheme = replace(start_scheme(baseline_trials, margin, alpha, power), waits=waits)
    largest = math.ceil(max(map(scheme.size_at, list_nodes(baseline_trials))))
    if most_trials is not None and most_trials < largest:
        scheme, largest = replace(scheme, most_trials=most_trials), most_trials
    for entry in () if waits else _read_shipped():
        shipped = replace(scheme, heights=tuple(entry.pop("heights")), level=entry.pop("level"))
        if all(getattr(scheme, name) == value for name, value in entry.items()):
            return shipped
    return None if baseline_trials + largest > LARGEST_SEARCH else search_scheme(scheme)


def search_scheme(scheme: StagedScheme) -> StagedScheme | None:
    """Search for the heights whose level is just below alpha, from those of a scheme."""
    nodes = list_nodes(scheme.baseline_trials)
    for turn in range(_MOST_ROUNDS):
        region = _count_fails(scheme)
        levels = _look_around(region, nodes)
        if turn >= _BOTH_WAYS and max(levels) <= scheme.alpha:
            peak = find_supremum(region)
            if (level := _round_up(peak.high)) <= scheme.alpha:
                return replace(scheme, level=level) if level >= _LEAST * scheme.alpha else None
            # The peak lies between the rates that were looked at.
            place = math.asin(math.sqrt(peak.rate))
            nearest = sorted(range(len(nodes)), key=lambda i: abs(nodes[i] - place))[:2]
            levels = [level if i in nearest else one for i, one in enumerate(levels)]
        scheme = _move(scheme, nodes, levels, turn)
    return None


def start_scheme(
    baseline_trials: int,
    margin: float,
    alpha: float = 0.05,
    power: float = 0.80,
    most_trials: int | None = None,
) -> StagedScheme:
    """A scheme with heights that come near those of most sizes."""
    nodes = list_nodes(baseline_trials)
    heights = (0.5 * angle - 1.6 + 0.8 * math.log(20 * alpha) for angle in nodes)
    return StagedScheme(
        baseline_trials=baseline_trials,
        alpha=alpha,
        margin=margin,
        power=power,
        most_trials=most_trials,
        heights=tuple(round(one, 3) for one in heights),
    )


def _read_shipped() -> list[dict[str, Any]]:
    import json
    from pkgutil import get_data  # `importlib.resources` loads temporary files and archives

    found: list[dict[str, Any]] = json.loads(get_data("trialwise.stats", SHIPPED) or "[]")
    return found


def _round_up(level: float) -> float:
    """Round to where no computer's arithmetic makes a difference."""
    return math.ceil(1e6 * level) / 1e6


def _count_fails(scheme: StagedScheme) -> RejectionRegion:
    """P(FAIL | s passes among all trials) for s = 0, 1, …, by counting paths."""
    nb = scheme.baseline_trials
    ways = [1]
    for k in range(1, nb + 1):
        ways.append(ways[-1] * (nb - k + 1) // k)
    fails: dict[int, dict[int, int]] = {}
    for counts in scheme.group_baselines():
        for m, failures, paths in _list_fails(scheme.boundaries(counts[0])):
            at = fails.setdefault(m, {})
            for k in counts:
                s = k + m - failures
                at[s] = at.get(s, 0) + ways[k] * paths
    most = max(fails, default=0)
    # A path that has ended goes on with a pass or a failure, so that all have one length.
    total = [0] * (nb + 1)
    for m in range(1, most + 1):
        total = [a + b for a, b in zip([*total, 0], [0, *total], strict=True)]
        for s, found in fails.get(m, {}).items():
            total[s] += found
    size, orders, conditional = nb + most, 1, []
    for s, found in enumerate(total):
        conditional.append(found / orders)
        orders = orders * (size - s) // (s + 1)
    return RejectionRegion(size=size, level=max(conditional), first=0, conditional=conditional)


def _list_fails(boundaries: Boundaries) -> list[tuple[int, int, int]]:
    """List (trials, failures, paths) wherever a test ends with FAIL.

    The numbers of open paths, by failures, are the digits of one large number: a trial adds the
    number to itself, moved by one digit.
    """
    accept, reject = boundaries
    digit = len(accept)
    mask = (1 << digit) - 1
    found, states, low = [], 1, 0
    for m in range(1, len(accept)):
        states += states << digit
        place = digit * (reject[m] - low)
        if over := states >> place:
            states -= over << place
            for failures in range(reject[m], m + 1):
                if not over:
                    break
                if paths := over & mask:
                    found.append((m, failures, paths))
                over >>= digit
        if accept[m] >= low:
            states >>= digit * (accept[m] + 1 - low)
            low = accept[m] + 1
        if not states:
            break
    return found


def _look_around(region: RejectionRegion, nodes: list[float]) -> list[float]:
    """The largest P(FAIL) near each node, at a few rates."""
    step = (nodes[1] - nodes[0]) / _BETWEEN
    places = range((len(nodes) - 1) * _BETWEEN + 1)
    values = [_average(region, math.sin(nodes[0] + i * step) ** 2) for i in places]
    reach = _BETWEEN // 2
    return [
        max(values[max(0, i - reach) : i + reach + 1])
        for i in range(0, (len(nodes) - 1) * _BETWEEN + 1, _BETWEEN)
    ]


def _average(region: RejectionRegion, rate: float) -> float:
    first, weights = likely_counts(region.size, rate, negligible=1e-12)
    return sum(w * a for w, a in zip(weights, region.conditional[first:], strict=False))


def _move(scheme: StagedScheme, nodes: list[float], levels: list[float], turn: int) -> StagedScheme:
    """Move each height by what the level near its rate lacks."""
    alpha, nb, late = scheme.alpha, scheme.baseline_trials, turn - _BOTH_WAYS
    moved = []
    for height, level in zip(scheme.heights, levels, strict=True):
        excess, step = math.log(max(level, 1e-9) / (_AIM * alpha)), 0.0
        if late < 0:
            step = _LOWER * excess if excess > 0 else _RAISE * max(excess, -_LARGEST_LACK)
        elif level > (1 + _AIM) / 2 * alpha:
            step = _LOWER * excess + _HASTE * late
        moved.append(round(height - step, 3))
    # Near 0 and 1 the level falls whatever the height is: it is not raised above the next one.
    middle = len(nodes) // 2
    for way in (range(middle, -1, -1), range(middle, len(nodes))):
        for inner, node in pairwise(way):
            rate = math.sin(nodes[node]) ** 2
            if nb * min(rate, 1 - rate) < _FEW:
                moved[node] = min(moved[node], moved[inner])
    return replace(scheme, heights=tuple(moved))


# --- The rule for a measured baseline -------------------------------------------------------------

#: The share of alpha that the looks before the last trial spend together.
EARLY_SHARE = 0.12
#: When they are, as shares of all trials. A broken service is found at the first.
_LOOKS = (1 / 8, 1 / 4, 3 / 8, 1 / 2, 3 / 4)
#: PASS once a service at the rate to be found would still FAIL with at most this probability.
_FUTILITY = 0.10
#: Baseline counts rarer than this, relative to the likeliest, are left out of averages.
_NEGLIGIBLE = 1e-9


class _Chances(NamedTuple):
    """How a staged comparison ends where both rates are known."""

    fails: float
    mean_trials: float

    @property
    def passes(self) -> float:
        """P(PASS): every comparison is decided."""
        return 1 - self.fails


@lru_cache(maxsize=64)
def staged_regression(
    baseline_successes: int, baseline_trials: int, trials: int, alternative: float, *, alpha: float
) -> RegressionCutoff:
    """The staged rule for a measured baseline; Boschloo's test with boundaries on the way.

    Examples
    --------
    >>> design = staged_regression(95, 100, 100, 0.85, alpha=0.05)
    >>> design.cutoff, design.accept[45], design.reject[13]
    (88, 0, 5)
    """
    k, nb, n = baseline_successes, baseline_trials, trials
    final = regression_cutoff(k, nb, n, alpha=final_level(alpha))
    assert final.cutoff is not None
    accept, reject = _set_boundaries(k, nb, n, alternative, alpha)
    staged = replace(final, alpha=alpha, alternative_rate=alternative, accept=accept, reject=reject)
    return _state_alarm(staged)


@lru_cache(maxsize=64)
def apply_scheme(
    scheme: StagedScheme, baseline_successes: int, alternative: float
) -> RegressionCutoff:
    """The rule that a scheme has for a measured baseline.

    Examples
    --------
    >>> from trialwise.stats.staged_regression import find_scheme
    >>> design = apply_scheme(find_scheme(100, 0.1), 95, 0.85)
    >>> design.trials, design.cutoff, design.accept[24], design.reject[4]
    (216, 192, 0, 4)
    """
    k, nb = baseline_successes, scheme.baseline_trials
    accept, reject = scheme.boundaries(k)
    n = len(accept) - 1
    cutoff = n - accept[n]
    staged = RegressionCutoff(
        rule="exact",
        baseline_successes=k,
        baseline_trials=nb,
        trials=n,
        alpha=scheme.alpha,
        cutoff=cutoff,
        threshold=cutoff / n,
        reference_rate=k / nb,
        achieved_size=None,
        design_false_alarm=None,
        alternative_rate=alternative,
        accept=() if scheme.waits else accept,
        reject=() if scheme.waits else reject,
        scheme=scheme,
    )
    return _state_alarm(staged)


def _state_alarm(design: RegressionCutoff) -> RegressionCutoff:
    """State the exact false alarm; a baseline of one kind leaves the rate open, and so has none."""
    rate = design.baseline_successes / design.baseline_trials
    alarm = None if rate in (0, 1) else average_chances(design, rate, rate).fails
    return replace(design, achieved_size=alarm, design_false_alarm=alarm)


def final_level(alpha: float) -> float:
    """The part of alpha that the test of all trials spends."""
    return alpha * (1 - EARLY_SHARE)


@lru_cache(maxsize=256)
def average_chances(design: RegressionCutoff, baseline_rate: float, rate: float) -> _Chances:
    """P(FAIL) and the mean trials before either run, each baseline with its own boundaries.

    Args:
        design: A staged one.
        baseline_rate: The true rate when the baseline was measured.
        rate: The true rate now.
    """
    first, weights = likely_counts(design.baseline_trials, baseline_rate, negligible=_NEGLIGIBLE)
    total = math.fsum(weights)
    fails, trials = 0.0, 0.0
    for k, weight in enumerate(weights, first):
        accept, reject = _find_boundaries(design, k)
        found = characteristic(Rule([*accept], [*reject]), rate)
        fails += weight * found.fails / total
        trials += weight * found.mean_trials / total
    return _Chances(min(1.0, fails), trials)


def _find_boundaries(design: RegressionCutoff, k: int) -> Boundaries:
    """The boundaries that another baseline of the same size would have had."""
    if design.scheme is not None:
        return design.scheme.boundaries(k)
    nb = design.baseline_trials
    assert design.alternative_rate is not None
    # It would have been compared with a rate as far below its own.
    gap = design.baseline_successes / nb - design.alternative_rate
    return _set_boundaries(k, nb, design.trials, max(0.0, k / nb - gap), design.alpha)


@lru_cache(maxsize=1024)
def _set_boundaries(k: int, nb: int, n: int, alternative: float, alpha: float) -> Boundaries:
    """The most failures that PASS and the fewest that FAIL, after 0, 1, … n trials."""
    cutoff = boschloo_region(nb, n, final_level(alpha)).cutoffs[k]
    allowed = n - cutoff
    accept, most = [], -1
    for m in range(n + 1):
        # A failure more passes if the rest would hardly bring the count below the cutoff.
        while most < m and _is_futile(m, most + 1, n, cutoff, alternative):
            most += 1
        accept.append(min(max(most, m - cutoff), allowed))
    reject = [allowed + 1] * (n + 1)
    looks = sorted({m for m in (math.ceil(n * share) for share in _LOOKS) if 2 <= m < n})
    for m in looks:
        # The looks on the way share what the last one leaves of alpha.
        level = alpha * EARLY_SHARE / len(looks)
        fewest = boschloo_region(nb, m, level).cutoffs[k]
        reject[m] = min(reject[m], max(m - fewest + 1, accept[m] + 1))
    return tuple(accept), tuple(reject)


def _is_futile(m: int, failures: int, n: int, cutoff: int, alternative: float) -> bool:
    """Whether the alternative would FAIL at the end with a small probability only."""
    short = cutoff - 1 - (m - failures)
    if failures > n - cutoff:
        return False
    return short < 0 or raw_cdf(min(short, n - m), n - m, alternative) <= _FUTILITY
