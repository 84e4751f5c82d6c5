"""The search for a test of one required rate: prices by duality, then flips of boundary states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from trialwise.stats.sequential.bound import fewest_failing, most_passing
from trialwise.stats.sequential.cell_flips import Change, Flip, Slice
from trialwise.stats.sequential.design_methods import fixed_rule
from trialwise.stats.sequential.hypotheses import Hypotheses, list_looks
from trialwise.stats.sequential.induction import Prices
from trialwise.stats.sequential.relaxation import WARM_UP, Column, Relaxation, Space, relax
from trialwise.stats.sequential.slack_search import Moves, keeps, search_flips, stricter
from trialwise.stats.sequential.strict_prices import search_prices
from trialwise.stats.sequential.strict_problem import (
    StrictObjective,
    StrictProblem,
    evaluate_strict,
    induct,
    order_boundaries,
)
from trialwise.stats.sequential.walks import Rule, characteristic, monotone, orderly

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

#: The width of a band, in failures, for which the limits on the steps of a search are meant.
USUAL_WIDTH = 60

#: How near bound and mixture come before flips take over, as a share of the objective.
TOLERANCE = 1e-3


def find_strict(
    hypotheses: Hypotheses,
    cap: int,
    batch: int,
    objective: StrictObjective,
    *,
    must_pass: bool = False,
) -> tuple[Rule, float] | None:
    """The best rule whose two errors at the required rate are kept, and its certificate.

    With `must_pass`, None where the rule gives up on a service without failures.
    """
    problem = StrictProblem(hypotheses.p0, list_looks(cap, batch), objective)
    effort, known = _effort(problem), None
    if effort > SHORT and (found := _find_long(problem, hypotheses)):
        best, known = found
        is_certified = best.objective <= CERTIFIED * known.bound
        if effort > LONGEST or cap > MOST_PATIENT or (effort > LONG and is_certified):
            return _finish(hypotheses, best, known, must_pass=must_pass)
        known = known._replace(columns=[*known.columns, best])
    return _find_thoroughly(problem, hypotheses, known, must_pass=must_pass)


def find_strict_quickly(
    hypotheses: Hypotheses, cap: int, objective: StrictObjective
) -> tuple[Rule, float] | None:
    """The best rule at balanced prices alone, and its certificate: within about half a percent.

    None where no rule at these prices keeps both errors.
    """
    problem = StrictProblem(hypotheses.p0, list_looks(cap, 1), objective)
    relaxed = search_prices(problem, hypotheses)
    kept = [column for column in relaxed.columns if keeps(hypotheses, column)]
    best = min(kept, key=lambda column: column.objective, default=None)
    return best and _finish(hypotheses, best, relaxed, must_pass=False)


def _find_long(
    problem: StrictProblem, hypotheses: Hypotheses
) -> tuple[Column[Rule], Relaxation[Rule]] | None:
    """The best of the rules at balanced prices, with a better bound and a few flips if need be."""
    relaxed = search_prices(problem, hypotheses)
    kept = [column for column in relaxed.columns if keeps(hypotheses, column)]
    best = min(kept, key=lambda column: column.objective, default=None)
    if best is None or best.objective <= GOOD_ENOUGH * relaxed.bound:
        return best and (best, relaxed)
    space = _space(problem, relaxed.prices)
    relaxed = relax(
        space,
        hypotheses,
        safe=best,
        tolerance=TOLERANCE,
        warm_up=0,
        rounds=LONG_ROUNDS,
        known=relaxed,
    )
    best = search_flips(
        space,
        _moves(problem),
        relaxed,
        hypotheses,
        [best],
        good_enough=GOOD_ENOUGH - 1,
        most_tried=LONG_TRIED,
    )
    return best, relaxed


def _find_thoroughly(
    problem: StrictProblem,
    hypotheses: Hypotheses,
    known: Relaxation[Rule] | None,
    *,
    must_pass: bool,
) -> tuple[Rule, float] | None:
    """The best rule that prices, settled ends and flips lead to, from what is `known` already."""
    cap = problem.horizon
    safe = _fixed(problem, hypotheses)
    space = _space(problem, Prices(*(share * cap for share in FIRST_PRICES)))
    warm_up = 0 if known else WARM_UP
    relaxed = relax(space, hypotheses, safe=safe, tolerance=TOLERANCE, warm_up=warm_up, known=known)
    columns = list(relaxed.columns)
    if must_pass and not _passes_perfect(_cheapest(columns, relaxed.prices).rule):
        return None
    # One state at the cap can hold more probability than is left of an error. With the verdicts at
    # the cap settled either way, prices spend the rest in the many small states before it.
    enough = CERTIFIED if known else GOOD_ENOUGH
    last = [(c.rule.accept[cap], c.rule.reject[cap]) for c in reversed(columns[-MOST_ENDS:])]
    for ends in dict.fromkeys(last):
        if _certify(hypotheses, columns, relaxed) <= enough:
            break
        settled = _space(problem, relaxed.prices, ends)
        found = relax(
            settled,
            hypotheses,
            safe=safe,
            tolerance=TOLERANCE,
            warm_up=2,
            rounds=SETTLED_ROUNDS,
        )
        columns += found.columns
        columns += stricter(settled, found, hypotheses, times=3)
    if not any(keeps(hypotheses, c) for c in columns[1:]):
        columns += stricter(space, relaxed, hypotheses)
    best = search_flips(
        space,
        _moves(problem),
        relaxed,
        hypotheses,
        columns,
        good_enough=CLOSEST if space.horizon <= LONG else NEAR,
        most_tried=max(FEWEST_TRIED, TRIED_TIMES_EFFORT // space.horizon),
    )
    return _finish(hypotheses, best, relaxed, must_pass=must_pass)


def _finish(
    hypotheses: Hypotheses,
    best: Column[Rule],
    relaxed: Relaxation[Rule],
    *,
    must_pass: bool,
) -> tuple[Rule, float] | None:
    _confirm(hypotheses, best.rule)
    if must_pass and not _passes_perfect(best.rule):
        return None
    return best.rule, best.objective / relaxed.bound


def _cheapest(columns: Sequence[Column[Rule]], prices: Prices) -> Column[Rule]:
    """The rule that costs least with both errors paid for."""
    return min(
        columns, key=lambda c: c.objective + prices.fail * c.error0 + prices.passed * c.error1
    )


def _passes_perfect(rule: Rule) -> bool:
    """Whether a service without failures passes."""
    return characteristic(rule, 1.0).passes == 1


def _certify(
    hypotheses: Hypotheses,
    columns: Sequence[Column[Rule]],
    relaxed: Relaxation[Rule],
) -> float:
    """The least objective of rules that keep both errors, over the bound."""
    return min(c.objective for c in columns if keeps(hypotheses, c)) / relaxed.bound


def _space(
    problem: StrictProblem, start: Prices, ends: tuple[int, int] | None = None
) -> Space[Rule]:
    return Space(
        _effort(problem),
        start,
        lambda prices: induct(problem, prices, ends),
        lambda rule: evaluate_strict(problem, rule),
    )


def _moves(problem: StrictProblem) -> Moves[Rule]:
    return Moves(lambda rule: _flips(problem, rule), lambda rule, flip: _flip(problem, rule, flip))


def _effort(problem: StrictProblem) -> int:
    """How long a horizon of the usual width a walk over this problem is worth.

    A step of the search costs a walk over the band between the boundaries, which is narrow where
    failures are rare.
    """
    return max(1, round(problem.states / USUAL_WIDTH))


def _fixed(problem: StrictProblem, hypotheses: Hypotheses) -> Column[Rule]:
    """The rule that decides at the cap, or once the end is certain: it keeps both errors."""
    cap = problem.horizon
    ends = most_passing(hypotheses, cap), fewest_failing(hypotheses, cap)
    accept, reject, _ = fixed_rule(*ends, problem.looks)
    futile = [(n + 1, -1) for n in range(cap)] + [(accept[cap] + 1, reject[cap] - 1)]
    return evaluate_strict(problem, Rule(accept, reject, futile))


def _confirm(hypotheses: Hypotheses, rule: Rule) -> None:
    curve = characteristic(rule, hypotheses.p0)
    if curve.fails > hypotheses.alpha_limit or curve.passes > hypotheses.beta_limit:
        raise AssertionError(f"the rule for {hypotheses} errs: {curve.fails}, {curve.passes}")


def _flip(problem: StrictProblem, rule: Rule, flip: Flip) -> Rule | None:
    """The rule after some flips, if it is still a rule with orderly boundaries."""
    accept, reject = rule.accept.copy(), rule.reject.copy()
    for n, up, out in flip.moves:
        accept[n] += up
        reject[n] += out
    if any(accept[n] >= reject[n] for n, *_ in flip.moves):
        return None
    monotone(Rule(accept, reject), problem.looks)
    if not orderly(reject, problem.looks):
        return None
    return order_boundaries(accept, reject, rule.futile, problem.looks)


def _flips(problem: StrictProblem, rule: Rule) -> Iterator[Flip]:
    """Every flip of one boundary state that can be reached, with its exact effect."""
    reach = _reach(problem, rule)
    before = dict(zip(problem.looks, (0, *problem.looks), strict=False))
    ahead = problem.horizon + 1
    for n, going_on in _going_on(problem, rule):
        if n not in before:
            continue
        low, weights = reach[n]
        accept, reject = rule.accept[n], rule.reject[n]
        moves = ((accept, -1, 0), (accept + 1, 1, 0), (reject, 0, 1), (reject - 1, 0, -1))
        for f, up, out in moves:
            in_order = rule.reject[before[n]] <= reject + out <= ahead
            if not in_order or not low <= f < low + len(weights) or accept + up >= reject + out:
                continue
            old = _stop(problem, rule, n, f) or going_on.at(f)
            if up > 0:
                new = _passing(problem, n, f)
            elif out < 0:
                new = _failing(problem, n, f)
            else:
                new = going_on.at(f)
            change = (weights[f - low] * (x - y) for x, y in zip(new, old, strict=True))
            yield Flip(((n, up, out),), Change(*change))
        ahead = reject


def _passing(problem: StrictProblem, n: int, f: int) -> Change:
    return Change(problem.fails(n, f), 0.0, 1.0)


def _failing(problem: StrictProblem, n: int, f: int) -> Change:
    return Change(problem.passes(n, f), 1.0, 0.0)


def _give_up_at(problem: StrictProblem, n: int, f: int) -> Change:
    missed = problem.fails(n, f) + problem.passes(n, f)
    return Change(missed, 0.0, 0.0)


def _stop(problem: StrictProblem, rule: Rule, n: int, f: int) -> Change | None:
    """What a state that stops leads to; None where the rule goes on."""
    if f <= rule.accept[n]:
        return _passing(problem, n, f)
    if f >= rule.reject[n]:
        return _failing(problem, n, f)
    low, high = rule.futile[n]
    return _give_up_at(problem, n, f) if low <= f <= high else None


def _going_on(problem: StrictProblem, rule: Rule) -> Iterator[tuple[int, Slice]]:
    """From the cap down, what going on leads to, one state beyond the boundaries too."""
    r, q, cap = problem.rate, 1 - problem.rate, problem.horizon
    failures = range(max(0, rule.accept[cap]), min(cap, rule.reject[cap]) + 1)
    ends = [_give_up_at(problem, cap, f) for f in failures]
    after = Slice(failures.start, *map(list, zip(*ends, strict=True)))
    yield cap, after
    looks = set(problem.looks)
    latest = list(accumulate((n if n in looks else 0 for n in range(cap)), max))
    for n in range(cap - 1, 0, -1):
        look = latest[
            n
        ]  # between looks the boundaries of the latest one say which states there are
        first, last = max(0, rule.accept[look]), min(n, rule.reject[look] + n - look)
        cost, e0, e1 = _row_after(problem, rule, after, n + 1, range(first, last + 2))
        trials = problem.weigh_trials(n, range(first, last + 1))
        after = Slice(
            first,
            [h + (r * x + q * y) for h, x, y in zip(trials, cost, cost[1:], strict=False)],
            [r * x + q * y for x, y in pairwise(e0)],
            [r * x + q * y for x, y in pairwise(e1)],
        )
        yield n, after


def _row_after(
    problem: StrictProblem, rule: Rule, after: Slice, n: int, failures: range
) -> tuple[list[float], list[float], list[float]]:
    """What some states of a row lead to, its verdicts included."""
    low, high = rule.accept[n] + 1, rule.reject[n] - 1
    inside = range(max(failures.start, low), min(failures.stop - 1, high) + 1)
    part = slice(inside.start - after.low, inside.stop - after.low)
    cost, e0, e1 = after.objective[part], after.error0[part], after.error1[part]
    first, last = rule.futile[n]
    for f in range(max(first, inside.start), min(last, inside.stop - 1) + 1):
        j = f - inside.start
        cost[j], e0[j], e1[j] = _give_up_at(problem, n, f)
    passed = range(failures.start, min(low, failures.stop))
    failed = range(max(high + 1, failures.start), failures.stop)
    none, one = [0.0] * len(passed), [1.0] * len(failed)
    return (
        [
            *(problem.fails(n, f) for f in passed),
            *cost,
            *(problem.passes(n, f) for f in failed),
        ],
        [*none, *e0, *one],
        [*([1.0] * len(passed)), *e1, *([0.0] * len(failed))],
    )


def _reach(problem: StrictProblem, rule: Rule) -> list[tuple[int, list[float]]]:
    """For every n, the fewest failures with which a run gets there, and the probabilities."""
    r, q = problem.rate, 1 - problem.rate
    band, low = [1.0], 0
    found = [(0, band)]
    for n in range(1, problem.horizon + 1):
        band = [r * x + q * y for x, y in zip([*band, 0.0], [0.0, *band], strict=True)]
        found.append((low, band))
        passed = max(0, rule.accept[n] + 1 - low)
        band, low = band[passed : max(passed, rule.reject[n] - low)], low + passed
        first, last = max(low, rule.futile[n][0]), min(rule.futile[n][1], low + len(band) - 1)
        if first <= last:
            band[first - low : last - low + 1] = [0.0] * (last - first + 1)
    return found
