"""Gates: each number with its limit and its interval, and the runs behind it, worst first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialwise.documents.blocks import Block, Cell, Details, Name, Prose, Section, Table, Value
from trialwise.documents.extent import cut_middle
from trialwise.documents.numbers import as_count, as_observed
from trialwise.documents.tables import build_table
from trialwise.model.metrics import (
    GateCheck,
    GateFinding,
    GateNumber,
    MetricsEvidence,
    PassK,
    ReliabilityEvidence,
    StabilityEvidence,
)
from trialwise.model.run import RunRecord
from trialwise.pages.gate_facts import HELD, count_runs, list_gate_notes, list_unlimited
from trialwise.pages.reliability_decay import chart_decay
from trialwise.pages.stability_scores import list_stability_blocks
from trialwise.pages.verdict_meaning import make_badge
from trialwise.stats.result_types import Interval, Undefined

__all__ = ["build_gates_section"]

#: Inputs listed; the rest is counted.
MOST = 20
#: Characters of an input's name, and runs of it that are drawn one by one.
_NAME, _DRAWN = 80, 60
_NOTE = (
    "A gate holds a number of this run against a limit. It has no error rate, and an interval "
    "beside a number decides nothing."
)


def build_gates_section(record: RunRecord) -> Section | None:
    """Every gate of a run, or None where it has none."""
    gates = record.verdict.gates
    if not gates:
        return None
    blocks = tuple(_build_gate(record, gate) for gate in gates)
    return Section(heading="Gates", blocks=blocks, note=_NOTE)


def _build_gate(record: RunRecord, gate: GateFinding) -> Section:
    word = gate.decision.value if gate.decision else "REPORTED"
    notes = (*list_gate_notes(gate), *gate.caveats)
    return Section(
        heading=gate.gate,
        badges=(make_badge(gate.decision, word),),
        aside=count_runs(gate),
        blocks=(
            *_list_numbers(gate),
            *((Prose(paragraphs=notes, tone="quiet"),) if notes else ()),
            *_list_evidence(record, gate),
        ),
    )


def _list_numbers(gate: GateFinding) -> Iterator[Table]:
    """What was asked and whether it holds, and then what else was measured."""
    numbers: list[GateCheck | GateNumber] = [*gate.checks, *list_unlimited(gate)]
    if numbers:
        yield build_table(
            "Targets",
            numbers,
            ("target", lambda one: one.target),
            ("number", lambda one: _write_asked(one)[0]),
            ("interval", lambda one: _write_ends(one.interval)),
            ("asked", lambda one: _write_asked(one)[1]),
            ("result", lambda one: _write_asked(one)[2]),
            ("basis", lambda one: one.basis),
            words=(0, 3, 4, 5),
            is_headed=False,
        )


def _write_asked(one: GateCheck | GateNumber) -> tuple[Cell, str, str]:
    """The number, what was asked of it and whether that holds."""
    if isinstance(one, GateNumber):
        return _write_number(one.value), "–", "not asked"
    return one.shown, str(one.matcher), HELD[one.holds]


def _write_ends(interval: Interval | Undefined) -> Value:
    if isinstance(interval, Undefined):
        return Value(text="–", hint=interval.reason)
    low, high = (f"{end:.3g}" for end in interval)
    if low == high and interval.low < interval.high:
        low, high = (f"{end:.6g}" for end in interval)
    return Value(text=f"[{low}, {high}]", hint=interval.method)


def _write_number(value: float | Undefined) -> Cell:
    if isinstance(value, Undefined):
        return Value(text="–", hint=value.reason)
    return f"{value:.4g}"


def _list_evidence(record: RunRecord, gate: GateFinding) -> Iterator[Block]:
    evidence = gate.evidence
    if isinstance(evidence, ReliabilityEvidence):
        if len(evidence.decay_curve) > 1:
            yield chart_decay(record, gate, evidence)
        yield from _list_reliability(evidence)
    elif isinstance(evidence, StabilityEvidence):
        yield from list_stability_blocks(record, gate, evidence)
    else:
        yield from _list_metrics(evidence)


def _count_rest(count: int) -> tuple[str, ...]:
    """How many inputs a table leaves out."""
    left = as_count(count - MOST, "further input")
    return (f"{left} not listed.",) if count > MOST else ()


def _write_name(input_id: str) -> Name:
    return Name(cut_middle(input_id, _NAME))


# --- Reliability ------------------------------------------------------------------------------


def _list_reliability(evidence: ReliabilityEvidence) -> Iterator[Block]:
    worst = sorted(evidence.inputs, key=lambda one: one.summary.graceful_degradation)
    yield build_table(
        "Runs of each input",
        worst[:MOST],
        ("input", lambda one: _write_name(one.input_id)),
        ("passed", lambda one: f"{sum(one.summary.outcomes)} of {one.summary.runs}"),
        ("variance amplification", lambda one: str(one.summary.variance_amplification)),
        ("graceful degradation", lambda one: str(one.summary.graceful_degradation)),
        ("in order", lambda one: _draw_outcomes(one.summary.outcomes)),
        words=(0, 4),
        notes=_count_rest(len(worst)),
    )
    advice = evidence.recommendation
    if advice is not None:
        wald = "" if isinstance(advice.wald, Undefined) else f", {advice.wald:,} by Wald's width"
        said = (
            f"These runs pin the rate of an input to ±{advice.reached:.2f} at worst; "
            f"±{advice.half_width:g} takes {advice.wilson:,} (Wilson{wald})."
        )
        yield Prose(paragraphs=(said,), tone="quiet")


def _draw_outcomes(outcomes: Sequence[bool]) -> str:
    marks = "".join("●" if passed else "○" for passed in outcomes[:_DRAWN])
    return marks + ("…" if len(outcomes) > _DRAWN else "")


# --- Metrics ----------------------------------------------------------------------------------


def _list_metrics(evidence: MetricsEvidence) -> Iterator[Block]:
    yield _build_pass_k("pass@k and pass^k over inputs", evidence.pass_k)
    for one in evidence.criteria:
        title = f"The same of {one.criterion}"
        yield Details(summary=title, blocks=(_build_pass_k(title, one.pass_k),))
    worst = sorted(evidence.inputs, key=lambda one: (one.rate, one.score))
    yield build_table(
        "Inputs",
        worst[:MOST],
        ("input", lambda one: _write_name(one.input_id)),
        ("passed", lambda one: f"{one.passed} of {one.trials}"),
        ("rate", lambda one: as_observed(one.rate)),
        ("interval", lambda one: _write_ends(one.interval)),
        ("score", lambda one: f"{one.score:.3f}"),
        ("flaky", lambda one: f"{one.flakiness:.3g} %" if one.flaky else "–"),
        words=(0, 5),
        notes=_count_rest(len(worst)),
    )
    if evidence.unscored:
        left = as_count(len(evidence.unscored), "input")
        yield Prose(paragraphs=(f"{left} without a run, part of no mean.",), tone="quiet")


def _build_pass_k(heading: str, rows: Sequence[PassK]) -> Table:
    return build_table(
        heading,
        rows,
        ("k", lambda one: str(one.k)),
        ("pass@k", lambda one: _write_number(one.pass_at_k)),
        ("interval", lambda one: _write_ends(one.pass_at_k_interval)),
        ("pass^k", lambda one: _write_number(one.pass_hat_k)),
        ("interval", lambda one: _write_ends(one.pass_hat_k_interval)),
        ("naive pass@k", lambda one: _write_number(one.pass_at_k_naive)),
        ("plug-in pass^k", lambda one: _write_number(one.pass_hat_k_plugin)),
    )
