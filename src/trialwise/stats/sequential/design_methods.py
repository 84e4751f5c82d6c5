"""The methods that find a design for exact errors: optimal, strict, calibrated, Wald's and fixed.

*Optimal*: as few expected trials as two exact errors allow. Backward induction at two prices gives
the best rule for those prices; a linear programme over such rules gives the prices and, by duality,
the least objective any test with this cap can reach; flips of boundary states spend what the whole
trials of the rule leave of alpha and beta. The certificate is the objective over that least
objective, so that a reader need not believe in the search.

*Strict*: the same for a test of one required rate, at which both errors are counted.

*Calibrated*: Wald's lines, moved until the true errors are the nominal ones at this cap. The
simplest repair of Wald's test: two straight lines again, as near to each other as the two exact
errors allow. Where the cap is large enough to decide every run, a cutoff at the end replaces the
open end, and verdicts that have become certain are given at once.

*Wald*: the sequential probability ratio test, cut at a cap. Kept for comparison and compatibility.
Its boundaries are approximations (usually wasteful, now and then not conservative), and a cap
breaks their promise: what is undecided there is INCONCLUSIVE, and the operating characteristic says
how often.

*Fixed*: the fixed sample, curtailed, with one cutoff and no trial after the verdict is certain. The
plainest design, and the yardstick of the sequential ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from trialwise.stats.binomial import find_end
from trialwise.stats.sequential import best_rules
from trialwise.stats.sequential.bound import (
    FixedSize,
    Hypotheses,
    Mix,
    deciding_look,
    fewest_failing,
    first_deciding,
    list_looks,
    most_passing,
)
from trialwise.stats.sequential.flip_search import TIMES_SHORTER, search_flips, stricter
from trialwise.stats.sequential.price_search import (
    WARM_UP,
    Relaxation,
    relax,
    search_prices,
    start_prices,
)
from trialwise.stats.sequential.walks import Rule, characteristic, never, prolong_rule

#: What an open end costs, in trials, where the cap is too small to decide every run.
INCONCLUSIVE_COST = 100.0

#: How finely a line is placed, in units of the log likelihood ratio.
RESOLUTION = 1e-6

#: The lines are placed in turn: moving one in leaves room for the other. A few turns settle it.
MOST_TURNS = 12

#: A log likelihood ratio this close to a line is on it: at 0.90 against 0.80 four failures meet
#: the lower line exactly, and which side a double falls on must not decide.
ON_THE_LINE = 1e-12


#: The prices at which the search begins, in caps: near those that most designs end with.
FIRST_PRICES = (2.7, 3.8)

#: Problems that only a thorough search is for, those that need none, and those too dear for one, in
#: trials of the usual width.
SHORT, LONG, LONGEST = 75, 200, 800
#: With more trials each step of a thorough search takes so long that nobody waits for it.
MOST_PATIENT = 1_200

#: How near the bound the search ends for long problems and for others, and the certificate that
#: every design is to have.
NEAR, CLOSEST, CERTIFIED = 4e-3, 1e-4, 1.01

#: Rules tried by flips, times the effort, and rounds for the prices with settled ends.
TRIED_TIMES_EFFORT, FEWEST_TRIED, SETTLED_ROUNDS = 10_000, 12, 12

#: On a long horizon, walks for a better bound and rules tried by flips.
LONG_ROUNDS, LONG_TRIED = 3, 4

#: A certificate that needs no further search, and how many rules say which ends are tried.
GOOD_ENOUGH, MOST_ENDS = 1.005, 6


class Found(NamedTuple):
    """A rule, its objective and the least objective of any test with the same cap and looks."""

    rule: Rule
    objective: float
    bound: float

    @property
    def certificate(self) -> float:
        """The objective over the least one; 1 cannot be beaten."""
        return self.objective / self.bound


def find_optimal(levels: Hypotheses, cap: int, batch: int, mix: Mix) -> Found:
    """The best rule for two rates whose errors are exact and at most the nominal ones."""
    looks = list_looks(cap, batch)
    sample = deciding_look(levels, looks)
    price = None if sample else INCONCLUSIVE_COST
    problem = best_rules.Problem.of_two_rates(levels, looks, mix, price)
    safe = best_rules.Column(cap + INCONCLUSIVE_COST, 0.0, 0.0, never(cap))
    if sample:
        safe = best_rules.evaluate(problem, _curtail(sample, looks))
    relaxed = relax(problem, start_prices(problem), safe=safe)
    columns = [*relaxed.columns, *stricter(relaxed)]
    if sample and not problem.choose(columns[1:]):
        # When the cap is barely enough, the last look is where the relaxed optimum tosses its coin,
        # and only with that verdict settled do higher prices lead to rules that keep both errors.
        until = tuple(n for n in looks if n <= sample.trials)
        short = best_rules.Problem.of_two_rates(levels, until, mix, None)
        ends = (sample.most_failures, sample.most_failures + 1)
        settled = relax(short, start_prices(short), safe=safe, ends=ends)
        more = stricter(settled, ends=ends, times=TIMES_SHORTER)
        rules = (column.rule for column in (*settled.columns[1:], *more))
        columns += [best_rules.evaluate(problem, prolong_rule(rule, looks)) for rule in rules]
    rule = search_flips(relaxed, columns).rule
    _confirm(levels, rule)
    return Found(rule, mean_cost(rule, mix, problem.undecided), relaxed.bound)


def _curtail(sample: FixedSize, looks: tuple[int, ...]) -> Rule:
    """A fixed sample as a rule on a longer horizon, which always decides by its last trial."""
    until = tuple(n for n in looks if n <= sample.trials)
    return prolong_rule(fixed_rule(sample.most_failures, sample.most_failures + 1, until), looks)


def mean_cost(rule: Rule, mix: Mix, inconclusive_cost: float) -> float:
    """Expected trials over the mix, an open end counted at its price."""
    curves = ((characteristic(rule, rate), weight) for rate, weight in mix)
    return sum(w * (c.mean_trials + inconclusive_cost * c.inconclusive) for c, w in curves)


def _confirm(hypotheses: Hypotheses, rule: Rule) -> None:
    """The promise of the method, recomputed at the two rates themselves."""
    fails = characteristic(rule, hypotheses.p0).fails
    passes = characteristic(rule, hypotheses.p1).passes
    if fails > hypotheses.alpha_limit or passes > hypotheses.beta_limit:
        raise AssertionError(f"the rule for {hypotheses} errs with {fails} and {passes}")


def find_strict(
    levels: Hypotheses,
    cap: int,
    batch: int,
    objective: best_rules.StrictObjective,
    *,
    must_pass: bool = False,
    is_quick: bool = False,
) -> Found | None:
    """The best rule whose two errors at the required rate are kept, and its certificate.

    With `must_pass`, None where the rule gives up on a service without failures. If it is to be
    quick, a rule at balanced prices serves where one keeps both errors: it is within about half a
    percent of the best.
    """
    problem = best_rules.Problem.of_rate(levels, list_looks(cap, batch), objective)
    if is_quick:
        relaxed = search_prices(problem)
        if quick := problem.choose(relaxed.columns):
            return _finish(quick, relaxed, must_pass=must_pass)
    effort, known = problem.effort, None
    if effort > SHORT and (found := _find_long(problem)):
        best, known = found
        is_certified = best.objective <= CERTIFIED * known.bound
        if effort > LONGEST or cap > MOST_PATIENT or (effort > LONG and is_certified):
            return _finish(best, known, must_pass=must_pass)
        known.columns.append(best)
    return _find_thoroughly(problem, known, must_pass=must_pass)


def _find_long(problem: best_rules.Problem) -> tuple[best_rules.Column, Relaxation] | None:
    """The best of the rules at balanced prices, with a better bound and a few flips if need be."""
    relaxed = search_prices(problem)
    best = problem.choose(relaxed.columns)
    if best is None or best.objective <= GOOD_ENOUGH * relaxed.bound:
        return best and (best, relaxed)
    relaxed = relax(
        problem, relaxed.prices, safe=best, warm_up=0, rounds=LONG_ROUNDS, known=relaxed
    )
    best = search_flips(relaxed, [best], good_enough=GOOD_ENOUGH - 1, most_tried=LONG_TRIED)
    return best, relaxed


def _find_thoroughly(
    problem: best_rules.Problem, known: Relaxation | None, *, must_pass: bool
) -> Found | None:
    """The best rule that prices, settled ends and flips lead to, from what is `known` already."""
    cap = problem.horizon
    safe = _fixed(problem)
    relaxed = relax(
        problem,
        best_rules.Prices(*(share * cap for share in FIRST_PRICES)),
        safe=safe,
        warm_up=0 if known else WARM_UP,
        known=known,
    )
    columns, prices = list(relaxed.columns), relaxed.prices
    cheapest = min(columns, key=lambda column: prices.charge(*column[:3]))
    if must_pass and not _passes_perfect(cheapest.rule):
        return None
    # One state at the cap can hold more probability than is left of an error. With the verdicts at
    # the cap settled either way, prices spend the rest in the many small states before it.
    enough = (CERTIFIED if known else GOOD_ENOUGH) * relaxed.bound
    last = [(c.rule.accept[cap], c.rule.reject[cap]) for c in reversed(columns[-MOST_ENDS:])]
    for ends in dict.fromkeys(last):
        if (problem.choose(columns) or safe).objective <= enough:
            break
        found = relax(problem, prices, safe=safe, ends=ends, warm_up=2, rounds=SETTLED_ROUNDS)
        columns += [*found.columns, *stricter(found, ends=ends, times=3)]
    if not problem.choose(columns[1:]):
        columns += stricter(relaxed)
    best = search_flips(
        relaxed,
        columns,
        good_enough=CLOSEST if problem.effort <= LONG else NEAR,
        most_tried=max(FEWEST_TRIED, TRIED_TIMES_EFFORT // problem.effort),
    )
    return _finish(best, relaxed, must_pass=must_pass)


def _finish(best: best_rules.Column, relaxed: Relaxation, *, must_pass: bool) -> Found | None:
    _confirm(relaxed.problem.levels, best.rule)
    if must_pass and not _passes_perfect(best.rule):
        return None
    return Found(best.rule, best.objective, relaxed.bound)


def _passes_perfect(rule: Rule) -> bool:
    """Whether a service without failures passes."""
    return characteristic(rule, 1.0).passes == 1


def _fixed(problem: best_rules.Problem) -> best_rules.Column:
    """The rule that decides at the cap, or once the end is certain: it keeps both errors."""
    cap = problem.horizon
    ends = most_passing(problem.levels, cap), fewest_failing(problem.levels, cap)
    accept, reject, _ = fixed_rule(*ends, problem.looks)
    futile = [(n + 1, -1) for n in range(cap)] + [(accept[cap] + 1, reject[cap] - 1)]
    return best_rules.evaluate(problem, Rule(accept, reject, futile))


def find_calibrated(hypotheses: Hypotheses, cap: int, batch: int, mix: Mix) -> Rule:
    """The pair of lines with the least expected trials whose exact errors are kept."""
    looks = list_looks(cap, batch)
    ends: list[Rule | None] = list(_ends(hypotheses, looks)) or [None]
    price = 0.0 if ends[0] else INCONCLUSIVE_COST
    placed = (_place_lines(hypotheses, looks, end) for end in ends)
    return min(placed, key=lambda rule: mean_cost(rule, mix, price))


def _ends(hypotheses: Hypotheses, looks: tuple[int, ...]) -> list[Rule]:
    """Fixed samples that keep both errors, to end the lines with; none at too small a cap."""
    sample = deciding_look(hypotheses, looks)
    if sample is None:
        return []
    most, fewest = most_passing(hypotheses, looks[-1]), fewest_failing(hypotheses, looks[-1])
    if fewest <= most + 1:
        cutoffs = {fewest - 1, (most + fewest - 1) // 2, most}
        return [fixed_rule(c, c + 1, looks) for c in sorted(cutoffs)]
    # At this very cap no cutoff keeps both errors, though a smaller sample does.
    return [_curtail(sample, looks)]


def _place_lines(hypotheses: Hypotheses, looks: tuple[int, ...], end: Rule | None) -> Rule:
    upper = lower = math.inf

    def rule(up: float, down: float) -> Rule:
        return _with_end(line_rule(hypotheses, up, -down, looks), end, looks)

    def passes_rarely(up: float) -> bool:
        return characteristic(rule(up, lower), hypotheses.p1).passes <= hypotheses.beta_limit

    def fails_rarely(down: float) -> bool:
        return characteristic(rule(upper, down), hypotheses.p0).fails <= hypotheses.alpha_limit

    widest = -2 * math.log(min(hypotheses.alpha, hypotheses.beta)) + 10
    for _ in range(MOST_TURNS):
        before = upper, lower
        upper = _nearest(passes_rarely, min(upper, widest))
        lower = _nearest(fails_rarely, min(lower, widest))
        if (upper, lower) == before:
            break
    return rule(upper, lower)


def _nearest(keeps: Callable[[float], bool], far: float) -> float:
    """The least distance of a line from the origin at which its error is kept."""
    return 0.0 if keeps(0.0) else find_end(0.0, far, lambda at: not keeps(at), RESOLUTION)


def _with_end(rule: Rule, end: Rule | None, looks: tuple[int, ...]) -> Rule:
    """The lines with the certain verdicts of a fixed sample, which they may not contradict."""
    if end is None:
        return rule
    for n in looks:
        rule.accept[n] = min(max(rule.accept[n], end.accept[n]), end.accept[-1])
        rule.reject[n] = max(min(rule.reject[n], end.reject[n]), rule.accept[n] + 1)
    return rule


def find_wald(hypotheses: Hypotheses, cap: int, batch: int) -> Rule:
    """Wald's boundaries log((1−alpha)/beta) and log(alpha/(1−beta)), both inclusive."""
    lower, upper = hypotheses.wald_limits
    return line_rule(hypotheses, upper, lower, list_looks(cap, batch))


