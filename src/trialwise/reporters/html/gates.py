"""Gates: each number with its limit and its interval, and the runs it was made of, worst first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialwise.documents.numbers import as_count, as_observed
from trialwise.model.metrics import (
    GateFinding,
    InputScore,
    MetricsEvidence,
    PassK,
    ReliabilityEvidence,
    StabilityEvidence,
)
from trialwise.model.run import RunRecord
from trialwise.reporters.gates import HELD, gate_notes, runs_of, unasked
from trialwise.reporters.html.decay import decay_plot
from trialwise.reporters.html.parts import Outline, badge, details, prose, rest, table
from trialwise.reporters.html.plots import render_plot
from trialwise.reporters.html.steadiness import stability_table
from trialwise.reporters.page.markup import Markup, element, joined, shortened
from trialwise.stats.result_types import Interval, Undefined

__all__ = ["gates_section"]

#: Inputs listed; the rest is counted.
MOST = 20
#: Characters of an input's name, and runs of it that are drawn one by one.
_NAME, _DRAWN = 80, 60
_NOTE = (
    "A gate holds a number of this run against a limit. It has no error rate, and an interval "
    "beside a number decides nothing."
)


def gates_section(record: RunRecord, outline: Outline) -> Markup:
    """Every gate of a run, or nothing where it has none."""
    gates = record.verdict.gates
    if not gates:
        return Markup("")
    blocks = [_gate(record, gate, outline.below) for gate in gates]
    return outline.section("Gates", *blocks, note=_NOTE)


def _gate(record: RunRecord, gate: GateFinding, outline: Outline) -> Markup:
    word = gate.decision.value if gate.decision else "REPORTED"
    return element(
        "div",
        outline.heading(
            gate.gate, " ", badge(gate.decision, word), " ", element("small", runs_of(gate))
        ),
        _numbers(gate),
        prose(*gate_notes(gate), *gate.caveats, class_="note"),
        *_evidence(record, gate, outline.below),
        class_="gate",
    )


def _numbers(gate: GateFinding) -> Markup:
    """What was asked and whether it holds, and then what else was measured."""
    rows: list[tuple[object, ...]] = [
        (one.target, one.shown, _ends(one.interval), str(one.matcher), HELD[one.holds], one.basis)
        for one in gate.checks
    ]
    rows += [
        (one.target, _figure(one.value), _ends(one.interval), "–", "not asked", one.basis)
        for one in unasked(gate)
    ]
    if not rows:
        return Markup("")
    columns = ("target", "number", "interval", "asked", "result", "basis")
    return table("Targets", columns, rows, words=(0, 3, 4, 5), wide=True, hide_caption=True)


def _ends(interval: Interval | Undefined) -> object:
    if isinstance(interval, Undefined):
        return element("span", "–", title=interval.reason)
    low, high = (f"{end:.3g}" for end in interval)
    if low == high and interval.low < interval.high:
        low, high = (f"{end:.6g}" for end in interval)
    return element("span", f"[{low}, {high}]", title=interval.method)


def _evidence(record: RunRecord, gate: GateFinding, outline: Outline) -> Iterator[Markup]:
    evidence = gate.evidence
    if isinstance(evidence, ReliabilityEvidence):
        if len(evidence.decay_curve) > 1:
            yield render_plot(decay_plot(record, gate, evidence), outline)
        yield from _reliability(evidence)
    elif isinstance(evidence, StabilityEvidence):
        yield stability_table(record, gate, evidence)
    else:
        yield from _metrics(evidence)


# --- Reliability ------------------------------------------------------------------------------


def _reliability(evidence: ReliabilityEvidence) -> Iterator[Markup]:
    worst = sorted(evidence.inputs, key=lambda one: one.summary.graceful_degradation)
    rows = [
        (
            element("bdi", shortened(one.input_id, _NAME)),
            f"{sum(one.summary.outcomes)} of {one.summary.runs}",
            one.summary.variance_amplification,
            one.summary.graceful_degradation,
            _pattern(one.summary.outcomes),
        )
        for one in worst[:MOST]
    ]
    columns = ("input", "passed", "variance amplification", "graceful degradation", "in order")
    shown = table("Runs of each input", columns, rows, words=(0, 4), wide=True)
    yield joined([shown, rest(len(worst), MOST, "input")])
    advice = evidence.recommendation
    if advice is not None:
        wald = "" if isinstance(advice.wald, Undefined) else f", {advice.wald:,} by Wald's width"
        yield prose(
            f"These runs pin the rate of an input to ±{advice.reached:.2f} at worst; "
            f"±{advice.half_width:g} takes {advice.wilson:,} (Wilson{wald}).",
            class_="note",
        )


def _pattern(outcomes: Sequence[bool]) -> str:
    marks = "".join("●" if passed else "○" for passed in outcomes[:_DRAWN])
    return marks + ("…" if len(outcomes) > _DRAWN else "")


# --- Metrics ----------------------------------------------------------------------------------


def _metrics(evidence: MetricsEvidence) -> Iterator[Markup]:
    yield _pass_k("pass@k and pass^k over inputs", evidence.pass_k)
    for one in evidence.criteria:
        title = f"The same of {one.criterion}"
        yield details(title, _pass_k(title, one.pass_k))
    worst = sorted(evidence.inputs, key=lambda one: (one.rate, one.score))
    columns = ("input", "passed", "rate", "interval", "score", "flaky")
    inputs = table("Inputs", columns, map(_input, worst[:MOST]), words=(0, 5), wide=True)
    yield joined([inputs, rest(len(worst), MOST, "input")])
    if evidence.unscored:
        yield prose(
            f"{as_count(len(evidence.unscored), 'input')} without a run, part of no mean.",
            class_="note",
        )


def _pass_k(caption: str, rows: Sequence[PassK]) -> Markup:
    columns = ("k", "pass@k", "interval", "pass^k", "interval", "naive pass@k", "plug-in pass^k")
    cells = [
        (
            str(row.k),
            _figure(row.pass_at_k),
            _ends(row.pass_at_k_interval),
            _figure(row.pass_hat_k),
            _ends(row.pass_hat_k_interval),
            _figure(row.pass_at_k_naive),
            _figure(row.pass_hat_k_plugin),
        )
        for row in rows
    ]
    return table(caption, columns, cells, wide=True)


def _input(one: InputScore) -> tuple[object, ...]:
    return (
        element("bdi", shortened(one.input_id, _NAME)),
        f"{one.passed} of {one.trials}",
        as_observed(one.rate),
        _ends(one.interval),
        f"{one.score:.3f}",
        f"{one.flakiness:.3g} %" if one.flaky else "–",
    )


def _figure(value: float | Undefined) -> object:
    if isinstance(value, Undefined):
        return element("span", "–", title=value.reason)
    return f"{value:.4g}"
