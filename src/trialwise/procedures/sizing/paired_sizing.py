"""The plan of a comparison: how many pairs it takes, and how likely each verdict is.

The sequential rule that `trialwise compare` decides by stands beside the smallest fixed number of
pairs with the same power. Both are enumerated for what the arms might truly be: as expected, equal,
and worse. Rules with a small margin take thousands of pairs, and are simulated.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache as remembered
from functools import partial
from random import Random
from typing import ClassVar, NamedTuple

from trialwise.decimals import as_written
from trialwise.procedures.comparison import limit_pairs
from trialwise.procedures.sizing.comparison_sizing import (
    MOST_TRIALS,
    UnpairedSize,
    find_size,
    unpaired_size,
)
from trialwise.procedures.sizing.sizing_base import PowerQuestion, SizingPlan
from trialwise.stats import paired
from trialwise.stats.binomial import raw_cdf, upper_z
from trialwise.stats.paired_rules import PairedRule, plan_paired_rule
from trialwise.stats.result_types import Decision
from trialwise.stats.sequential.shipped_designs import DesignCache
from trialwise.validation import require_open_rate

#: What the rule that ships with the package is made for.
USUAL_RATES = (0.8, 0.9)
#: Rates at which a margin is asked about where nobody says what to expect.
_USUAL_EQUAL = (0.85, 0.85)
#: A fixed size is looked for up to here.
MOST_PAIRS = 5_000
#: Rules with a margin are enumerated up to here; beyond, the chances are simulated.
_MOST_ENUMERATED = 1_000
_SIMULATED = 1_000
_VERDICTS = (Decision.PASS, Decision.FAIL, Decision.INCONCLUSIVE)


@dataclass(frozen=True, slots=True)
class PairedSizingQuestion(PowerQuestion):
    """How many pairs does a comparison take, and how likely is each verdict?

    Args:
        expect: The rates that you expect of the control and of the candidate.
        question: "different", "better", "not-worse" or "equivalent".
        margin: The margin of the question.
        discordance: The share of pairs in which exactly one passes; by default that of arms that
            pass independently of each other.
        pairs: A fixed number of pairs.
        max_pairs: Upper limit on pairs.
        tests: Criteria times candidates, which share the level.
        arms: How many arms there are, the control included.
        concurrency: Number of concurrent trials.
        confidence: 1 − alpha.
        power: 1 − beta.
        trial_usd: What a trial costs, in US dollars.
        trial_s: How long a trial takes, in seconds.
    """

    expect: tuple[float, float] | None = None
    _: KW_ONLY
    question: paired.PairedQuestion = "different"
    margin: float | None = None
    discordance: float | None = None
    pairs: int | None = None
    max_pairs: int | None = None
    tests: int = 1
    arms: int = 2
    concurrency: int = 1

    open_rates: ClassVar[str] = "confidence power discordance"
    counts: ClassVar[str] = "pairs max_pairs tests arms concurrency"
    written: ClassVar[Mapping[str, str]] = {"expect": "rates"}

    def __post_init__(self) -> None:
        PowerQuestion.__post_init__(self)
        is_open = self.pairs is None or self.max_pairs is None
        self.require("max_pairs", is_open, "be left out where the number of pairs is fixed")
        # Beyond this a test suite is not the instrument.
        self.require("pairs", (self.pairs or 0) <= MOST_TRIALS, f"be at most {MOST_TRIALS}")
        paired.require_margin(self.question, self.margin)
        for rate in self.expect or ():
            require_open_rate("expect", rate)
        first, second = self.expected
        # Equal arms have no power to plan for: every PASS would be an error.
        is_told = first != second or self.question not in ("different", "better")
        self.require("expect", is_told, "differ: equal arms are never told apart")
        # Two rates bound how often exactly one of two events happens (Fréchet 1951).
        low = float(abs(as_written(first) - as_written(second)))
        high = min(first + second, 2 - first - second)
        is_possible = self.discordance is None or low <= self.discordance <= high
        allowed = f"lie between {low:g} and {high:g}, which the rates allow"
        self.require("discordance", is_possible, allowed)

    @property
    def expected(self) -> tuple[float, float]:
        """The rates that are expected, or the usual ones."""
        if self.expect is not None:
            return self.expect
        return USUAL_RATES if self.question in ("different", "better") else _USUAL_EQUAL

    @property
    def wanted(self) -> Decision:
        """The verdict that the plan is made for: a candidate expected to be worse is found out."""
        is_worse = self.expected[1] < self.expected[0]
        return Decision.FAIL if is_worse and self.question == "different" else Decision.PASS

    @property
    def largest_size(self) -> int:
        """The largest fixed number of pairs that is looked for."""
        return _MOST_ENUMERATED if self.margin else MOST_PAIRS

    @property
    def level(self) -> float:
        """The level of one test."""
        # Bonferroni, which is also the first step of Holm's procedure: its later steps are never
        # stricter, so that a plan by the first one promises no power that is not there.
        return self.alpha / self.tests

    def split(self, control: float, candidate: float) -> tuple[float, float]:
        """Return how often only the control passes a pair, and how often only the candidate.

        Without a discordance the arms pass independently of each other.
        """
        gap = candidate - control
        # Arms that fail on different inputs for different reasons: the assumption that takes the
        # most pairs of those that are usual.
        if self.discordance is None:
            return control * (1 - candidate), candidate * (1 - control)
        total = max(self.discordance, abs(gap))
        return (total - gap) / 2, (total + gap) / 2


class PairedChances(NamedTuple):
    """What a rule does where the arms truly have these rates."""

    truth: str
    control: float
    candidate: float
    passes: float
    """P(PASS), P(FAIL) and P(INCONCLUSIVE) of one test."""
    fails: float
    inconclusive: float
    mean_pairs: float


class PairedMethod(NamedTuple):
    """A way to decide, and what it does."""

    name: str
    """`sequential` or `fixed`."""
    most_pairs: int | None
    simulated: int | None
    """How many comparisons the chances were simulated by; None where they are exact."""
    certificate: float | None
    """Expected pairs over the proven minimum, where one is known."""
    rows: tuple[PairedChances, ...]

    @property
    def expected(self) -> PairedChances:
        """What it does where the rates are as expected."""
        return self.rows[0]


class Disagreement(NamedTuple):
    """The pairs it takes for one share of discordant pairs, at the expected rates."""

    kind: str
    discordance: float
    mean_pairs: float | None
    passes: float | None
    fixed_pairs: int | None
    """The fixed number of pairs with the power asked for; None beyond 5,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedPlan(SizingPlan):
    """The sizes of a comparison."""

    form = "pairs"

    question: PairedSizingQuestion
    methods: tuple[PairedMethod, ...]
    """The one that decides first."""
    disagreements: tuple[Disagreement, ...]
    apart: UnpairedSize | None = None
    """The trials of each arm on separate inputs; None where a margin is asked about."""


