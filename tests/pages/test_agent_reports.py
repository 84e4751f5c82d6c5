"""Runs of agents on the page: timelines, the worst trace, pass^k over k, stability per run."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations
from math import comb
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reports.run_records import (
    HOSTILE,
    Answer,
    agent,
    criterion,
    fixed_fail,
    large,
    plan_of,
    record_of,
    run,
    sequential_pass,
    steady,
)
from tests.revising import replace

from trialwise.model.claim import Claim, PopulationClaim
from trialwise.model.gate import Reliability, Stability
from trialwise.model.metrics import (
    InputReliability,
    ReliabilityEvidence,
    RunStability,
    StabilityEvidence,
)
from trialwise.model.run import RunRecord
from trialwise.model.trial import CheckResult, Outcome, Trial
from trialwise.pages.gate_facts import POINTS, list_decay_steps
from trialwise.pages.run_report import render_html
from trialwise.pages.trial_cards import FULL, SHORT, Extent, build_timeline, list_steps
from trialwise.pages.trial_sections import find_worst_trace
from trialwise.renderers.html.block_markup import render_block
from trialwise.renderers.html.markup import Outline
from trialwise.stats.result_types import Interval, Undefined
from trialwise.stats.run_reliability import reliability_decay_curve, summarize
from trialwise.stats.trace_stability import TraceShape

MEGABYTE = 1_000_000
Call = Mapping[str, Any]


def tree(page: str) -> ET.Element:
    return ET.fromstring(re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL))


def words(element: ET.Element) -> str:
    return " ".join("".join(element.itertext()).split())


def by_class(root: ET.Element, name: str) -> Iterator[ET.Element]:
    return (one for one in root.iter() if name in one.attrib.get("class", "").split())


def trial_of(*calls: Call, **given: Any) -> Trial:
    usual: dict[str, Any] = {"experiment": "inputs", "index": 0, "input_id": "a", "seed": 1}
    passed = (Outcome(criterion="c", result=CheckResult.ok()),)
    return Trial(**(usual | {"outcomes": passed, "tool_calls": calls} | given))


def timeline(trial: Trial, extent: Extent = SHORT) -> str:
    """The timeline of a trial as a page shows it; nothing where it has none."""
    built = build_timeline(trial, extent)
    return "" if built is None else render_block(built, Outline())


def rows_of(trial: Trial) -> list[ET.Element]:
    """The calls of a timeline, without its scale and what is left out."""
    root = tree(timeline(trial))
    return [one for one in root.iter("li") if one.attrib.get("class") not in ("axis", "gap")]


# --- Timelines --------------------------------------------------------------------------------

SESSION: tuple[Call, ...] = (
    {"name": "find", "server": "shop", "args": {"order": 7}, "error": "no order 7", "turn": 1,
     "started_s": 0.5, "duration_s": 0.25},
    {"name": "find", "server": "shop", "args": {"order": 1}, "result": '{\n "paid": 3\n}',
     "turn": 2, "started_s": 1.0, "duration_s": 0.5},
    {"name": "find", "server": "shop", "args": {"order": 7}, "started_s": 1.75},
)  # fmt: skip


def test_a_row_for_each_call_says_everything_about_it() -> None:
    """In order: turn, server, name, arguments, when, for how long, and how it ended."""
    said = [words(row).replace("\u00a0", " ") for row in rows_of(trial_of(*SESSION, latency_s=2.0))]

    assert [
        '1.find on shop · turn 1at 500 ms for 250 ms{"order": 7}failed no order 7',
        '2.find on shop · turn 2at 1 s for 500 ms{"order": 1}returned { "paid": 3 }',
        '3.find on shop · the same as 1at 1.8 s, no end known{"order": 7}how it ended is not known',
    ] == said


def test_bars_stand_where_the_calls_stood_in_the_session() -> None:
    """Each begins at its share of the session; a call without an end has none."""
    rows = rows_of(trial_of(*SESSION, latency_s=2.0))
    bars = [next(by_class(row, "lane"))[0] for row in rows]

    assert ["left:25.00%;width:12.50%", "left:50.00%;width:25.00%", "left:87.50%;width:12.50%"] == [
        bar.attrib["style"] for bar in bars
    ]
    assert [None, None, "endless"] == [bar.attrib.get("class") for bar in bars]
    assert all(
        lane.attrib["aria-hidden"] == "true" for row in rows for lane in by_class(row, "lane")
    )


def test_a_call_beyond_the_session_is_within_the_axis() -> None:
    """A trace from elsewhere may be longer than the trial that read it."""
    (row,) = rows_of(trial_of({"name": "a", "started_s": 3.0, "duration_s": 1.0}, latency_s=0.001))

    assert "left:75.00%;width:25.00%" == next(by_class(row, "lane"))[0].attrib["style"]


@given(spans=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=8))
def test_the_calls_time_counts_every_moment_once(spans: list[tuple[int, int]]) -> None:
    """Calls side by side are under way together: a count of moments says the same."""
    calls = [{"name": "a", "started_s": at, "duration_s": took} for at, took in spans]
    moments = {at + k for at, took in spans for k in range(took)}
    heading = words(next(by_class(tree(timeline(trial_of(*calls))), "label")))

    busy = re.search(r"under way for ([\d.]+)\s(ms|s)", heading.replace("\u00a0", " "))
    assert busy is not None
    assert len(moments) == float(busy[1])


def test_setup_is_told_apart_from_the_session() -> None:
    """It is not part of the axis: the same bars with it and without."""
    plain = trial_of(*SESSION, latency_s=2.0)
    prepared = replace(plain, setup_s=0.7)
    bars = [[bar.attrib["style"] for row in rows_of(one) for lane in by_class(row, "lane")
             for bar in lane] for one in (plain, prepared)]  # fmt: skip

    assert bars[0] == bars[1]
    assert "setup took 700\u00a0ms before, and is part of no bar" in timeline(prepared)
    assert "setup" not in timeline(plain)


@pytest.mark.parametrize(
    "calls",
    [
        ({"name": "a"}, {"name": "b", "arguments": [1]}),
        ({"name": "a", "duration_s": 0.1}, {"name": "b", "latency_s": 0.2}),
        ({"name": "a", "started_s": 0.0, "duration_s": 0.0},),
        ({"name": "a", "started_s": 5e-324},),
        ({"name": "a", "started_s": 1e308, "duration_s": 1e308},),
        ({"name": 5, "started_s": "soon", "duration_s": -1}, {}),
    ],
)
def test_without_times_the_calls_stand_in_order(calls: tuple[Call, ...]) -> None:
    """No bar and no scale, and every call is there."""
    root = tree(timeline(trial_of(*calls)))

    assert len(calls) == len(rows_of(trial_of(*calls)))
    assert not [*by_class(root, "lane")]
    assert not [*by_class(root, "axis")]


def test_a_call_that_tells_no_start_has_no_bar_among_those_that_do() -> None:
    """Its row stands in order all the same."""
    rows = rows_of(trial_of({"name": "a", "started_s": 1.0, "duration_s": 1.0}, {"name": "b"}))

    assert [1, 0] == [len([*by_class(row, "lane")]) for row in rows]


def test_long_texts_are_shortened_and_can_be_unfolded() -> None:
    """As they were, up to a limit for each trial."""
    note = "".join(f"line {number}\n" for number in range(60))
    (row,) = rows_of(trial_of({"name": "a", "args": {"b": 1}, "result": note}))
    (unfolded,) = row.iter("details")

    assert note == "".join(unfolded[1].itertext())
    assert "characters left out" in words(row)
    many = trial_of(*({"name": "a", "args": f"{k}" * 3000, "error": "<" * 3000} for k in range(20)))
    pre = ["".join(one.itertext()) for one in tree(timeline(many)).iter("pre")]
    assert pre
    assert sum(map(len, pre)) <= SHORT.unfolded + 100 * len(pre)


@pytest.mark.parametrize("extent", [SHORT, FULL])
def test_the_first_calls_and_the_last_are_shown_and_the_rest_is_counted(extent: Any) -> None:
    """Of a thousand calls both ends are there, under their own numbers."""
    trial = trial_of(*({"name": f"tool-{k}", "error": "no"} for k in range(1000)))
    root = tree(timeline(trial, extent))
    (gap,) = by_class(root, "gap")
    numbers = [int(words(one)[:-1]) for one in by_class(root, "place")]

    assert [*range(1, extent.first + 1), *range(1001 - extent.last, 1001)] == numbers
    assert words(gap).startswith(f"{1000 - extent.first - extent.last} calls left out")
    assert "1,000 tool calls, 1,000 failed" in words(root)


def test_what_a_tool_said_stays_text() -> None:
    """Names, servers, arguments, results, errors and unknown keys add no element."""
    call = {"name": HOSTILE, "server": HOSTILE, "args": {HOSTILE: HOSTILE}, "error": HOSTILE}
    plain = {"name": "a", "server": "b", "args": {"c": "d" * 40}, "error": "e"}
    hostile, known = (
        tree(timeline(trial_of(one | {"result": one["error"], "x": one["name"]})))
        for one in (call, plain)
    )

    assert [one.tag for one in hostile.iter()][:12] == [one.tag for one in known.iter()][:12]
    assert {one.tag for one in hostile.iter()} <= {one.tag for one in known.iter()} | {
        "details", "summary", "pre",
    }  # fmt: skip
    said = "".join(hostile.itertext())
    assert said.count("<img src=x onerror=alert(2)>") >= 5
    assert "⟨U+202E⟩" in said


def test_a_session_whose_calls_are_not_kept_says_so() -> None:
    """Counted calls without a record, and a session without a call."""
    told = TraceShape(
        total_calls=4, distinct_calls=2, distinct_tools=1, assistant_lengths=(3,), tokens=9.0
    )
    silent = replace(told, total_calls=0, distinct_calls=0, distinct_tools=0)

    assert "4 tool calls, none of which the record holds." in timeline(trial_of(shape=told))
    assert "No tool call." in timeline(trial_of(shape=silent))
    assert "" == timeline(trial_of())


SAID = (
    ("user", "Refund it."),
    ("assistant", "Let me look."),
    ("user", "Thanks."),
    ("assistant", "Done."),
)


def test_calls_whose_turn_is_not_known_stand_before_the_answer() -> None:
    """The heading says that their place is a guess, where there is more than one."""
    guessed = trial_of({"name": "find"}, {"name": "refund"}, messages=SAID)
    known = trial_of({"name": "find", "turn": 1}, {"name": "refund", "turn": 2}, messages=SAID)
    steps = [words(row) for row in rows_of(guessed)]

    assert ["userRefund it.", "modelLet me look.", "userThanks."] == steps[:3]
    assert steps[3].startswith("1.find")
    assert steps[4].startswith("2.refund")
    assert "modelDone." == steps[5]
    note = "the trace does not say which messages the calls came between"
    assert note in timeline(guessed)
    assert note not in timeline(known)


@given(
    roles=st.lists(st.sampled_from(["user", "assistant"]), max_size=6),
    turns=st.lists(st.one_of(st.none(), st.integers(0, 8)), max_size=6),
)
def test_every_message_and_call_is_a_step_once_and_in_order(
    roles: list[str], turns: list[int | None]
) -> None:
    """Whatever a trace says of its turns."""
    said = tuple((role, f"text {place}") for place, role in enumerate(roles))
    calls = tuple({"name": "a"} | ({} if turn is None else {"turn": turn}) for turn in turns)
    steps = [*list_steps(trial_of(*calls, messages=said))]

    assert [*said] == [step for step in steps if not isinstance(step, int)]
    assert [*range(len(calls))] == [step for step in steps if isinstance(step, int)]


# --- The worst trace --------------------------------------------------------------------------


def cards_of(page: str) -> list[tuple[int, ET.Element]]:
    (section,) = (one for one in tree(page).iter("section") if one.attrib["id"] == "failing-trials")
    return [
        (int(words(next(by_class(one, "index"))).split()[-1]), one)
        for one in by_class(section, "trial")
    ]


def test_the_worst_trace_comes_first_and_is_unfolded() -> None:
    """By the order that the page states, computed here from the trials and their sub-scores."""
    record = agent()
    (gate,) = (one for one in record.verdict.gates if one.gate == "stability")
    assert isinstance(gate.evidence, StabilityEvidence)
    weakest = {one.trial: one.weakest_score for one in gate.evidence.runs}
    ranked = sorted(
        (trial for trial in record.trials if trial.tool_calls),
        key=lambda one: (
            -[outcome.passed for outcome in one.outcomes].count(False),
            weakest[one.index],
            -len([call for call in one.tool_calls if "error" in call]),
            -(one.latency_s or 0),
            one.index,
        ),
    )
    page = render_html(record)
    cards = cards_of(page)
    failing = [trial.index for trial in record.trials if not trial.passed]

    assert ranked[0].index == cards[0][0]
    assert "open" in cards[0][1].attrib
    assert not [index for index, card in cards[1:] if "open" in card.attrib]
    others = [index for index in failing if index != ranked[0].index]
    assert others == [index for index, card in cards[1:] if "data-criterion" in card.attrib]
    assert f"weakest stability score {weakest[ranked[0].index]:.3f}" in words(cards[0][1])
    assert "The worst trace comes first: the one that failed the most criteria" in page


def trials_with(*given: Mapping[str, Any]) -> RunRecord:
    """A run whose trials differ in what is given; `failed` of three criteria fail."""
    names = ("one", "two", "three")
    trials = []
    for index, one in enumerate(given):
        more = dict(one)
        failed = more.pop("failed", 0)
        errors = more.pop("errors", 0)
        calls = [{"name": "a", "error": "no"}] * errors + [{"name": "a", "result": "yes"}]
        outcomes = tuple(
            Outcome(
                criterion=name,
                result=CheckResult.fail("no") if place < failed else CheckResult.ok(),
            )
            for place, name in enumerate(names)
        )
        more.setdefault("tool_calls", tuple(calls))
        trials.append(trial_of(index=index, outcomes=outcomes, **more))
    plan = plan_of("agent", ["a"], [criterion(one, at_least=0.5, trials=5) for one in names])
    return replace(record_of(plan, []), trials=tuple(trials))


def scored(record: RunRecord, *weakest: float) -> RunRecord:
    """The same with a stability gate that says so of each trial."""
    runs = tuple(
        RunStability(
            input_id="a", trial=index, tool_usage_stability=1, response_consistency=1,
            redundancy=score, cost_per_progress=1, weakest_score=score,
        )
        for index, score in enumerate(weakest)
    )  # fmt: skip
    (gate,) = (one for one in agent().verdict.gates if one.gate == "stability")
    found = replace(gate, experiment="inputs", evidence=StabilityEvidence(runs=runs))
    return replace(record, verdict=replace(record.verdict, gates=(found,)))


@pytest.mark.parametrize(
    ("record", "worst"),
    [
        (trials_with({"failed": 1, "errors": 9, "latency_s": 9.0}, {"failed": 2}), 1),
        (scored(trials_with({"errors": 3, "latency_s": 9.0}, {}), 0.9, 0.4), 1),
        (trials_with({"errors": 1, "latency_s": 9.0}, {"errors": 2}), 1),
        (trials_with({"latency_s": 1.0}, {"latency_s": 2.0}), 1),
        (trials_with({"latency_s": 1.0}, {"latency_s": 1.0}), 0),
        (trials_with({"failed": 3, "tool_calls": ()}, {"failed": 1}), 1),
    ],
    ids=["criteria", "stability", "calls", "longest", "first", "traced"],
)
def test_the_worst_is_found_step_by_step(record: RunRecord, worst: int) -> None:
    """Each step decides among those that the steps before leave equal."""
    found = find_worst_trace(record)

    assert found is not None
    assert worst == found[0].index


def test_where_nothing_failed_the_worst_trace_still_opens_the_section() -> None:
    """It is no failing trial, so that no filter hides it, and it is not shown twice."""
    record = trials_with({"reply": "a"}, {"reply": "b", "latency_s": 5.0}, {"reply": "c"})
    cards = cards_of(render_html(record))

    assert [1, 0, 2] == [index for index, _ in cards]
    assert [True, False, False] == ["open" in card.attrib for _, card in cards]
    assert "data-criterion" not in cards[0][1].attrib


@pytest.mark.slow
def test_a_run_without_tool_calls_has_no_worst_trace() -> None:
    """The first failing trial is unfolded and nothing is said about traces."""
    record = sequential_pass()
    page = render_html(record)

    assert find_worst_trace(record) is None
    assert "worst trace" not in page
    unfolded = [place for place, (_, card) in enumerate(cards_of(page)) if "open" in card.attrib]
    assert unfolded == [0]


# --- pass^k over k ----------------------------------------------------------------------------


def evidence_of(*outcomes: list[bool]) -> ReliabilityEvidence:
    fewest = min(map(len, outcomes))
    curves = [reliability_decay_curve(one) for one in outcomes]
    return ReliabilityEvidence(
        criterion=None,
        inputs=tuple(
            InputReliability(input_id=str(place), summary=summarize(one))
            for place, one in enumerate(outcomes)
        ),
        decay_curve=tuple(sum(one[k] for one in curves) / len(curves) for k in range(fewest)),
    )


@given(outcomes=st.lists(st.lists(st.booleans(), min_size=2, max_size=7), min_size=1, max_size=3))
def test_the_unbiased_curve_counts_the_subsets_that_pass(outcomes: list[list[bool]]) -> None:
    """For each k the share of k runs of an input that all pass, by enumeration; none beyond."""
    steps = list_decay_steps(evidence_of(*outcomes), PopulationClaim.FIXED_INPUTS, 0.95)

    assert [*range(1, min(map(len, outcomes)) + 1)] == [k for k, *_ in steps]
    for k, mean, _, _ in steps:
        shares = []
        for mine in outcomes:
            drawn = [all(some) for some in combinations(mine, k)]
            shares.append(Fraction(sum(drawn), len(drawn)))
        assert float(sum(shares) / len(shares)) == pytest.approx(mean)


def test_the_interval_of_one_input_is_the_exact_one_of_its_rate() -> None:
    """Clopper and Pearson's ends by scipy's beta quantiles, to the power of k.

    The estimate is the share of k runs that all pass; where it is 0, the lower end is too.
    """
    from scipy import stats

    steps = list_decay_steps(
        evidence_of([True] * 8 + [False] * 2), PopulationClaim.FIXED_INPUTS, 0.95
    )

    low, high = stats.beta.ppf(0.025, 8, 3), stats.beta.ppf(0.975, 9, 2)
    for k, _, found, _ in steps:
        assert isinstance(found, Interval)
        share = comb(8, k) / comb(10, k)
        ends = min(low**k, share), max(high**k, share)
        assert ends == pytest.approx((found.low, found.high))


def test_where_nothing_is_claimed_there_is_no_interval() -> None:
    """The page says why instead of drawing a band."""
    asked = [criterion("c", at_least=0.5, trials=8)]
    claim = Claim(population=PopulationClaim.NO_GENERALISATION)
    plan = plan_of(
        "a", ["x"], asked, claim=claim, curtail=False, gates={"reliability": Reliability()}
    )
    record = record_of(plan, run(plan, steady(0.8, "c")))
    steps = list_decay_steps(evidence_of([True, False]), PopulationClaim.NO_GENERALISATION, 0.95)

    assert all(isinstance(found, Undefined) for _, _, found, _ in steps)
    said = words(figure_of(render_html(record)))
    assert "It has no interval: the claim reaches no further than these trials." in said
    assert "interval of each k" not in said


def figure_of(page: str) -> ET.Element:
    found = [one for one in tree(page).iter("figure") if "Reliability decay curve" in words(one)]
    return found[0]


def test_the_curve_says_how_far_it_goes() -> None:
    """Every k up to the runs there are, in the table too, and that beyond is extrapolation."""
    figure = figure_of(render_html(agent()))
    said = words(figure).replace("\u00a0", " ")
    rows = [[words(cell) for cell in row] for row in figure.findall(".//tbody/tr")]

    assert [str(k) for k in range(1, 13)] == [row[0] for row in rows]
    assert all(re.fullmatch(r"\[[\d.]+, [\d.]+\]", row[2]) for row in rows)
    assert "Beyond k = 12, the fewest runs of an input, nothing is estimated" in said
    assert "95 % interval of each k" in said


def test_many_runs_of_one_input_make_no_large_curve() -> None:
    """A few of ten thousand values of k, with both ends."""
    outcomes = [Random(k).random() < 0.999 for k in range(10_000)]
    steps = list_decay_steps(evidence_of(outcomes), PopulationClaim.FIXED_INPUTS, 0.95)

    assert (1, 10_000) == (steps[0][0], steps[-1][0])
    assert len(steps) <= POINTS


def test_the_interval_of_a_run_that_was_cut_short_is_called_descriptive() -> None:
    """Its coverage is that of no plan."""
    asked = [criterion("c", at_least=0.5, trials=40)]
    plan = plan_of("a", ["x", "y"], asked, curtail=False, gates={"reliability": Reliability()})
    whole = record_of(plan, run(plan, steady(0.8, "c")))
    short = record_of(plan, run(plan, steady(0.8, "c"), stop_after=20))

    assert "interval of each k, descriptive" in words(figure_of(render_html(short)))
    assert "descriptive" not in words(figure_of(render_html(whole)))


# --- Stability per run ------------------------------------------------------------------------


def test_each_run_has_its_scores_its_bars_and_its_flags() -> None:
    """The least steady first; a score below its floor is marked in words too."""
    record = agent()
    (gate,) = (one for one in record.verdict.gates if one.gate == "stability")
    assert isinstance(gate.evidence, StabilityEvidence)
    runs = {one.trial: one for one in gate.evidence.runs}
    names = ("tool_usage_stability", "response_consistency", "redundancy", "cost_per_progress")
    passed = {one.index: one.passed for one in record.trials}
    rows = [
        row
        for one in by_class(tree(render_html(record)), "scores")
        for row in one.findall("tbody/tr")
    ]

    assert len(record.trials) == len(rows)
    order = [runs[int(words(row[0]).split()[-1])] for row in rows]
    assert sorted(one.weakest_score for one in order) == [one.weakest_score for one in order]
    for one, row in zip(order, rows, strict=True):
        assert f"{one.weakest_score:.3f}" == words(row[1])
        for name, cell in zip(names, row[2:6], strict=True):
            score = getattr(one, name)
            flag = "below its floor " if name in one.drift else ""
            assert f"{flag}{score:.3f}" == words(cell)
            (spark,) = by_class(cell, "spark")
            assert f"width:{100 * score:.1f}%" == spark[0].attrib["style"]
            assert not cell.findall(".//b") or score == one.weakest_score
        assert ["passed" if passed[one.trial] else "failed", one.input_id] == [
            words(cell) for cell in row[6:]
        ]


def test_a_sub_score_that_is_left_out_is_not_shown() -> None:
    """It is never the weakest, and the page says that it is left out."""
    asked = [criterion("c", at_least=0.5, trials=8)]
    gates = {"stability": Stability(exclude=("redundancy",))}
    plan = plan_of("a", ["x"], asked, gates=gates, curtail=False)
    shape = TraceShape(
        total_calls=4, distinct_calls=1, distinct_tools=1, assistant_lengths=(3, 3), tokens=9.0
    )
    record = record_of(plan, run(plan, lambda *_: Answer(failures={}, shape=shape)))
    (scores,) = by_class(tree(render_html(record)), "scores")
    heads = [words(one) for one in scores.findall("thead/tr/th")]

    assert not [one for one in heads if one.startswith("redundancy")]
    assert "The suite leaves out: redundancy." in render_html(record)
    assert not scores.findall(".//b")


# --- Small pages ------------------------------------------------------------------------------


@pytest.mark.slow
def test_ten_thousand_sessions_with_long_hostile_calls_stay_under_a_megabyte() -> None:
    """The worst trace and others are shown as far as there is room, and the rest is counted."""
    record = large(failing=0.5)
    call = {"name": HOSTILE * 5, "args": {"a": "<" * 9000}, "error": "&" * 3000, "started_s": 0.1}
    traced = tuple(replace(trial, tool_calls=(call,) * 90) for trial in record.trials)
    page = render_html(replace(record, trials=traced))
    failing = sum(not trial.passed for trial in record.trials)
    shown = [card for _, card in cards_of(page) if "data-criterion" in card.attrib]

    assert len(page.encode()) < MEGABYTE
    assert len(shown) > 1
    assert "open" in shown[0].attrib
    assert f"{len(shown)} of {failing:,} failing trials are shown" in words(tree(page))


@pytest.mark.slow
def test_a_suite_of_many_agents_stays_small() -> None:
    """Where the worst trace has little room it is shown in part, or like the others."""
    record = agent()
    call = {"name": "a", "args": {"a": "<" * 9000}, "error": "&" * 3000, "started_s": 0.1}
    traced = tuple(replace(trial, tool_calls=(call,) * 90) for trial in record.trials)
    page = render_html([replace(record, trials=traced)] * 12)

    assert len(page.encode()) < 2 * MEGABYTE


def test_records_without_times_show_every_call() -> None:
    """Of every trial on the page, in its order."""
    record = fixed_fail()
    by_index = {one.index: one for one in record.trials}
    cards = cards_of(render_html(record))
    told = {
        index: [words(next(who.iter("b"))) for who in by_class(card, "who")]
        for index, card in cards
    }

    assert any(told.values())
    assert told == {
        index: [call["name"] for call in by_index[index].tool_calls] for index, _ in cards
    }
