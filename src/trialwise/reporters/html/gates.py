"""Gates: each number with its limit and its interval, and the runs it was made of, worst first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialwise.model.metrics import (
    GateCheck,
    GateFinding,
    InputScore,
    MetricsEvidence,
    PassK,
    ReliabilityEvidence,
    RunStability,
    StabilityEvidence,
)
from trialwise.model.run import RunRecord
from trialwise.reporters.gates import gate_notes, runs_of
from trialwise.reporters.html.parts import Outline, badge, details, prose, table
from trialwise.reporters.html.plots import Axis, Hit, Line, Plot, render_plot
from trialwise.reporters.page.markup import Markup, element, joined, shortened
from trialwise.reporters.wording import counted, observed_percent
from trialwise.stats.values import Interval, Undefined

__all__ = ["gates_section"]

#: Inputs and runs listed; the rest is counted.
MOST = 20
_NAME = 80
_NOTE = (
    "A gate holds a number of this run against a limit. It has no error rate, and an interval "
    "beside a number decides nothing."
)


def gates_section(record: RunRecord, outline: Outline) -> Markup:
    """Every gate of a run, or nothing where it has none."""
    gates = record.verdict.gates
    if not gates:
        return Markup("")
    blocks = [_gate(gate, outline.below) for gate in gates]
    return outline.section("Gates", *blocks, note=_NOTE)


def _gate(gate: GateFinding, outline: Outline) -> Markup:
    word = gate.decision.value if gate.decision else "REPORTED"
    return element(
        "div",
        outline.heading(
            gate.gate, " ", badge(gate.decision, word), " ", element("small", runs_of(gate))
        ),
        _checks(gate.checks),
        prose(*gate_notes(gate), *gate.caveats, class_="note"),
        *_evidence(gate, outline.below),
        class_="gate",
    )


def _checks(checks: Sequence[GateCheck]) -> Markup:
    if not checks:
        return Markup("")
    held = {True: "holds", False: "does not hold", None: "undecided"}
    rows = [
        (one.target, one.shown, _ends(one.interval), str(one.matcher), held[one.holds], one.basis)
        for one in checks
    ]
    columns = ("target", "number", "interval", "asked", "result", "basis")
    return table("Targets", columns, rows, words=(0, 3, 4, 5), wide=True, hide_caption=True)


def _ends(interval: Interval | Undefined) -> object:
    if isinstance(interval, Undefined):
        return element("span", "–", title=interval.reason)
    ends = f"[{interval.low:.3g}, {interval.high:.3g}]"
    return element("span", ends, title=interval.method)


def _evidence(gate: GateFinding, outline: Outline) -> Iterator[Markup]:
    evidence = gate.evidence
    if isinstance(evidence, ReliabilityEvidence):
        yield from _reliability(evidence, outline)
    elif isinstance(evidence, StabilityEvidence):
        yield _stability(evidence)
    else:
        yield from _metrics(evidence)


# --- Reliability ------------------------------------------------------------------------------


def _reliability(evidence: ReliabilityEvidence, outline: Outline) -> Iterator[Markup]:
    if len(evidence.decay_curve) > 1:
        yield render_plot(_decay(evidence), outline)
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
    yield joined([shown, _rest(len(worst), "input")])
    advice = evidence.recommendation
    if advice is not None:
        wald = "" if isinstance(advice.wald, Undefined) else f", {advice.wald:,} by Wald's width"
        yield prose(
            f"These runs pin the rate of an input to ±{advice.reached:.2f} at worst; "
            f"±{advice.half_width:g} takes {advice.wilson:,} (Wilson{wald}).",
            class_="note",
        )


def _pattern(outcomes: Sequence[bool]) -> str:
    marks = "".join("●" if passed else "○" for passed in outcomes[:60])
    return marks + ("…" if len(outcomes) > 60 else "")


def _decay(evidence: ReliabilityEvidence) -> Plot:
    points = [(float(k), value / 100) for k, value in enumerate(evidence.decay_curve, start=1)]
    last = points[-1]
    return Plot(
        heading="Reliability decay curve",
        summary=(
            f"The plug-in pass^k of the first k runs, a mean over inputs: "
            f"{observed_percent(last[1])} at {len(points):,}. It depends on the order of the runs "
            "and need not fall."
        ),
        x=Axis(low=1, high=last[0], label="runs", unit="count"),
        y=Axis(low=0, high=1, label="pass^k", unit="rate"),
        lines=(Line(name="plug-in pass^k", ink="one", points=tuple(points)),),
        hits=tuple(
            Hit(
                low=max(1.0, k - 0.5),
                high=min(last[0], k + 0.5),
                text=f"{k:.0f} runs: {observed_percent(share)}",
            )
            for k, share in points
        ),
        columns=("runs", "plug-in pass^k"),
        rows=tuple((f"{k:.0f}", observed_percent(share)) for k, share in points),
    )


# --- Stability --------------------------------------------------------------------------------


def _stability(evidence: StabilityEvidence) -> Markup:
    worst = sorted(evidence.runs, key=lambda run: run.weakest_score)
    columns = ("run", "input", "weakest", "tools", "replies", "calls", "cost", "drifted")
    first = table(
        "Runs, the least steady first",
        columns,
        map(_run, worst[:MOST]),
        words=(0, 1, 7),
        wide=True,
    )
    more = worst[MOST : 10 * MOST]
    further = details(
        counted(len(more), "steadier run"),
        table("Further runs", columns, map(_run, more), words=(0, 1, 7), wide=True),
    )
    return joined([first, further if more else None, _rest(len(worst), "run", 10 * MOST)])


def _run(run: RunStability) -> tuple[object, ...]:
    scores = (
        run.weakest_score,
        run.tool_usage_stability,
        run.response_consistency,
        run.redundancy,
        run.cost_per_progress,
    )
    return (
        f"trial {run.trial}",
        element("bdi", shortened(run.input_id, _NAME)),
        *(f"{score:.3f}" for score in scores),
        ", ".join(run.drift) or "–",
    )


# --- Metrics ----------------------------------------------------------------------------------


def _metrics(evidence: MetricsEvidence) -> Iterator[Markup]:
    yield _pass_k("pass@k and pass^k over inputs", evidence.pass_k)
    for one in evidence.criteria:
        title = f"The same of {one.criterion}"
        yield details(title, _pass_k(title, one.pass_k))
    worst = sorted(evidence.inputs, key=lambda one: (one.rate, one.score))
    columns = ("input", "passed", "rate", "interval", "score", "flaky")
    inputs = table("Inputs", columns, map(_input, worst[:MOST]), words=(0, 5), wide=True)
    yield joined([inputs, _rest(len(worst), "input")])
    if evidence.unscored:
        yield prose(
            f"{counted(len(evidence.unscored), 'input')} without a run, part of no mean.",
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
        observed_percent(one.rate),
        _ends(one.interval),
        f"{one.score:.3f}",
        f"{one.flakiness:.3g} %" if one.flaky else "–",
    )


def _figure(value: float | Undefined) -> object:
    if isinstance(value, Undefined):
        return element("span", "–", title=value.reason)
    return f"{value:.3g}"


def _rest(count: int, noun: str, most: int = MOST) -> Markup:
    if count <= most:
        return Markup("")
    return element("p", f"{counted(count - most, f'further {noun}')} not listed.", class_="note")
