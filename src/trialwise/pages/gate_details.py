"""Gates: each number with its limit and its interval, and the runs behind it, worst first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from trialwise.documents.blocks import (
    Block,
    Cell,
    Details,
    Name,
    Prose,
    Row,
    Section,
    Table,
    Value,
    build_table,
)
from trialwise.documents.charts import Area, Axis, Chart, Line, Mark, spread_hits, thin_out
from trialwise.documents.numbers import as_count, as_ends, as_observed, as_percent
from trialwise.documents.printable import cut_middle
from trialwise.model.claim import PopulationClaim
from trialwise.model.gate import Stability
from trialwise.model.metrics import (
    GateCheck,
    GateFinding,
    GateNumber,
    MetricsEvidence,
    PassK,
    ReliabilityEvidence,
    RunStability,
    StabilityEvidence,
)
from trialwise.model.run import RunRecord
from trialwise.pages.gate_facts import HELD, count_runs, list_gate_notes, list_unlimited
from trialwise.pages.verdict_meaning import make_badge
from trialwise.procedures.metrics import Reach, mean_of, pass_interval
from trialwise.stats.passk import pass_hat_k, pass_hat_k_interval
from trialwise.stats.result_types import Interval, Undefined
from trialwise.stats.trace_stability import SUB_SCORES

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
            yield _chart_decay(record, gate, evidence)
        yield from _list_reliability(evidence)
    elif isinstance(evidence, StabilityEvidence):
        yield from _list_stability_blocks(record, gate, evidence)
    else:
        yield from _list_metrics(evidence)


def _count_rest(count: int) -> tuple[str, ...]:
    """How many inputs a table leaves out."""
    left = as_count(count - MOST, "further input")
    return (f"{left} not listed.",) if count > MOST else ()


def _write_name(input_id: str) -> Name:
    return Name(cut_middle(input_id, _NAME))


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


#: The most values of k that are drawn and listed; beyond as many runs they are spread out.
POINTS = 40


#: About the height of a line of text, as a share of the plot's.
_LINE = 0.12


class Step(NamedTuple):
    """What is known of pass^k at one k, as means over inputs."""

    k: int
    unbiased: float
    interval: Interval | Undefined
    """Of the unbiased one."""
    decay: float
    """The report's curve at this k, as a share."""

    @property
    def ends(self) -> str:
        """The interval in percent."""
        return "–" if isinstance(self.interval, Undefined) else as_ends(self.interval)


def list_decay_steps(
    evidence: ReliabilityEvidence, claim: PopulationClaim, confidence: float
) -> list[Step]:
    """pass^k for k up to the fewest runs of an input: no run says anything of more.

    Args:
        evidence: The outcomes of each input.
        claim: Whom the intervals are about.
        confidence: Of each of them.
    """
    tasks = [(one.summary.runs, sum(one.summary.outcomes)) for one in evidence.inputs]
    # Inputs with the same counts have the same interval, and there are few different counts.
    exact, each = cache(pass_hat_k_interval), cache(pass_hat_k)
    reach = Reach.of(claim)
    steps: list[Step] = []
    for place in sorted(set(thin_out(len(evidence.decay_curve), POINTS))):
        k = place + 1
        mean = mean_of([each(*task, k) for task in tasks])
        found = pass_interval(
            tasks, [k] * len(tasks), mean, exact, confidence=confidence, reach=reach
        )
        steps.append(Step(k, mean, found, evidence.decay_curve[place] / 100))
    return steps


def _chart_decay(record: RunRecord, gate: GateFinding, evidence: ReliabilityEvidence) -> Chart:
    """The curve over k, with the interval of every point where it has one."""
    steps = list_decay_steps(evidence, record.plan.claim.population, gate.confidence)
    band = [(float(one.k), one.interval) for one in steps if isinstance(one.interval, Interval)]
    level = as_percent(gate.confidence)
    area = Area(
        name=f"{level} interval of each k{'' if _is_whole(record, gate) else ', descriptive'}",
        ink="one",
        upper=tuple((k, found.high) for k, found in band),
        lower=tuple((k, found.low) for k, found in band),
    )
    return Chart(
        heading="Reliability decay curve",
        summary=_write_summary(steps, len(evidence.inputs)),
        x=Axis(low=1, high=steps[-1].k, label="k runs, all of which pass", unit="count"),
        y=Axis(low=0, high=1, label="pass^k", unit="rate"),
        areas=(area,) if len(band) > 1 else (),
        lines=(
            Line(
                name="unbiased pass^k",
                ink="one",
                points=tuple((float(one.k), one.unbiased) for one in steps),
            ),
            Line(
                name="decay curve: plug-in pass^k of the first k runs",
                ink="quiet",
                points=tuple((float(one.k), one.decay) for one in steps),
                dashed=True,
            ),
        ),
        marks=(_mark_end(steps[-1]),),
        hits=spread_hits([one.k for one in steps], lambda place: _read_out(steps[place])),
        columns=("k", "unbiased pass^k", f"{level} interval", "decay curve"),
        rows=tuple(
            (f"{one.k:,}", as_observed(one.unbiased), one.ends, as_observed(one.decay))
            for one in steps
        ),
    )


def _read_out(step: Step) -> str:
    return (
        f"k = {step.k:,}: unbiased {as_observed(step.unbiased)} {step.ends}, "
        f"decay curve {as_observed(step.decay)}"
    )