def plan_pairs(question: PairedSizingQuestion, *, cache: DesignCache | None = None) -> PairedPlan:
    """Plan a comparison: the sequential rule and a fixed size, with their chances, exactly.

    Args:
        question: What is asked.
        cache: Where boundaries that were searched for are kept.

    >>> plan = plan_pairs(PairedSizingQuestion((0.8, 0.9)))
    >>> sequential, fixed = plan.methods
    >>> sequential.expected.passes > 0.79, sequential.expected.mean_pairs < fixed.most_pairs
    (True, True)
    """
    rules = list(_list_rules(question, cache))
    apart = None
    if not question.margin:
        worse, better = sorted(question.expected)
        apart = unpaired_size(better, worse, alpha=question.level / 2, power=question.power)
    return PairedPlan(
        question=question,
        methods=tuple(_describe_rule(question, rule) for rule in rules),
        disagreements=tuple(_list_disagreements(question, rules[0])),
        apart=apart,
    )


def _list_rules(question: PairedSizingQuestion, cache: DesignCache | None) -> Iterator[PairedRule]:
    if question.pairs is not None:
        yield _plan_rule(question, pairs=question.pairs)
        return
    rule = _plan_rule(question, rates=question.expect, max_pairs=question.max_pairs, cache=cache)
    yield limit_pairs(rule, question.expect)
    size = find_fixed_pairs(question)
    if size is not None:
        yield _plan_rule(question, pairs=size)


