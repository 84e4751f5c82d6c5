"""How often a corrected contract is wrong, counted over all of its outcomes, and what it decides.

The procedures are written down again here by their ranks (Holm 1979, Benjamini and Hochberg 1995,
Benjamini and Yekutieli 2001), with p-values from sums of binomial probabilities or of paths.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations_with_replacement, permutations, product
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.procedures.test_judging import BAD, OK, judged, plan, trial

from trialwise.model.criterion import Criterion
from trialwise.model.plan import Plan
from trialwise.model.verdict import Decision, Finding
from trialwise.stats.multiplicity import FamilyCorrection, adjust, list_shares
from trialwise.stats.sequential.design import SequentialDesign
from trialwise.stats.sequential.walks import stopping_probabilities

PASS, FAIL, OPEN = Decision.PASS, Decision.FAIL, Decision.INCONCLUSIVE
METHODS = ("bonferroni", "holm", "bh", "by")
NAMES = ("c", "d", "e")


def _holds(text: str) -> bool:
    return bool(text)


@cache
def _plan(method: FamilyCorrection, members: int, **question: Any) -> Plan:
    criteria = [Criterion(name, _holds, **dict(question)) for name in NAMES[:members]]
    return plan(*criteria, correction=method)


def _decide(made: Plan, paths: Sequence[Sequence[bool]]) -> tuple[Finding, ...]:
    """The findings of criteria with these outcomes; one that has ended fails from there on."""
    longest = max(len(path) for path in paths)
    trials = [
        trial(n, *(OK if n < len(path) and path[n] else BAD for path in paths))
        for n in range(longest)
    ]
    return judged(made, trials).findings


# --- The same procedures by ranks -------------------------------------------------------------


def _reject(method: str, p_values: Sequence[float], level: float) -> list[bool]:
    m = len(p_values)
    ranks = sorted(range(m), key=lambda i: p_values[i])
    slack = 1 + 1e-9
    if method == "bonferroni":
        return [p <= level / m * slack for p in p_values]
    kept = 0
    if method == "holm":
        while kept < m and p_values[ranks[kept]] <= level / (m - kept) * slack:
            kept += 1
    else:
        harmonic = sum(1 / i for i in range(1, m + 1)) if method == "by" else 1.0
        for k in range(1, m + 1):
            if p_values[ranks[k - 1]] <= level * k / (m * harmonic) * slack:
                kept = k
    return [i in ranks[:kept] for i in range(m)]


def _expect(
    method: str, tails: Sequence[tuple[float, float]], level: float
) -> tuple[Decision, ...]:
    """What is decided by p-values against a low rate and against a high one."""
    passes = _reject(method, [above for above, _ in tails], level)
    fails = _reject(method, [below for _, below in tails], level)
    return tuple(
        PASS if good else FAIL if bad else OPEN for good, bad in zip(passes, fails, strict=True)
    )


@pytest.mark.parametrize("method", METHODS)
@given(st.lists(st.floats(0, 0.2), min_size=1, max_size=8))
def test_counting_at_shares_rejects_what_ranking_rejects(
    method: FamilyCorrection, p_values: list[float]
) -> None:
    """`list_shares` needs no ranks: a member is rejected at one of the shares, or at none."""

    def count(share: float) -> int:
        return sum(p <= 0.05 * share for p in p_values)

    shares = list_shares(method, len(p_values), len(p_values), count)
    found = tuple(any(p <= 0.05 * share for share in shares) for p in p_values)
    adjusted = adjust(p_values, method=method).adjusted if method != "e-bh" else ()
    for one, value in zip(found, adjusted, strict=True):
        if not math.isclose(value, 0.05, rel_tol=1e-8):
            assert one is (value <= 0.05)


# --- A fixed number of trials -----------------------------------------------------------------


class Fixed(NamedTuple):
    """A size, a level and a required rate of one half."""

    trials: int
    level: float

    def tails(self, k: int) -> tuple[float, float]:
        n = self.trials
        ways = [math.comb(n, i) / 2**n for i in range(n + 1)]
        return sum(ways[k:]), sum(ways[: k + 1])

    def chance(self, k: int, rate: float) -> float:
        return math.comb(self.trials, k) * rate**k * (1 - rate) ** (self.trials - k)


#: Of twelve trials 10 show one half at 2.5 % and 9 at 10 %; of eight 8 at 3.3 % and 7 at 10 %.
TWO, THREE = Fixed(12, 0.1), Fixed(8, 0.1)


@cache
def _table(method: FamilyCorrection, design: Fixed, members: int) -> dict[Any, Any]:
    """What the library decides for every outcome, held against the procedures by ranks."""
    made = _plan(
        method,
        members,
        at_least=0.5,
        trials=design.trials,
        undecided="inconclusive",
        confidence=1 - design.level,
    )
    table: dict[Any, Any] = {}
    for counts in combinations_with_replacement(range(design.trials + 1), members):
        paths = [[n < k for n in range(design.trials)] for k in counts]
        findings = _decide(made, paths)
        decided = tuple(one.decision for one in findings)
        assert decided == _expect(method, [design.tails(k) for k in counts], design.level), counts
        for one in findings:
            assert one.interval is not None
            assert (one.decision is PASS) == (one.interval.low > 0.5)
            assert (one.decision is FAIL) == (one.interval.high < 0.5)
        for order in permutations(range(members)):
            table[tuple(counts[i] for i in order)] = tuple(decided[i] for i in order)
    return table


def _count_wrong(
    table: dict[Any, Any], chances: dict[Any, float], null: Sequence[bool], side: Decision
) -> tuple[float, float]:
    """P(any wrong statement of one side), and the expected share of wrong ones among them."""
    any_wrong, share = 0.0, 0.0
    for outcome, chance in chances.items():
        stated = [one is side for one in table[outcome]]
        wrong = sum(one and is_null for one, is_null in zip(stated, null, strict=True))
        any_wrong += chance * (wrong > 0)
        share += chance * (wrong / sum(stated) if wrong else 0)
    return any_wrong, share


def _chances(design: Fixed, rates: Sequence[float], *, dependent: bool) -> dict[Any, float]:
    outcomes = range(design.trials + 1)
    if dependent:
        return {(k,) * len(rates): design.chance(k, rates[0]) for k in outcomes}
    return {
        counts: math.prod(design.chance(k, rate) for k, rate in zip(counts, rates, strict=True))
        for counts in product(outcomes, repeat=len(rates))
    }


@pytest.mark.parametrize("design", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("method", METHODS)
def test_a_fixed_family_keeps_its_error_in_both_directions(
    method: FamilyCorrection, design: Fixed
) -> None:
    """At the required rate either statement is wrong; the others are good, or bad, as may be."""
    members = 2 if design is TWO else 3
    table = _table(method, design, members)
    for true_nulls in range(1, members + 1):
        null = [place < true_nulls for place in range(members)]
        for side, other in ((PASS, 0.9), (FAIL, 0.1)):
            rates = [0.5 if is_null else other for is_null in null]
            for dependent in (False, True):
                if dependent and true_nulls < members:
                    continue
                chances = _chances(design, rates, dependent=dependent)
                assert sum(chances.values()) == pytest.approx(1)
                any_wrong, share = _count_wrong(table, chances, null, side)
                allowed = any_wrong if method in ("bonferroni", "holm") else share
                assert 0 < allowed <= design.level + 1e-12, (null, side, dependent)


def test_a_family_of_opposite_outcomes_keeps_its_error() -> None:
    """What one criterion passes the other fails: no method but `bh` assumes anything about it."""
    outcomes = {(k, TWO.trials - k): TWO.chance(k, 0.5) for k in range(TWO.trials + 1)}
    for method in ("bonferroni", "holm", "by"):
        for side in (PASS, FAIL):
            any_wrong, share = _count_wrong(_table(method, TWO, 2), outcomes, (True, True), side)
            assert (share if method == "by" else any_wrong) <= TWO.level


# --- Designs that stop early ------------------------------------------------------------------


class End(NamedTuple):
    """One end of a design, with outcomes that lead to it."""

    trials: int
    failures: int
    decision: Decision
    path: tuple[bool, ...]
    hopeless: bool
    """Whether it could still FAIL before, and not PASS any more."""

    @property
    def rank(self) -> tuple[int, int, int]:
        """Its place, the best first: an earlier PASS, a later FAIL, open ends in between.

        Who gave up a PASS is better the later, and who gave up a FAIL the earlier.
        """
        n, f = self.trials, self.failures
        hope = (2, n, f) if self.hopeless else (1, -n, f)
        return {PASS: (0, n, f), OPEN: hope, FAIL: (3, -n, f)}[self.decision]


def _list_ends(design: SequentialDesign) -> Iterator[End]:
    """Every end, found by walking over the boundaries."""
    states: dict[int, tuple[tuple[bool, ...], int]] = {0: ((), 1)}
    hole: Sequence[int] = ()
    for n in range(1, design.cap + 1):
        after: dict[int, tuple[tuple[bool, ...], int]] = {}
        for f, (path, ways) in states.items():
            for failed in (False, True):
                known = after.get(f + failed, ((*path, not failed), 0))
                after[f + failed] = known[0], known[1] + ways
        states = {}
        for f, (path, ways) in after.items():
            decision = PASS if f <= design.accept[n] else FAIL if f >= design.reject[n] else None
            low, high = design.futile[n] if design.futile else (0, -1)
            if decision is None and (n == design.cap or low <= f <= high):
                decision = OPEN
            if decision is None:
                states[f] = path, ways
            else:
                _WAYS[design.cap, n, f] = ways
                yield End(n, f, decision, path, bool(hole) and f > min(hole))
        hole = range(low, high + 1)


#: How many paths lead to an end, by the cap of its design.
_WAYS: dict[tuple[int, int, int], int] = {}


class Early(NamedTuple):
    """A family of early stopping criteria: its ends and their p-values."""

    made: Plan
    design: SequentialDesign
    ends: tuple[End, ...]

    def chance(self, end: End, rate: float) -> float:
        n, f = end.trials, end.failures
        return _WAYS[self.design.cap, n, f] * rate ** (n - f) * (1 - rate) ** f

    def tails(self, end: End) -> tuple[float, float]:
        """Against the rate that a PASS rules out, and against the required one."""
        p0, p1 = self.design.p0, self.design.p1
        above = math.fsum(self.chance(one, p1) for one in self.ends if one.rank <= end.rank)
        below = math.fsum(self.chance(one, p0) for one in self.ends if one.rank >= end.rank)
        return (1.0 if end.decision is FAIL else above), (1.0 if end.decision is PASS else below)


QUESTION = {"at_least": 0.7, "max_trials": 16, "confidence": 0.8}


@cache
def _early(method: FamilyCorrection, members: int) -> Early:
    made = _plan(method, members, **QUESTION)
    design = made.criteria[0].design
    assert isinstance(design, SequentialDesign)
    assert math.fsum(_WAYS[design.cap, *end[:2]] / 2**end.trials for end in _list_ends(design)) == 1
    return Early(made, design, tuple(_list_ends(design)))


@pytest.mark.parametrize("method", METHODS)
def test_early_ends_are_decided_by_their_p_values_together(method: FamilyCorrection) -> None:
    """Every pair of ends of two criteria, and its error in both directions."""
    family = _early(method, 2)
    table = {}
    for pair in combinations_with_replacement(family.ends, 2):
        findings = _decide(family.made, [end.path for end in pair])
        assert [one.tally.trials for one in findings] == [end.trials for end in pair]
        decided = tuple(one.decision for one in findings)
        assert decided == _expect(method, [family.tails(end) for end in pair], 0.2), pair
        for one in findings:
            assert one.interval is not None
            assert (one.decision is PASS) == (one.interval.low >= 0.7)
            assert (one.decision is FAIL) == (one.interval.high <= 0.7)
        table[pair] = decided
        table[pair[::-1]] = decided[::-1]
    outcomes = list(product(family.ends, repeat=2))
    apart = {(a, b): family.chance(a, 0.7) * family.chance(b, 0.7) for a, b in outcomes}
    alike = {(end, end): family.chance(end, 0.7) for end in family.ends}
    for chances in (apart, alike):
        assert sum(chances.values()) == pytest.approx(1)
        for side in (PASS, FAIL):
            any_wrong, share = _count_wrong(table, chances, (True, True), side)
            assert (any_wrong if method in ("bonferroni", "holm") else share) <= 0.2


@pytest.mark.parametrize("method", ["holm", "bh"])
def test_three_early_criteria_keep_their_error(method: FamilyCorrection) -> None:
    """All triples of ends; the library is asked about some of them."""
    family = _early(method, 3)
    tails = {end: family.tails(end) for end in family.ends}
    table = {
        triple: _expect(method, [tails[end] for end in triple], 0.2)
        for triple in product(family.ends, repeat=3)
    }
    for triple in list(table)[:: len(table) // 40]:
        findings = _decide(family.made, [end.path for end in triple])
        assert tuple(one.decision for one in findings) == table[triple]
    chance = {end: family.chance(end, 0.7) for end in family.ends}
    apart = {triple: math.prod(chance[end] for end in triple) for triple in table}
    alike = {(end,) * 3: chance[end] for end in family.ends}
    for chances in (apart, alike):
        for side in (PASS, FAIL):
            any_wrong, share = _count_wrong(table, chances, (True,) * 3, side)
            assert (any_wrong if method == "holm" else share) <= 0.2


def _chance_all_pass(members: int, rate: float) -> tuple[float, float]:
    """P(all PASS) of independent criteria at 90 %, by Bonferroni and by Holm."""
    design = SequentialDesign.strict(0.9, alpha=0.05 / members, beta=0.05 / members)
    at_null, at_rate = (stopping_probabilities(design, p) for p in (0.9, rate))

    def rank(stop: tuple[int, int, float]) -> tuple[int, int, int]:
        low, high = design.futile[stop[0] - 1] if design.futile else (0, -1)
        from_above = low <= high and stop[1] > low
        return (1, stop[0], stop[1]) if from_above else (0, -stop[0], stop[1])

    nulls, trues = (
        [*sorted(one.passes), *sorted(one.inconclusive, key=rank)] for one in (at_null, at_rate)
    )
    chance_at = {stop[:2]: stop[2] for stop in trues}
    steps = [0.05 / (members - j) for j in range(members)]
    reached, tail = [0.0] * members, 0.0
    for stop in nulls:
        tail += stop[2]
        for j, step in enumerate(steps):
            if tail <= step * (1 + 1e-9):
                reached[j] += chance_at.get(stop[:2], 0.0)
                break
    # How many of the members have a p-value up to each step: at least j up to the j-th.
    ways = {0: 1.0}
    for j, share in enumerate(reached):
        after: dict[int, float] = {}
        for done, chance in ways.items():
            for more in range(members - done + 1):
                if done + more > j:
                    odds = chance * math.comb(members - done, more) * share**more
                    after[done + more] = after.get(done + more, 0.0) + odds
        ways = after
    return reached[0] ** members, ways[members]


@pytest.mark.parametrize(("members", "bonferroni", "holm"), [(2, 0.62, 0.77), (10, 0.19, 0.71)])
def test_holm_rescues_what_boundaries_leave_open(
    members: int, bonferroni: float, holm: float
) -> None:
    """All PASS at 95 % where 90 % is required, exactly, for independent criteria."""
    assert _chance_all_pass(members, 0.95) == pytest.approx((bonferroni, holm), abs=0.005)


# --- What a correction may change -------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.booleans(), min_size=16, max_size=16), min_size=3, max_size=3))
@pytest.mark.parametrize(
    "question",
    [QUESTION, {"at_least": 0.6, "trials": 16, "undecided": "fail"}],
    ids=["early", "fixed"],
)
def test_a_corrected_decision_is_never_the_opposite(
    question: dict[str, Any], paths: list[list[bool]]
) -> None:
    """Holm and BH show at least what Bonferroni shows, and nothing that is not shown alone."""
    shown: dict[str, list[Decision | None]] = {}
    for method in (*METHODS, "e-bh"):
        made = _plan(method, 3, **question)
        findings = _decide(made, paths)
        shown[method] = [_statement(one) for one in findings]
        for one, said in zip(findings, shown[method], strict=True):
            assert said is None or one.single_decision is said
            assert one.single_decision is not FAIL or one.decision is not PASS
    for method in ("holm", "bh"):
        for simple, better in zip(shown["bonferroni"], shown[method], strict=True):
            assert simple in (None, better)


def _statement(finding: Finding) -> Decision | None:
    """What a finding shows, apart from a FAIL that only says that nothing was shown."""
    is_bare = getattr(finding.evidence, "ground", None) == "not shown"
    return None if is_bare or finding.decision is OPEN else finding.decision