def _write_summary(steps: Sequence[Step], inputs: int) -> str:
    last, mean, found, curve = steps[-1]
    once = as_observed(steps[0].unbiased)
    over = f", a mean over {as_count(inputs, 'input')}" if inputs > 1 else ""
    unknown = f" It has no interval: {found.reason}." if isinstance(found, Undefined) else ""
    return (
        f"The chance that k runs of an input all pass{over}: {once} at "
        f"k = 1, {as_observed(mean)} at k = {last:,}, where it only says whether every run "
        f"passed.{unknown} The decay curve takes the runs in the order they were started and need "
        f"not fall; it ends at {as_observed(curve)}. Beyond k = {last:,}, the fewest runs of "
        "an input, nothing is estimated: it would be extrapolation."
    )


def _mark_end(step: Step) -> Mark:
    label = f"all {step.k:,}: {as_observed(step.unbiased)}"
    # The curve comes down from the left: what is under its end is free, unless the axis is there.
    return Mark(x=step.k, y=step.unbiased, label=label, below=step.unbiased > _LINE)


def _is_whole(record: RunRecord, gate: GateFinding) -> bool:
    """Whether all planned trials were run; intervals of fewer are descriptive."""
    planned = next(one.trials for one in record.plan.experiments if one.name == gate.experiment)
    return sum(one.experiment == gate.experiment for one in record.trials) >= planned


#: Runs listed at once, and with those that can be unfolded; the rest is counted.
FIRST_RUNS, MOST_RUNS = 10, 200


def _list_stability_blocks(
    record: RunRecord, gate: GateFinding, evidence: StabilityEvidence
) -> Iterator[Block]:
    """A row for each run, the least steady first; scores below their floor carry a mark.

    Args:
        record: The run.
        gate: The stability gate.
        evidence: What it is made of.
    """
    if not evidence.runs:
        return
    worst = sorted(evidence.runs, key=lambda run: (run.weakest_score, _sum_scores(run, evidence)))
    passed = {one.index: one.passed for one in record.trials if one.experiment == gate.experiment}
    rows = [_write_row(run, evidence.exclude, passed) for run in worst[:MOST_RUNS]]
    # Names come last: on a phone a table begins with what it is about.
    columns = ("run", "weakest", *_list_heads(record, gate, evidence.exclude), "criteria", "input")

    def tabulate(heading: str, some: Sequence[Row]) -> Table:
        return Table(heading=heading, columns=columns, rows=tuple(some), words=(0, 6, 7))

    yield tabulate("Runs, the least steady first", rows[:FIRST_RUNS])
    if rows[FIRST_RUNS:]:
        more = as_count(len(rows) - FIRST_RUNS, "further run")
        yield Details(summary=more, blocks=(tabulate("Further runs", rows[FIRST_RUNS:]),))
    notes = [_write_legend(evidence)]
    if len(worst) > MOST_RUNS:
        notes.insert(0, f"{as_count(len(worst) - MOST_RUNS, 'further run')} not listed.")
    yield Prose(paragraphs=tuple(notes), tone="quiet")


def _sum_scores(run: RunStability, evidence: StabilityEvidence) -> float:
    return math.fsum(getattr(run, name) for name in SUB_SCORES if name not in evidence.exclude)


def _list_heads(record: RunRecord, gate: GateFinding, exclude: Sequence[str]) -> Iterator[Cell]:
    """Each sub-score with its floor, or that it is left out of the weakest."""
    asked = (
        one
        for one in record.plan.gates
        if isinstance(one, Stability) and one.sampling in (None, gate.experiment)
    )
    stability = next(asked, None)
    for name in SUB_SCORES:
        floor = f"floor {getattr(stability.floors, name):g}" if stability else ""
        notes = [part for part in (floor, "left out" if name in exclude else "") if part]
        yield Value(text=name.replace("_", " "), note=", ".join(notes))


def _write_row(run: RunStability, exclude: Sequence[str], passed: Mapping[int, bool]) -> Row:
    scores = {name: getattr(run, name) for name in SUB_SCORES}
    # The one that the weakest score is, where any of them is weak.
    weakest = next(
        (
            name
            for name, score in scores.items()
            if name not in exclude and score == run.weakest_score < 1
        ),
        None,
    )
    outcome = passed.get(run.trial)
    cells = [
        Value(
            text=f"{score:.3f}",
            share=score,
            tone="open" if name in run.drift else "plain",
            mark="below its floor" if name in run.drift else "",
            strong=name == weakest,
        )
        for name, score in scores.items()
    ]
    return Row(
        cells=(
            f"trial {run.trial}",
            f"{run.weakest_score:.3f}",
            *cells,
            "–" if outcome is None else "passed" if outcome else "failed",
            _write_name(run.input_id),
        )
    )


def _write_legend(evidence: StabilityEvidence) -> str:
    said = (
        "Four heuristics of each session, from 0 to 1. A diamond marks a score below its floor, "
        "which decides nothing; bold is the weakest of those that count."
    )
    if evidence.unmeasured:
        said += f" {as_count(evidence.unmeasured, 'run')} without a session to measure."
    if evidence.short:
        said += (
            f" {as_count(evidence.short, 'run')} of at most one turn and one call, which score "
            "1 by definition."
        )
    return said
