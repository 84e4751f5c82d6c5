"""What a sequential plan is asked: two rates to tell apart, how surely, and within which means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cache as remembered
from itertools import accumulate
from typing import ClassVar, Literal, NamedTuple

from trialwise import validation
from trialwise.decimals import as_written, complement
from trialwise.errors import InvalidArgument
from trialwise.procedures.characteristic import Chance
from trialwise.procedures.sequential import walk_design
from trialwise.procedures.sequential_designs import choose_shared
from trialwise.procedures.sizing import sizing_base
from trialwise.procedures.sizing.sizing_base import RateChoice, list_choices
from trialwise.stats.bounded_means import coin_divergence
from trialwise.stats.compliance_cutoffs import check_required_rate
from trialwise.stats.sequential import bound
from trialwise.stats.sequential.bound import default_alternative
from trialwise.stats.sequential.concurrency import trials_to_start
from trialwise.stats.sequential.design import Method, SequentialDesign
from trialwise.stats.sequential.shipped_designs import DesignCache
from trialwise.stats.toolbox.concurrent_rounds import walk_rounds

#: The longest design planned for: a search takes seconds at a thousand trials, a minute here.
LONGEST = 20_000


@dataclass(frozen=True, slots=True)
class SequentialQuestion(sizing_base.PowerQuestion):
    """What does it take to show that a rate is met, if the test may stop early?

    The confidence is 1 − P(FAIL) at the required rate, over all criteria together if corrected; the
    power is 1 − P(PASS) at the alternative.

    Args:
        rate: The required rate: FAIL is to be rare here and above.
        alternative: The bad rate to tell it from: PASS is to be rare here and below. By default 10
            points lower, and at least 1 %.
        expect: The true rate at which the ways to ask are compared; by default the one with half
            the allowed failures.
        max_trials: Upper limit on trials; by default twice the exact fixed sample.
        batch: Decide after every N trials.
        criteria: How many criteria are decided on the same trials.
        correction: How the criteria share alpha: "none" or "bonferroni".
        concurrency: How many trials may run at once.
        before_search: Is given the upper limit on trials before designs are searched for. With
            more than a thousand trials the search takes a while.
        confidence: 1 − alpha.
        power: 1 − beta.
        trial_usd: What a trial costs, in US dollars.
        trial_s: How long a trial takes, in seconds.
    """

    rate: float
    _: KW_ONLY
    alternative: float | None = None
    expect: float | None = None
    max_trials: int | None = None
    batch: int = 1
    criteria: int = 1
    correction: Literal["none", "bonferroni"] = "none"
    concurrency: int = 1
    before_search: Callable[[int], None] | None = field(default=None, compare=False)

    open_rates: ClassVar[str] = "confidence power alternative"
    counts: ClassVar[str] = "batch criteria concurrency max_trials"
    written: ClassVar[Mapping[str, str]] = {
        "rate": "required_rate",
        "alternative": "alternative_rate",
        "expect": "expected_rate",
    }

    def __post_init__(self) -> None:
        required = check_required_rate(self.rate)
        sizing_base.PowerQuestion.__post_init__(self)
        allowed = f"lie below the required rate ({required:g})"
        self.require("alternative", self.alternative_rate < required, allowed)
        # Errors that add up to 1 are kept by a coin, without any trial.
        allowed = f"be above 1 - confidence ({self.family_alpha:g})"
        self.require("power", self.family_alpha + self.beta < 1, allowed)
        validation.require_given(self, "expect", validation.require_rate)
        validation.require_choice("correction", self.correction, ("none", "bonferroni"))
        self.require("max_trials", (self.max_trials or 0) <= LONGEST, f"be at most {LONGEST}")

    @property
    def alternative_rate(self) -> float:
        """The bad rate."""
        return default_alternative(self.rate) if self.alternative is None else self.alternative

    @property
    def family_alpha(self) -> float:
        """1 − confidence, in decimals."""
        return complement(self.confidence)

    @property
    def alpha(self) -> float:
        """P(FAIL) allowed to each criterion at the required rate."""
        # Bonferroni: shared in equal parts, the level holds however the criteria hang together.
        shares = self.criteria if self.correction == "bonferroni" else 1
        return self.family_alpha / shares

    @property
    def beta(self) -> float:
        """1 − power, in decimals."""
        return complement(self.power)

    @property
    def fixed_trials(self) -> int:
        """The smallest fixed sample that keeps both errors, exactly."""
        rates = self.rate, self.alternative_rate
        try:
            return bound.fixed_size(*rates, alpha=self.alpha, beta=self.beta).trials
        except InvalidArgument:
            allowed = f"lie further below the required rate ({self.rate:g})"
            raise InvalidArgument("alternative", self.alternative_rate, allowed) from None


def resolved_max_trials(question: SequentialQuestion) -> int:
    """Return the most trials: as asked, or twice the exact fixed sample in whole batches.

    >>> resolved_max_trials(SequentialQuestion(0.9))
    156
    """
    if question.max_trials is not None:
        return question.max_trials
    least = question.fixed_trials
    # In whole batches, since results are judged after each and not between.
    batches = -(-2 * least // question.batch)
    if batches * question.batch <= LONGEST:
        return batches * question.batch
    if least > LONGEST:
        allowed = (
            f"lie further below the required rate: to tell {question.rate:g} from it "
            f"takes {least} trials, and designs are planned for up to {LONGEST}"
        )
        raise InvalidArgument("alternative", question.alternative_rate, allowed)
    return LONGEST


# --- What each method promises, does and costs ---------------------------------------------------
#
# A person chooses a design by its true errors, its trials, and what those cost at rates that may
# turn out to be true; every one of these numbers is exact here.

#: Above this many trials the lines of `calibrated` take longer to place than the optimum to find.
LONGEST_CALIBRATED = 1_000
#: Up to this fixed sample the exact bound takes a second or so a rate; above, another is used.
LARGEST_EXACT_BOUND = 400
#: Above this many trials only whole rounds are counted, whose cost needs no policy state by state.
LONGEST_SPARING = 2_000
#: Points of a curve: a divisor of the steps puts both rates of a claim on the usual grid.
LONG_CURVE_POINTS = 31
#: An open end counts as much here as in the search for the optimal design.
# Without a price on it the cheapest design would be the one that hardly ever decides.
INCONCLUSIVE_COST = 100.0

_METHODS = (Method.OPTIMAL, Method.CALIBRATED, Method.WALD, Method.FIXED)


class Expectation(NamedTuple):
    """What a design does at one true rate, and what that costs.

    The verdict's probabilities and `trials` are those of one criterion; the run's figures are
    those of all criteria, at the same rate and independent, on the same trials.
    """

    rate: float
    passes: float
    fails: float
    inconclusive: float
    trials: sizing_base.Spread
    run_trials: sizing_base.Spread
    """The largest of the criteria's trials: a run ends when every criterion has its verdict."""
    run_mean_at_most: float
    """What the mean of `run_trials` cannot exceed, however the criteria hang together."""
    rounds: sizing_base.Spread
    """Rounds of `concurrency` trials at most; one trial at a time, the same as trials."""
    started: sizing_base.Spread
    """Trials started, those no verdict needed included."""
    cost_usd: sizing_base.Spread | None
    duration_s: sizing_base.Spread | None


