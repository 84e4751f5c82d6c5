"""A plan in a terminal: what is said, within 80 columns, in ASCII where need be."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from textwrap import dedent
from typing import Any

import pytest

from trialwise.documents.blocks import Details, Document, Prose, Row, Section, Table
from trialwise.documents.numbers import as_duration, as_mean_trials, as_money, as_probability
from trialwise.pages.sizing import build_sizing_page
from trialwise.procedures.sequential_designs import (
    describe_rule,
    list_failing_steps,
    list_passing_steps,
)
from trialwise.procedures.sizing.fixed_sizing import (
    ComplianceQuestion,
    PrecisionQuestion,
    plan_compliance,
    plan_precision,
)
from trialwise.procedures.sizing.paired_sizing import PairedSizingQuestion, plan_pairs
from trialwise.procedures.sizing.regression_sizing import (
    LatencyQuestion,
    RegressionQuestion,
    plan_latency,
    plan_regression,
)
from trialwise.procedures.sizing.sequential_sizing import SequentialQuestion, plan_sequential
from trialwise.procedures.sizing.sizing_base import SizingPlan
from trialwise.renderers.capabilities import Capabilities
from trialwise.renderers.document_text import render_document_text
from trialwise.stats.sequential import SequentialDesign


def render_plan_text(page: Document, *, unicode: bool = True) -> str:
    return render_document_text(page, Capabilities(unicode=unicode))


HAND_MADE = Document(
    kind="Plan",
    title="Plan: is it so?",
    facts=(("good", "at least 90 %"), ("a trial", "$0.02")),
    lead="Use the first: " + "it is short and it is good, " * 4 + "as 5 % says.",
    blocks=(
        Section(
            heading="The rule",
            blocks=(
                Prose(paragraphs=("PASS early.", "FAIL late.")),
                Details(summary="more", blocks=(Prose(paragraphs=("all",)),)),
            ),
        ),
        Table(
            heading="Trials",
            columns=("method", "P(FAIL)\nat 90 %", "most"),
            rows=(Row(cells=("first", "≤ 5 %", "50")), Row(cells=("second one", "…", "156"))),
            notes=("! The second breaks its promise.",),
        ),
    ),
)

GOLDEN = """\
Plan: is it so?

  good     at least 90 %
  a trial  $0.02

Use the first: it is short and it is good, it is short and it is good, it is
short and it is good, it is short and it is good, as 5 % says.

THE RULE
  PASS early.
  FAIL late.

TRIALS
              P(FAIL)
  method      at 90 %  most
  first         ≤ 5 %    50
  second one        …   156
  ! The second breaks its promise.