def _plan_rule(question: PairedSizingQuestion, **size: object) -> PairedRule:
    both = None
    if question.discordance is not None and size.get("rates") is not None:
        first, second = question.expected
        # The rates count the pairs that both pass twice and those that one passes once.
        both = (first + second - question.discordance) / 2
    return plan_paired_rule(
        question.question,
        margin=question.margin,
        alpha=question.level,
        power=question.power,
        both=both,
        **size,  # type: ignore[arg-type]
    )


def find_fixed_pairs(question: PairedSizingQuestion) -> int | None:
    """Find the smallest fixed number of pairs with the power asked for; None beyond 5,000.

    With a margin, where each size takes long to enumerate, it is found to within a few percent.

    >>> find_fixed_pairs(PairedSizingQuestion((0.5, 0.9)))
    25
    """
    split = question.split(*question.expected)
    if question.wanted is Decision.FAIL:
        split = split[1], split[0]

    @remembered
    def has_power(pairs: int) -> bool:
        found = _plan_rule(question, pairs=pairs).characteristic(*split)
        return found.chance_of(Decision.PASS) >= question.power

    high = _guess_fixed_pairs(question)
    # Enumerating every size would take minutes, since the states of a pair table grow with the
    # square of the pairs.
    if question.margin:
        # The exact test needs a little more than the normal approximation.
        while high <= question.largest_size and not has_power(high):
            high += max(1, high // 30)
        return high if high <= question.largest_size else None
    # Each size has a cutoff of its own, so that the size of the exact test, and with it the power,
    # jumps between neighbours.
    size = find_size(has_power, high, question.largest_size)
    if size is None:
        return None
    # The power rises with the pairs but for a small sawtooth.
    return next(n for n in range(max(1, size - 6), size + 1) if has_power(n))


def _guess_fixed_pairs(question: PairedSizingQuestion) -> int:
    """Return a fixed size by the normal approximation."""
    control, candidate = question.expected
    gap, margin = candidate - control, question.margin or 0.0
    distance = {
        "different": abs(gap),
        "better": gap - margin,
        "not-worse": gap + margin,
        "equivalent": margin - abs(gap),
    }[question.question]
    power = question.power
    if question.question == "equivalent":
        # Both sides have to be shown, and each may fail: half of the missing power each.
        power = (1 + power) / 2
    if distance <= 0:
        return 10 * MOST_PAIRS  # no number of pairs has the power
    reach = upper_z(question.level / 2) + upper_z(1 - power)
    return math.ceil(sum(question.split(control, candidate)) * (reach / distance) ** 2)


def _list_truths(question: PairedSizingQuestion) -> Iterator[tuple[str, float, float]]:
    """List what the arms might truly be, what is expected first."""
    control, candidate = question.expected
    gap = float(as_written(candidate) - as_written(control))
    yield "as expected", control, candidate
    margin = question.margin or 0.0
    truths = [("equal", 0.0)]
    if question.question == "different":
        truths += [("half of it", gap / 2), ("the other way", -gap)]
    elif question.question == "better":
        truths += [("better by the margin", margin)] if margin else []
        truths += [("as much worse", -abs(gap))]
    else:
        truths.append(("worse by the margin", -margin))
    for name, difference in truths:
        rate = float(as_written(control) + as_written(difference))
        if 0 < rate < 1 and (name != "equal" or gap != 0):
            yield name, control, rate


def _describe_rule(question: PairedSizingQuestion, rule: PairedRule) -> PairedMethod:
    # The states of a rule with a margin are (only A, only B) after every look: their number grows
    # with the square of the pairs.
    is_simulated = bool(question.margin) and (rule.max_pairs or 0) > _MOST_ENUMERATED
    find_chances = partial(simulate_rule, rule) if is_simulated else rule.characteristic
    rows = []
    for truth, *rates in _list_truths(question):
        found = find_chances(*question.split(*rates))
        verdicts = (found.chance_of(one) for one in _VERDICTS)
        rows.append(PairedChances._make((truth, *rates, *verdicts, found.mean_pairs)))
    return PairedMethod(
        name="sequential" if rule.is_sequential else "fixed",
        most_pairs=rule.max_pairs,
        simulated=_SIMULATED if is_simulated else None,
        certificate=rule.certificate,
        rows=tuple(rows),
    )


def simulate_rule(
    rule: PairedRule, only_a: float, only_b: float, *, runs: int = _SIMULATED, seed: int = 0
) -> paired.PairedCharacteristic:
    """Return the chances of each outcome in simulated comparisons, with about 1.5 % of error.

    Args:
        rule: It may look less often than after every pair.
        only_a: The probability that only the control passes a pair.
        only_b: Likewise only the candidate.
        runs: How many comparisons are simulated.
        seed: Of the simulation.
    """
    # Rules with a margin look after every few pairs, and it costs them little power.
    batch, last = getattr(rule, "batch", 1), rule.max_pairs or 0
    # One seed for all plans: the same question has the same answer, today and on another machine.
    coins, either = Random(seed), only_a + only_b
    share = only_a / either if either else 0.0
    counts: Counter[paired.PairedOutcome] = Counter()
    pairs = discordant = 0
    for _ in range(runs):
        a = b = done = 0
        outcome = None
        while outcome is None and done < last:
            size = min(batch, last - done)
            # Two draws instead of one for each pair: a wide plan has ten thousand pairs a run.
            told = bisect(_list_cumulative(size, either), coins.random())
            first = bisect(_list_cumulative(told, share), coins.random())
            a, b, done = a + first, b + told - first, done + size
            table = paired.PairCounts(both=done - a - b, only_a=a, only_b=b, neither=0)
            outcome = rule.decide(table)
        counts[outcome or "not shown"] += 1
        pairs, discordant = pairs + done, discordant + a + b
    return paired.PairedCharacteristic(
        question=rule.question,
        chances={outcome: count / runs for outcome, count in counts.items()},
        mean_pairs=pairs / runs,
        mean_discordant=discordant / runs,
    )


@remembered
def _list_cumulative(trials: int, rate: float) -> list[float]:
    """List P(K ≤ k) for k = 0 … trials − 1, which a uniform number turns into a count."""
    return [raw_cdf(k, trials, rate) for k in range(trials)]


def _list_disagreements(question: PairedSizingQuestion, rule: PairedRule) -> Iterator[Disagreement]:
    """Yield the pairs that the expected difference takes, by how often the arms disagree."""
    if question.margin:
        return  # each takes as long as a row of the table
    first, second = map(as_written, question.expected)
    gap = float(second - first)
    independent = float(first * (1 - second) + second * (1 - first))
    least = max(abs(gap), 0.01)
    kinds = {"least": least, "halfway": (least + independent) / 2, "independent": independent}
    if question.discordance is not None:
        kinds = {"assumed": question.discordance}
    for kind, total in kinds.items():
        found = rule.characteristic((total - gap) / 2, (total + gap) / 2)
        yield Disagreement(
            kind=kind,
            discordance=total,
            mean_pairs=found.mean_pairs,
            passes=found.chance_of(question.wanted),
            fixed_pairs=find_fixed_pairs(replace(question, discordance=total)),
        )