class BrokenPromise(NamedTuple):
    """A probability that a method states and does not keep."""

    outcome: Literal["PASS", "FAIL"]
    rate: float
    promise: Literal["at most", "at least"]
    promised: float
    actual: float


class MethodPlan(NamedTuple):
    """One method: its design and what that really does."""

    method: Method
    design: SequentialDesign
    false_fail: float
    """P(FAIL) at the required rate, exactly."""
    false_pass: float
    """P(PASS) at the alternative, exactly."""
    inconclusive_required: float
    inconclusive_alternative: float
    expectations: tuple[Expectation, ...]
    """At the alternative, midway, at the required rate, and midway from there to 1."""
    broken: tuple[BrokenPromise, ...]
    curve: tuple[Chance, ...]

    @property
    def mean_cost(self) -> float:
        """Mean trials of a run over the two rates, an open end counted at 100."""
        low, _, high, _ = self.expectations
        trials = low.run_trials.mean + high.run_trials.mean
        return (trials + INCONCLUSIVE_COST * (low.inconclusive + high.inconclusive)) / 2


class Omission(NamedTuple):
    """A method that was left out, and why."""

    method: Method
    reason: str


class LowerBound(NamedTuple):
    """The fewest expected trials at one rate of any test that always decides with these errors."""

    rate: float
    trials: float
    kind: Literal["exact", "information"]
    """Exact, or the information bound, which no test reaches quite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialPlan(sizing_base.SizingPlan):
    """The table a person needs to choose a sequential design."""

    form = "rate"

    question: SequentialQuestion
    max_trials: int
    fixed_trials: int
    """The smallest fixed sample that keeps both errors."""
    rates: tuple[float, ...]
    methods: tuple[MethodPlan, ...]
    omissions: tuple[Omission, ...]
    bounds: tuple[LowerBound, ...]
    shortfall: bound.Shortfall | None
    """What no rule can avoid leaving undecided, where the trials do not suffice."""
    recommended: Method
    choices: tuple[RateChoice, ...] = ()
    """The ways to ask for the required rate, with what each would do at the expected rate."""

    @property
    def recommendation(self) -> MethodPlan:
        """The method that keeps its promises with the fewest trials."""
        return self.of(self.recommended)

    def of(self, method: Method) -> MethodPlan:
        """Return the plan of one method."""
        return next(plan for plan in self.methods if plan.method is method)


def plan_sequential(
    question: SequentialQuestion, *, cache: DesignCache | None = None
) -> SequentialPlan:
    """Return every method for a question, side by side, with the limits that bind them all.

    Args:
        question: What is asked.
        cache: Where designs that do not ship with the package are kept between runs.

    >>> plan = plan_sequential(SequentialQuestion(0.95))
    >>> plan.recommended, plan.max_trials, plan.fixed_trials
    (<Method.OPTIMAL: 'optimal'>, 104, 52)
    """
    most = resolved_max_trials(question)
    # For whoever would wonder why nothing happens for a minute.
    if question.before_search is not None:
        question.before_search(most)
    good, bad = as_written(question.rate), as_written(question.alternative_rate)
    rates = tuple(float(rate) for rate in (bad, (good + bad) / 2, good, (good + 1) / 2))
    designs = dict(_designs(question, most, cache))
    methods = tuple(_method_plan(question, design, rates) for design in designs.values())
    # The lines of `calibrated` take longer to place than the optimum takes to find.
    reason = f"its lines are placed for at most {LONGEST_CALIBRATED} trials"
    return SequentialPlan(
        question=question,
        max_trials=most,
        fixed_trials=question.fixed_trials,
        rates=rates,
        methods=methods,
        omissions=tuple(Omission(one, reason) for one in _METHODS if one not in designs),
        bounds=tuple(_find_bound(question, rate) for rate in rates),
        shortfall=designs[Method.OPTIMAL].shortfall,
        # The optimal design keeps both errors, so that one is always left.
        recommended=min(
            (one for one in methods if not one.broken), key=lambda one: one.mean_cost
        ).method,
        choices=list_choices(
            question.rate,
            question.expect,
            level=question.alpha,
            trial_usd=question.trial_usd,
            cache=cache,
        ),
    )


def information_bound(question: SequentialQuestion, rate: float) -> float:
    """Wald's information inequality: the fewest expected trials that could tell the rates apart.

    With x = P(FAIL) at the rate p, E[N]·KL(p, p0) ≥ kl(x, alpha) and E[N]·KL(p, p1) ≥ kl(1−x, beta)
    (Wald 1945; in this form Hoeffding 1960). The x that allows the fewest trials is found by
    halving, as one side grows with x and the other falls.
    """
    good = coin_divergence(rate, question.rate)
    bad = coin_divergence(rate, question.alternative_rate)
    low, high = question.alpha, 1 - question.beta
    if good == 0:
        return coin_divergence(1 - low, question.beta) / bad
    if bad == 0:
        return coin_divergence(high, question.alpha) / good
    # Sixty halvings: further ones change no digit of a float.
    for _ in range(60):
        x = (low + high) / 2
        fails, passes = coin_divergence(x, question.alpha), coin_divergence(1 - x, question.beta)
        low, high = (x, high) if fails / good < passes / bad else (low, x)
    return coin_divergence(low, question.alpha) / good


def _designs(
    question: SequentialQuestion, most: int, cache: DesignCache | None
) -> Iterator[tuple[Method, SequentialDesign]]:
    rates = question.rate, question.alternative_rate
    alpha, beta, batch = question.alpha, question.beta, question.batch
    for method in _METHODS:
        if method is Method.CALIBRATED and most > LONGEST_CALIBRATED:
            continue
        kept = {"cache": cache} if method is Method.OPTIMAL else {}
        make: Callable[..., SequentialDesign] = getattr(SequentialDesign, method.value)
        design = make(*rates, alpha=alpha, beta=beta, cap=most, batch=batch, **kept)
        # The least mean for one criterion may be bought with a few very long runs.
        # On shared trials the slowest criterion sets the price, which favours a shorter longest
        # run.
        if method is Method.OPTIMAL and question.criteria > 1:
            design = choose_shared(design, question.criteria, cache=cache)
        yield method, design


def _method_plan(
    question: SequentialQuestion, design: SequentialDesign, rates: tuple[float, ...]
) -> MethodPlan:
    start = remembered(
        lambda n, f: trials_to_start(design, n, f, 0, concurrency=question.concurrency)
    )
    # Wide enough to see PASS and FAIL nearly certain on either side of the two rates.
    high, margin = as_written(design.p0), as_written(design.p0) - as_written(design.p1)
    points = sizing_base.CURVE_POINTS if design.cap <= LONGEST_SPARING else LONG_CURVE_POINTS
    curve = sizing_base.even_rates(high - 3 * margin, high + 2 * margin, points)
    expectations = tuple(_expect(question, design, rate, start) for rate in rates)
    bad, _, good, _ = expectations
    at = walk_design(design).at
    assert at is not None
    return MethodPlan(
        method=design.method,
        design=design,
        false_fail=good.fails,
        false_pass=bad.passes,
        inconclusive_required=good.inconclusive,
        inconclusive_alternative=bad.inconclusive,
        expectations=expectations,
        broken=tuple(_list_broken(question, design.method, good, bad)),
        curve=tuple(map(at, curve)),
    )


def _list_broken(
    question: SequentialQuestion, method: Method, good: Expectation, bad: Expectation
) -> list[BrokenPromise]:
    """List what a method states and does not keep, beyond rounding.

    Every method states its two errors. Wald's test knows two verdicts only, so that it states the
    power too; a design with an open end says so instead.
    """
    p0, p1 = question.rate, question.alternative_rate
    alpha, beta = question.alpha, question.beta
    stated = [
        BrokenPromise("FAIL", p0, "at most", alpha, good.fails),
        BrokenPromise("PASS", p1, "at most", beta, bad.passes),
    ]
    if method is Method.WALD:
        # Wald (1945) states both for a test without an end; cutting it at a number of trials takes
        # runs out of PASS and FAIL alike.
        stated += [
            BrokenPromise("PASS", p0, "at least", 1 - alpha, good.passes),
            BrokenPromise("FAIL", p1, "at least", 1 - beta, bad.fails),
        ]
    # Sums of a thousand products differ from the promise in their last digits.
    signs = {"at most": 1, "at least": -1}
    return [one for one in stated if signs[one.promise] * (one.actual - one.promised) > 1e-12]


def _expect(
    question: SequentialQuestion,
    design: SequentialDesign,
    rate: float,
    start: Callable[[int, int], int],
) -> Expectation:
    curve = design.operating_characteristic(rate)
    one, at_once = curve.distribution, question.concurrency
    together = sizing_base.largest_of(one, question.criteria) if question.criteria > 1 else one
    # Rounds and trials started, with the chance that a run ends so. One at a time nothing is
    # started in vain, and a round is a trial.
    if at_once == 1 or question.criteria > 1 or design.cap > LONGEST_SPARING:
        counts = [(-(-n // at_once), weight) for n, weight in enumerate(together)]
        ends = [(count, min(design.cap, count * at_once), weight) for count, weight in counts]
    else:
        walked = walk_rounds(design, rate, start)
        ends = [(each.number, each.started, each.ends) for each in walked]
    rounds = sizing_base.spread((count, weight) for count, _, weight in ends)
    started = sizing_base.spread((count, weight) for _, count, weight in ends)
    # Whatever their dependence, the criteria's longest run exceeds n at most as often as all of
    # them together do (Boole's inequality).
    longer = (1 - min(1.0, reached) for reached in accumulate(one))
    return Expectation(
        rate=rate,
        passes=curve.passes,
        fails=curve.fails,
        inconclusive=curve.inconclusive,
        trials=sizing_base.spread(enumerate(one)),
        run_trials=sizing_base.spread(enumerate(together)),
        run_mean_at_most=sum(min(1.0, question.criteria * chance) for chance in longer),
        rounds=rounds,
        started=started,
        cost_usd=None if question.trial_usd is None else started.times(question.trial_usd),
        duration_s=None if question.trial_s is None else rounds.times(question.trial_s),
    )


def _find_bound(question: SequentialQuestion, rate: float) -> LowerBound:
    if question.fixed_trials > LARGEST_EXACT_BOUND:
        return LowerBound(rate, information_bound(question, rate), "information")
    rates = question.rate, question.alternative_rate
    trials = bound.expected_trials_bound(*rates, rate, alpha=question.alpha, beta=question.beta)
    return LowerBound(rate, trials, "exact")