def line_rule(hypotheses: Hypotheses, upper: float, lower: float, looks: tuple[int, ...]) -> Rule:
    """PASS where the log likelihood ratio of p0 to p1 reaches `upper`, FAIL where `lower`."""
    success, failure = best_rules.log_ratios(hypotheses.p0, hypotheses.p1)
    rule = never(looks[-1])
    accept, reject = -1, 0
    for n in looks:
        # Both lines rise with n, so that each search starts where the last one ended.
        while accept < n and _ratio(n, accept + 1, success, failure) >= upper - ON_THE_LINE:
            accept += 1
        reject = max(reject, accept + 1)
        while reject <= n and _ratio(n, reject, success, failure) > lower + ON_THE_LINE:
            reject += 1
        rule.accept[n], rule.reject[n] = accept, reject
    return rule


def _ratio(n: int, f: int, success: float, failure: float) -> float:
    return (n - f) * success + f * failure


def find_fixed(hypotheses: Hypotheses, cap: int | None, batch: int) -> Rule:
    """The smallest fixed sample for two hypotheses, or the best of `cap` trials if it is larger."""
    sample = first_deciding(hypotheses, start=1)
    if cap is None or sample.trials <= cap:
        looks = list_looks(sample.trials, batch)
        return fixed_rule(sample.most_failures, sample.most_failures + 1, looks)
    return fixed_rule(
        most_passing(hypotheses, cap), fewest_failing(hypotheses, cap), list_looks(cap, batch)
    )


def fixed_rule(most: int, fewest: int, looks: tuple[int, ...]) -> Rule:
    """PASS with at most `most` failures of all trials, FAIL with at least `fewest`, curtailed."""
    cap = looks[-1]
    rule = never(cap)
    for n in looks:
        rule.accept[n] = max(-1, most - (cap - n))
        rule.reject[n] = min(fewest, n + 1)
    return rule
