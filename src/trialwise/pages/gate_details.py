"""Gates: each number with its limit and its interval, and the runs behind it, worst first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from trialwise.documents import blocks
from trialwise.documents.numbers import as_count, as_observed, as_percent, join_few
from trialwise.documents.printable import cut_middle
from trialwise.model import metrics
from trialwise.model.gate import describe_target, find_target
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Verdict
from trialwise.pages import gate_facts
from trialwise.pages.verdict_meaning import make_badge
from trialwise.procedures.gates import PROCEDURE as GATES
from trialwise.stats.result_types import Interval, Undefined
from trialwise.stats.run_reliability import pass_at_k, pass_hat_k
from trialwise.stats.trace_stability import SUB_SCORES

#: Inputs listed; the rest is counted.
MOST = 20


#: Characters of an input's name, and runs of it that are drawn one by one.
_NAME, _DRAWN = 80, 60


#: What a high sub-score of a session says.
_SUB_SCORES = {
    "tool_usage_stability": "few tools for many calls",
    "response_consistency": "answers of similar length",
    "redundancy": "calls that are not repeats",
    "cost_per_progress": "tokens for each distinct call",
}


_NOTE = (
    "A gate holds a number of this run against a limit. It has no error rate, and an interval "
    "beside a number decides nothing."
)


def build_gates_section(record: RunRecord) -> blocks.Section | None:
    """Build every gate of a run, or None where it has none."""
    gates = record.verdict.gates
    if not gates:
        return None
    shown = tuple(build_gate(gate, record.verdict, record) for gate in gates)
    return blocks.Section(heading="Gates", blocks=shown, note=_NOTE)


def build_gate(
    gate: metrics.GateFinding, verdict: Verdict, record: RunRecord | None = None
) -> blocks.Section:
    """Build a gate: what was asked, what was measured, and the runs behind it.

    Args:
        gate: What was decided.
        verdict: The verdict of its run.
        record: The run, which adds the floors of scores and whether each trial passed.
    """
    # Without a limit nothing was asked, so that neither PASS nor FAIL would be true.
    word = gate.decision.value if gate.decision else "REPORTED"
    # A gate has no error rate: what it does not show stands beside it, not in an appendix.
    notes = (*GATES.explain(gate), *gate.caveats)
    return blocks.Section(
        heading=gate.gate,
        name=gate_facts.name_gate_section(gate),
        badges=(make_badge(gate.decision, word),),
        aside=gate_facts.count_runs(gate),
        blocks=(
            *_list_numbers(gate),
            *((blocks.Prose(paragraphs=notes, tone="quiet"),) if notes else ()),
            *_EVIDENCE[gate.gate](gate.evidence, gate, verdict, record),
        ),
    )


def _list_numbers(gate: metrics.GateFinding) -> Iterator[blocks.Table]:
    """List what was asked and whether it holds, and then what else was measured."""
    asked = {one.target for one in gate.checks}
    unlimited = (one for one in gate.numbers if one.target not in asked)
    numbers: list[metrics.GateNumber] = [*gate.checks, *unlimited]
    columns: list[blocks.Column[metrics.GateNumber]] = [
        ("number", lambda one: _name_target(one.target)),
        ("value", _write_value),
        ("interval", lambda one: gate_facts.as_outward(one.interval, in_percent=_is_percent(one))),
    ]
    if gate.checks:
        columns += [("limit", lambda one: _write_limit(one)[0])]
        columns += [("result", lambda one: _write_limit(one)[1])]
    columns += [("what it is", lambda one: f"{describe_target(one.target)} ({one.basis})")]
    if numbers:
        yield blocks.build_table(
            "Numbers",
            numbers,
            *columns,
            words=(0, *range(3, len(columns))),
            notes=_explain_intervals((_name_target(one.target), one.interval) for one in numbers),
            is_headed=False,
        )


def _name_target(target: str) -> str:
    """Name a target within its gate, whose name is the heading."""
    return target.partition(".")[2]


def _explain_intervals(given: Iterable[tuple[str, Interval | Undefined]]) -> tuple[str, ...]:
    """By which method intervals were made, or why there is none, each said once."""
    named: dict[str, list[str]] = {}
    for name, found in given:
        if isinstance(found, Undefined):
            said = f"no interval: {found.reason}"
        else:
            level = f"{as_percent(found.confidence)} " if found.confidence else ""
            said = f"{level}interval, {found.method}"
        # Several numbers share a method: one note each would be longer than the table.
        named.setdefault(said, []).append(name)
    return tuple(f"{', '.join(dict.fromkeys(names))}: {said}" for said, names in named.items())


def _write_value(one: metrics.GateNumber) -> str:
    """Write a number with its unit."""
    return (
        one.shown if isinstance(one.value, Undefined) else f"{one.shown}{' %' * _is_percent(one)}"
    )


def _write_limit(one: metrics.GateNumber) -> tuple[str, str]:
    """Write the limit of a number, and whether it holds."""
    if isinstance(one, metrics.GateCheck):
        return str(one.matcher), gate_facts.HELD[one.holds]
    return "no limit", "–"


def _is_percent(one: metrics.GateNumber) -> bool:
    found = find_target(one.target)
    return found is not None and found.is_percent


def _write_number(value: float | Undefined) -> str:
    return "–" if isinstance(value, Undefined) else f"{value:.4g}"


def _count_rest(count: int) -> tuple[str, ...]:
    """Count how many inputs a table leaves out."""
    left = as_count(count - MOST, "further input")
    return (f"{left} not listed.",) if count > MOST else ()


def _write_name(input_id: str) -> blocks.Name:
    return blocks.Name(cut_middle(input_id, _NAME))


def _list_reliability(
    evidence: metrics.ReliabilityEvidence,
    gate: metrics.GateFinding,
    verdict: Verdict,
    _: RunRecord | None,
) -> Iterator[blocks.Block]:
    # With a single run of each input the curve is the pass rate and nothing else.
    if len(evidence.decay_curve) > 1:
        yield gate_facts.chart_decay(verdict, gate, evidence)
        yield blocks.Prose(paragraphs=(gate_facts.describe_decay(evidence),), tone="quiet")
    # What degrades worst comes first: of many inputs only these are listed.
    worst = sorted(evidence.inputs, key=lambda one: one.summary.graceful_degradation)
    yield blocks.build_table(
        "Runs of each input",
        worst[:MOST],
        ("input", lambda one: _write_name(one.input_id)),
        ("passed", lambda one: f"{sum(one.summary.outcomes)} of {one.summary.runs}"),
        ("variance amplification", lambda one: f"{one.summary.variance_amplification} %"),
        ("graceful degradation", lambda one: f"{one.summary.graceful_degradation} %"),
        ("in order", lambda one: _draw_outcomes(one.summary.outcomes)),
        words=(0, 4),
        notes=_count_rest(len(worst)),
    )
    # Both are named: the source document sizes by Wald's width, which is too small near 0 and 1.
    advice = evidence.recommendation
    if advice is not None:
        wald = "undefined" if isinstance(advice.wald, Undefined) else f"{advice.wald:,}"
        said = (
            f"These runs give the rate of an input to ±{advice.reached:.2f} at worst. "
            f"±{advice.half_width:g} takes {advice.wilson:,} runs (Wilson; {wald} by the nominal "
            "width of Wald, with its z rounded). The command plan precision uses the mean width "
            "at a rate instead of the largest one, and may differ by a few."
        )
        yield blocks.Prose(paragraphs=(said,), tone="quiet")


def _draw_outcomes(outcomes: Sequence[bool]) -> str:
    marks = "".join("●" if passed else "○" for passed in outcomes[:_DRAWN])
    return marks + ("…" if len(outcomes) > _DRAWN else "")


def _list_metrics(
    evidence: metrics.MetricsEvidence, gate: metrics.GateFinding, *_: object
) -> Iterator[blocks.Block]:
    of = gate_facts.describe_passing(evidence)
    yield _build_pass_k(f"pass@k and pass^k{of} over inputs", evidence.pass_k)
    for one in evidence.criteria:
        title = f"The same of {one.criterion}"
        yield blocks.Details(summary=title, blocks=(_build_pass_k(title, one.pass_k),))
    worst = evidence.worst_inputs
    columns: list[blocks.Column[metrics.InputScore]] = [
        ("input", lambda one: _write_name(one.input_id)),
        ("passed", lambda one: f"{one.passed} of {one.trials}"),
        ("rate", lambda one: as_observed(one.rate)),
        ("interval", lambda one: gate_facts.as_outward(one.interval)),
        ("score", lambda one: f"{one.score:.3f}"),
        ("flaky", lambda one: f"{one.flakiness:.3g} %" if one.flaky else "–"),
    ]
    # pass@k and pass^k of an input say nothing at k = 1 and k = n; elsewhere they have columns.
    fewest = min((one.trials for one in evidence.inputs), default=0)
    k = gate_facts.pick_telling_k(evidence.ks, fewest)
    if k is not None:
        columns[4:4] = [
            (f"pass@{k}", lambda one: _write_number(pass_at_k(one.trials, one.passed, k))),
            (f"pass^{k}", lambda one: _write_number(pass_hat_k(one.trials, one.passed, k))),
        ]
    yield blocks.build_table(
        "Inputs", worst[:MOST], *columns, words=(0, len(columns) - 1), notes=_count_rest(len(worst))
    )
    passes = gate_facts.build_passes_table(gate)
    if passes is not None:
        yield passes
    notes = []
    if not isinstance(evidence.passed, Undefined) and evidence.threshold is not None:
        word = "reaches" if evidence.passed else "misses"
        notes.append(f"The mean score {word} the threshold of {evidence.threshold:g}.")
    if evidence.unscored:
        left, named = as_count(len(evidence.unscored), "input"), join_few(evidence.unscored)
        notes.append(f"{left} without graders or without a run, part of no mean: {named}.")
    if notes:
        yield blocks.Prose(paragraphs=tuple(notes), tone="quiet")


def _build_pass_k(heading: str, rows: Sequence[metrics.PassK]) -> blocks.Table:
    return blocks.build_table(
        heading,
        rows,
        ("k", lambda one: str(one.k)),
        ("pass@k", lambda one: _write_number(one.pass_at_k)),
        ("interval", lambda one: gate_facts.as_outward(one.pass_at_k_interval)),
        ("pass^k", lambda one: _write_number(one.pass_hat_k)),
        ("interval", lambda one: gate_facts.as_outward(one.pass_hat_k_interval)),
        ("naive pass@k", lambda one: _write_number(one.pass_at_k_naive)),
        ("plug-in pass^k", lambda one: _write_number(one.pass_hat_k_plugin)),
        notes=_explain_intervals(
            (name, found)
            for one in rows
            for name, found in (
                ("pass@k", one.pass_at_k_interval),
                ("pass^k", one.pass_hat_k_interval),
            )
        ),
    )


#: Runs listed at once, and with those that can be unfolded; the rest is counted.
FIRST_RUNS, MOST_RUNS = 10, 200


def _list_stability(
    evidence: metrics.StabilityEvidence,
    gate: metrics.GateFinding,
    _: Verdict,
    record: RunRecord | None,
) -> Iterator[blocks.Block]:
    """List a row for each run, the least steady first; scores below their floor carry a mark."""
    if not evidence.runs:
        return
    names = [name for name in SUB_SCORES if name not in evidence.exclude]
    plans = () if record is None else record.plan.gates
    floors = next((getattr(one, "floors", None) for one in plans if one.name == gate.gate), None)
    trials = None if record is None else record.trials.of_experiment(gate.experiment)

    def rank(run: metrics.RunStability) -> tuple[float, float]:
        return run.weakest_score, math.fsum(getattr(run, name) for name in names)

    def write_outcome(run: metrics.RunStability) -> str:
        place = None if trials is None else trials.find(run.trial)
        if trials is None or place is None:
            return "–"
        return "passed" if trials[place].passed else "failed"

    columns: tuple[blocks.Column[metrics.RunStability], ...] = (
        ("run", lambda run: f"trial {run.trial}"),
        ("weakest", lambda run: f"{run.weakest_score:.3f}"),
        *(
            (
                blocks.Value(
                    text=name.replace("_", " "),
                    note=f"floor {getattr(floors, name):g}" if floors else "",
                ),
                partial(_write_score, name, names),
            )
            for name in names
        ),
        # Names come last: on a phone a table begins with what it is about.
        ("criteria", write_outcome),
        ("input", lambda run: _write_name(run.input_id)),
    )
    words = (0, len(columns) - 2, len(columns) - 1)
    worst = sorted(evidence.runs, key=rank)
    first, further = worst[:FIRST_RUNS], worst[FIRST_RUNS:MOST_RUNS]
    yield blocks.build_table("Runs, the least steady first", first, *columns, words=words)
    if further:
        table = blocks.build_table("Further runs", further, *columns, words=words)
        yield blocks.Details(summary=as_count(len(further), "further run"), blocks=(table,))
    # The scores are heuristics without an error rate, which no table of digits would suggest.
    notes = [_write_legend(evidence, names)]
    if len(worst) > MOST_RUNS:
        notes.insert(0, f"{as_count(len(worst) - MOST_RUNS, 'further run')} not listed.")
    yield blocks.Prose(paragraphs=tuple(notes), tone="quiet")


#: What lists the runs behind each gate, by its name.
_EVIDENCE: dict[str, Callable[..., Iterator[blocks.Block]]] = {
    "reliability": _list_reliability,
    "stability": _list_stability,
    "metrics": _list_metrics,
}


def _write_score(name: str, names: Sequence[str], run: metrics.RunStability) -> blocks.Value:
    scores = {one: getattr(run, one) for one in names}
    # The one that the weakest score is, where any of them is weak.
    weakest = next((one for one, score in scores.items() if score == run.weakest_score < 1), None)
    return blocks.Value(
        text=f"{scores[name]:.3f}",
        share=scores[name],
        tone="open" if name in run.drift else "plain",
        mark="below its floor" if name in run.drift else "",
        strong=name == weakest,
    )


def _write_legend(evidence: metrics.StabilityEvidence, names: Sequence[str]) -> str:
    meanings = [f"{name.replace('_', ' ')} ({_SUB_SCORES[name]})" for name in names]
    said = (
        f"Each session has scores from 0 to 1, which are heuristics: {', '.join(meanings)}. A "
        "marked score is below its floor, which decides nothing. The weakest score is bold."
    )
    if evidence.exclude:
        left = ", ".join(name.replace("_", " ") for name in evidence.exclude)
        said += f" The suite leaves out: {left}."
    if evidence.unmeasured:
        said += f" {as_count(evidence.unmeasured, 'run')} without a session to measure."
    if evidence.short:
        said += (
            f" {as_count(evidence.short, 'run')} of at most one turn and one call, which score "
            "1 by definition."
        )
    return said