"""


def test_a_page_is_laid_out_as_it_should_be() -> None:
    """Facts aligned, numbers to the right, headings in capitals, details left to a browser."""
    assert render_plan_text(HAND_MADE) == GOLDEN


def test_ascii_differs_in_its_symbols_only() -> None:
    """≤ is <= and … is ..., and the columns stay aligned by their widest cell."""
    text = render_plan_text(HAND_MADE, unicode=False)

    assert text.isascii()
    assert "<= 5 %" in text
    assert GOLDEN.replace("≤", "<=").replace("…", "...").split() == text.split()


def test_a_table_too_wide_is_cut_into_strips() -> None:
    """Every column appears once, each strip begins with the names of the rows."""
    columns = ("method", *(f"at a rate of {i} %" for i in range(8)))
    rows = tuple(
        Row(cells=(name, *(f"{name}-{i}" for i in range(8)))) for name in ("first", "second")
    )
    page = Document(
        kind="Plan",
        title="t",
        facts=(("a", "b"),),
        lead="r",
        blocks=(Table(heading="wide", columns=columns, rows=rows),),
    )
    text = render_plan_text(page)

    assert max(map(len, text.splitlines())) <= 80
    assert all(text.count(f"second-{i}") == 1 for i in range(8))
    assert text.count("method") == 2


# --- Every form -------------------------------------------------------------------------------


PRICES: dict[str, Any] = {"trial_usd": 0.02, "trial_s": 3.0}

PLANS: dict[str, Callable[[], SizingPlan]] = {
    "fifty": partial(
        plan_sequential, SequentialQuestion(rate=0.9, alternative=0.8, max_trials=50, **PRICES)
    ),
    "many": partial(
        plan_sequential,
        SequentialQuestion(
            rate=0.95,
            alternative=0.8,
            criteria=3,
            correction="bonferroni",
            concurrency=8,
            trial_usd=1234.5,
            trial_s=4000,
        ),
    ),
    "uncorrected": partial(
        plan_sequential, SequentialQuestion(rate=0.8, alternative=0.5, criteria=3, batch=5)
    ),
    "compliance": partial(plan_compliance, ComplianceQuestion(rate=0.95, better=0.97, **PRICES)),
    "infeasible": partial(plan_compliance, ComplianceQuestion(rate=0.95, better=0.97, trials=40)),
    "fifty-five": partial(plan_compliance, ComplianceQuestion(rate=0.95, better=0.97, trials=55)),
    "asked": partial(
        plan_regression, RegressionQuestion(baseline=(951, 1000), drop=0.03, trials=100)
    ),
    "too close": partial(plan_compliance, ComplianceQuestion(rate=0.95, better=0.9501)),
    "regression": partial(plan_regression, RegressionQuestion(baseline=(951, 1000), drop=0.03)),
    "small baseline": partial(plan_regression, RegressionQuestion(baseline=(951, 1000), drop=0.02)),
    "no success": partial(plan_regression, RegressionQuestion(baseline=(0, 9))),
    "perfect": partial(plan_regression, RegressionQuestion(baseline=(60, 60), trials=70)),
    "latency": partial(plan_latency, LatencyQuestion()),
    "baseline": partial(plan_latency, LatencyQuestion(baseline=935, trials=192)),
    "saturated": partial(
        plan_latency, LatencyQuestion(percentiles=(0.95, 0.99), baseline=20, trials=50)
    ),
    "limit": partial(plan_latency, LatencyQuestion(trials=100, limited=True, limit_s=0.5)),
    "no success expected": partial(
        plan_latency, LatencyQuestion(trials=1, success_rate=0.5, baseline=10)
    ),
    "precision": partial(plan_precision, PrecisionQuestion(rate=0.95, margin=0.02, trials=100)),
    "fine": partial(plan_precision, PrecisionQuestion(rate=0.95, margin=0.0025)),
    "compare": partial(plan_pairs, PairedSizingQuestion(expect=(0.9, 0.85), pairs=200, **PRICES)),
}


@cache
def find_plan(name: str) -> SizingPlan:
    """Make a plan once, when the first test asks for it: some take seconds."""
    return PLANS[name]()


#: Reviewed by eye; the numbers are those of the tests of the procedures.
ADVICE = {
    "fifty": (
        "If 50 trials must do, use the optimal design: 28.4 trials on average at 90 % and 31.7 at "
        "80 % ($0.57 and $0.63; 85 s and 95 s), and 11.7 % of runs at 90 % and 18.2 % at "
        "80 % end INCONCLUSIVE (no rule leaves fewer than 6.7 % and 14.0 %); with --max-trials 78 "
        "every run can be decided."
    ),
    "compliance": (
        "Run 694 trials ($13.88, 35 min) and PASS with at least 669 successes (exact rule): that "
        "happens in 85.10 % of runs at 97 % and in 4.94 % at 95 %."
    ),
    "infeasible": (
        "Refused: 40 trials cannot show a rate above 95 %; even without a failure it takes 59, "
        "and for a power of 80 % at 97 % 694."
    ),
    "too close": (
        "No number of trials up to 20000 shows a rate above 95 % with a power of 80 % at 95.01 %: "
        "raise --expect or lower --power."
    ),
    "regression": (
        "Run 664 trials and FAIL below 619 successes (exact rule): that happens in 84.17 % of "
        "runs after a drop of 3 points and in 4.41 % if nothing changed."
    ),
    "small baseline": (
        "Refused: no test up to the baseline's size reaches the power and keeps it; a drop of "
        "2.45 points is the smallest this baseline can show; for 2 points measure a baseline of "
        "at least 1804 trials and test as many."
    ),
    "no success": "Refused: the baseline has no success to degrade from.",
    "perfect": (
        "With 70 trials FAIL below 66 successes (exact rule): that happens in 27.21 % of runs "
        "after a drop of 5 points."
    ),
    "asked": (
        "With 100 trials FAIL below 91 successes (exact rule): that happens in 26.53 % of runs "
        "after a drop of 3 points and in 4.05 % if nothing changed; a power of 80 % takes 664 "
        "trials."
    ),
    "fifty-five": (
        "With 55 trials PASS with at least 55 successes (wilson rule): that happens in 18.73 % of "
        "runs at 97 % and in 5.95 % at 95 %; a power of 80 % takes 694."
    ),
    "latency": (
        "Run at least 59 trials: fewer latencies cannot bound p95 from above at 95 % confidence."
    ),
    "baseline": (
        "p95: FAIL where the test's p95 exceeds the baseline's latency number 911 of 935; that "
        "happens in 4.95 % of runs if nothing changed."
    ),
    "limit": (
        "p95: PASS with at least 99 of 100 latencies within 500 ms; at exactly 95 % within it "
        "that happens in 3.71 % of runs."
    ),
    "precision": (
        "Run 464 trials: at a rate of 95 % the 95 % Wilson interval is then ± 2.00 % wide on "
        "average and holds the true rate in 95.75 % of runs."
    ),
    "compare": (
        "200 pairs (400 trials, $8.00, 20 min) end with FAIL in 27.71 % of runs if the rates are "
        "as expected."
    ),
}


@pytest.mark.slow("fifty")
@pytest.mark.parametrize("name", ADVICE)
def test_the_advice_is_one_sentence_with_numbers(name: str) -> None:
    """Word for word."""
    assert build_sizing_page(find_plan(name)).lead == ADVICE[name]


@pytest.mark.slow("many", "uncorrected", "fine")
@pytest.mark.parametrize("name", PLANS)
def test_a_plan_fits_in_eighty_columns(name: str) -> None:
    """In Unicode and in ASCII, whatever the numbers."""
    page = build_sizing_page(find_plan(name))

    text, plain = render_plan_text(page), render_plan_text(page, unicode=False)
    assert max(map(len, text.splitlines())) <= 80
    assert max(map(len, plain.splitlines())) <= 80
    assert plain.isascii()
    assert not any(line != line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize("name", PLANS)
def test_no_value_is_missing_or_not_a_number(name: str) -> None:
    """Nothing says None, nan or inf."""
    words = set(render_plan_text(build_sizing_page(find_plan(name))).replace("(", " ").split())

    assert set() == words & {"None", "nan", "inf", "Undefined"}


def test_a_broken_promise_is_marked_and_explained() -> None:
    """Wald cut at 50 trials: 49.55 % FAIL at the bad rate where 80 % are promised."""
    text = " ".join(render_plan_text(build_sizing_page(find_plan("fifty"))).split())

    assert "Wald, cut !" in text
    assert (
        "! Wald's test, cut at 50 trials, breaks its promise: PASS in 74.72 % of runs at 90 %, "
        "where at least 95.00 % is promised; FAIL in 49.55 % of runs at 80 %, where at least "
        "80.00 % is promised."
    ) in text


def test_what_the_trials_cannot_do_is_said() -> None:
    """The Neyman–Pearson limits, and the number that would do."""
    text = " ".join(render_plan_text(build_sizing_page(find_plan("fifty"))).split())

    assert "(no rule leaves fewer than 6.7 % and 14.0 %)" in text
    assert "with --max-trials 78 every run can be decided" in text


def test_criteria_share_their_trials() -> None:
    """The level of each, what that means for a run, and that the sum is not paid."""
    shared = " ".join(render_plan_text(build_sizing_page(find_plan("many"))).split())
    alone = " ".join(render_plan_text(build_sizing_page(find_plan("uncorrected"))).split())

    assert "each at 1.67 % (bonferroni)" in shared
    assert "a run of good ones FAILs at most 5 % of the time" in shared
    assert "not the sum" in shared
    assert "may FAIL up to 15 % of the time (--correction bonferroni keeps 5 %)" in alone


# --- The rule in counts -----------------------------------------------------------------------

DESIGNS = {
    "optimal": SequentialDesign.optimal(0.9, 0.8, cap=50),
    "wald": SequentialDesign.wald(0.9, 0.8, cap=30),
    "fixed": SequentialDesign.fixed(0.9, 0.7),
    "batched": SequentialDesign.optimal(0.9, 0.7, cap=60, batch=10),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_the_steps_say_all_that_the_boundaries_say(name: str) -> None:
    """Following the steps gives the verdict of the design after every run it can have."""
    design = DESIGNS[name]
    passing, failing = list(list_passing_steps(design)), list(list_failing_steps(design))
    states = {0}
    for n in range(1, design.cap + 1):
        states = {f + more for f in states for more in (0, 1)}
        look = n % design.batch == 0 or n == design.cap
        following = set()
        for f in states:
            passes = look and any(f <= most and n >= since for most, since in passing)
            fails = look and any(f >= fewest and n <= until for fewest, until in failing)
            assert passes == (f <= design.accept[n]), (n, f)
            assert fails == (f >= design.reject[n]), (n, f)
            if not passes and not fails:
                following.add(f)
        states = following


def test_the_rule_of_the_fifty_trial_design() -> None:
    """The counts a person would apply."""
    passing, failing, rest = describe_rule(DESIGNS["optimal"])

    first = dedent(
        """\
        PASS with 0 failures after 13 trials, 1 after 20, 2 after 26, 3 after 33, 4 after 39,
        5 after 44, 6 after 50."""
    )
    assert passing == " ".join(first.split())
    assert failing.startswith("FAIL with 4 failures within 6 trials, 5 within ")
    assert rest == "What is open after 50 trials is INCONCLUSIVE."


@pytest.mark.slow
def test_a_long_rule_is_shortened_and_kept_whole_for_a_browser() -> None:
    """The beginning and the end in the terminal, all of it in the details."""
    question = SequentialQuestion(rate=0.9, alternative=0.8)
    blocks = build_sizing_page(plan_sequential(question)).blocks
    rule = next(one for one in blocks if isinstance(one, Section))

    prose, details = rule.blocks
    assert isinstance(prose, Prose)
    assert isinstance(details, Details)
    (whole,) = details.blocks
    assert isinstance(whole, Prose)
    assert "…" in str(prose.paragraphs[0])
    assert str(whole.paragraphs[0]).count("after") > str(prose.paragraphs[0]).count("after")


# --- Figures ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 %"), (1e-12, "<0.01 %"), (1 - 1e-12, ">99.99 %"), (1.0, "100 %"), (0.5, "50.00 %")],
)
def test_a_probability_is_never_rounded_to_certainty(value: float, text: str) -> None:
    """0 % and 100 % are said of certain things only."""
    assert as_probability(value) == text


def test_figures_as_people_write_them() -> None:
    """Money, time and trials keep the digits that matter."""
    assert ["$0.0034", "$0.57", "$999.99", "$12,346"] == [
        as_money(value) for value in (0.0034, 0.568, 999.99, 12345.6)
    ]
    assert ["1 ms", "1 s", "1.5 s", "119 s", "2 min", "2 h", "3 days"] == [
        as_duration(value) for value in (0.001, 1, 1.5, 119, 120, 7200, 259200)
    ]
    assert ["9.9", "999.9", "1000"] == [as_mean_trials(value) for value in (9.94, 999.9, 999.96)]
