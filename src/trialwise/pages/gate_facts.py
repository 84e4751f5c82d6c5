"""What every reporter says of a gate the same way: its runs, its numbers, its inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from trialwise.documents.blocks import Name, Table, build_table
from trialwise.documents.numbers import as_count
from trialwise.documents.printable import cut_middle
from trialwise.procedures.metrics import Intervals, Reach, usual_ks
from trialwise.stats.result_types import Interval, Undefined

if TYPE_CHECKING:
    from trialwise.model.metrics import (
        GateFinding,
        GateNumber,
        MetricsEvidence,
        PassK,
        ReliabilityEvidence,
    )

HELD = {True: "holds", False: "does not hold", None: "undecided"}
"""What became of an expectation, in words."""


def list_gate_notes(gate: GateFinding) -> tuple[str, ...]:
    """List what a reader must know of a gate's decision: that it has no error rate, and on what."""
    if not gate.checks:
        return ()
    named = ", ".join(gate.heuristics)
    heuristic = f" Heuristic: {named}." if named else ""
    return (f"A gate holds a number against a limit and has no error rate.{heuristic}",)


def explain_gate(gate: GateFinding) -> str:
    """Explain what became of a gate, and name the session that made it fail."""
    from trialwise.model.metrics import StabilityEvidence
    from trialwise.model.verdict import Decision
    from trialwise.stats.trace_stability import SUB_SCORES

    evidence = gate.evidence
    if gate.decision in (Decision.PASS, None) or not isinstance(evidence, StabilityEvidence):
        return gate.statement
    worst = evidence.worst
    if worst is None:
        return gate.statement
    scores = [
        f"{name.replace('_', ' ')} {getattr(worst, name):.3f}"
        for name in SUB_SCORES
        if name not in evidence.exclude and getattr(worst, name) <= worst.weakest_score
    ]
    alike = sum(one.weakest_score <= worst.weakest_score for one in evidence.runs) - 1
    others = f", as in {as_count(alike, 'other trial')}" if alike else ""
    session = f"trial {worst.trial}, input {worst.input_id}"
    return f"{gate.statement} The lowest is {', '.join(scores)} in {session}{others}."


def collect_gate_facts(gate: GateFinding) -> dict[str, str | int | float | None]:
    """Collect every number under the name of its target, with the ends of its interval."""
    values: dict[str, float | None] = {}
    for one in gate.checks:
        values[one.target] = None if isinstance(one.value, Undefined) else one.value
        if isinstance(one.interval, Interval):
            values[f"{one.target}.low"], values[f"{one.target}.high"] = one.interval
    return {
        "inputs": gate.inputs,
        "runs": gate.runs,
        "confidence": gate.confidence,
        **values,
        "heuristics": ", ".join(gate.heuristics),
    }


def collect_number_facts(gate: GateFinding) -> dict[str, str | int | float | None]:
    """Collect every number of a block without limits, under the name of its target."""
    return {
        one.target: None if isinstance(one.value, Undefined) else one.value for one in gate.numbers
    }


def pick_telling_k(ks: Sequence[int], runs: int) -> int | None:
    """Return the k at which pass@k and pass^k of a single input say most.

    At k = n they only say whether any and whether every run passed, and at k = 1 both are the rate.

    Args:
        ks: The values of k that are reported.
        runs: The fewest runs of an input.

    >>> pick_telling_k([1, 2, 4, 5], 5), pick_telling_k([1], 5)
    (4, None)
    """
    return max((k for k in ks if 1 < k < runs), default=None)


def write_decay(gate: GateFinding) -> str:
    """Write a few points of a reliability block's decay curve; nothing where there is none."""
    from trialwise.model.metrics import ReliabilityEvidence

    evidence = gate.evidence
    if not isinstance(evidence, ReliabilityEvidence) or len(evidence.decay_curve) < 2:
        return ""
    curve = evidence.decay_curve
    ks = [*(1 << power for power in range(len(curve).bit_length()) if 1 << power < len(curve))]
    ks.append(len(curve))
    values = ", ".join(f"{curve[k - 1]:.3g}" for k in ks)
    return f"decay curve {values} % at k = {', '.join(map(str, ks))}"


def as_outward(interval: Interval, *, in_percent: bool = False) -> str:
    """Write both ends, rounded outwards, so that 0.9999998 does not look like 1.

    Args:
        interval: Of a number from 0 to 1, or to 100 where it is in percent.
        in_percent: Whether it is.

    >>> as_outward(Interval(0.28, 0.99999))
    '[0.280, 1.000]'
    >>> as_outward(Interval(0.0, 67.194), in_percent=True)
    '[0.0 %, 67.2 %]'
    """
    if in_percent:
        low, high = math.floor(10 * interval.low), math.ceil(10 * interval.high)
        return f"[{low / 10:.1f} %, {high / 10:.1f} %]"
    low, high = math.floor(1000 * interval.low), math.ceil(1000 * interval.high)
    return f"[{low / 1000:.3f}, {high / 1000:.3f}]"


def name_gate_section(gate: GateFinding) -> str:
    """Name where links to a gate lead."""
    return f"gate {gate.gate} {gate.experiment}"


def count_runs(gate: GateFinding) -> str:
    """Count how many runs a gate is about."""
    runs = as_count(gate.runs, "run")
    return runs if gate.inputs == 1 else f"{runs} of each of {as_count(gate.inputs, 'input')}"


def list_unlimited(gate: GateFinding) -> list[GateNumber]:
    """List the numbers of a block that nothing was asked of."""
    asked = {one.target for one in gate.checks}
    return [one for one in gate.numbers if one.target not in asked]


def _sum_up_reliability(k: int, evidence: ReliabilityEvidence) -> str:
    """Sum up the chance that any of k runs passes, and that all of them do, over the inputs.

    Args:
        k: The fewest runs of an input.
        evidence: The outcomes of every input; of more than k runs all choices of k count.
    """
    counts = [(len(one.summary.outcomes), sum(one.summary.outcomes)) for one in evidence.inputs]
    if not counts or not k:
        return "no run"
    some = sum(1 - math.comb(n - c, k) / math.comb(n, k) for n, c in counts) / len(counts)
    every = sum(math.comb(c, k) / math.comb(n, k) for n, c in counts) / len(counts)
    of = describe_passing(evidence)
    return f"pass@{k}{of} {some:.3g}, pass^{k}{of} {every:.3g}"


def describe_passing(evidence: MetricsEvidence | ReliabilityEvidence) -> str:
    """Describe what a run has to pass, after the name of a figure; nothing for every criterion.

    Two blocks of one contract may differ in it, and their figures then do as well.
    """
    threshold = getattr(evidence, "threshold", None)
    if threshold is not None:
        return f" from a score of {threshold:g}"
    names = getattr(evidence, "weights", None) or filter(None, [evidence.criterion])
    of = " and ".join(names)
    return f" of {of}" if of else ""


def sum_up_gate(gate: GateFinding) -> str:
    """Sum up the numbers of a block that nothing was asked of, in a line."""
    from trialwise.model.metrics import MetricsEvidence, ReliabilityEvidence

    evidence = gate.evidence
    each = count_runs(gate)
    if isinstance(evidence, ReliabilityEvidence):
        decay = write_decay(gate)
        summary = _sum_up_reliability(gate.runs, evidence)
        return f"{summary}{f'; {decay}' if decay else ''} ({each})"
    if isinstance(evidence, MetricsEvidence) and evidence.pass_k:
        last, of = evidence.pass_k[-1], describe_passing(evidence)
        shown = [
            f"{name} {value:.3g}"
            for name, value in (
                (f"pass@{last.k}{of}", last.pass_at_k),
                (f"pass^{last.k}{of}", last.pass_hat_k),
                ("score", evidence.score),
            )
            if not isinstance(value, Undefined)
        ]
        return f"{', '.join(shown)} ({each})"
    return each


# pass@k and pass^k of each input, with intervals that are images of one interval of its rate.

#: Inputs whose numbers a report lists; the record has all of them.
_MOST = 20
_NAME = 80


class InputPasses(NamedTuple):
    """One input at one k."""

    input_id: str
    trials: int
    passed: int
    row: PassK


@lru_cache(maxsize=4096)
def compute_passes(trials: int, passed: int, k: int, confidence: float) -> PassK:
    """Compute pass@k and pass^k of one input.

    Both intervals are the exact one of its rate, mapped: at every k they agree with each other and
    with those at other k. At k = trials they are widened to the estimate, which is 0 or 1 there.

    Args:
        trials: Of the input.
        passed: Of them.
        k: At most the trials.
        confidence: The confidence of each interval.
    """
    return Intervals(Reach.INPUTS, confidence).pass_k([(trials, passed)], k)


def list_input_passes(gate: GateFinding, *, only_telling: bool = False) -> Iterator[InputPasses]:
    """List pass@k and pass^k of the worst inputs of a metrics block; nothing of other blocks.

    Args:
        gate: The block.
        only_telling: Whether only the k that says most is wanted.
    """
    from trialwise.model.metrics import MetricsEvidence

    evidence = gate.evidence
    if not isinstance(evidence, MetricsEvidence) or not evidence.inputs:
        return
    ks = [row.k for row in evidence.pass_k]
    telling = pick_telling_k(ks, min(one.trials for one in evidence.inputs))
    wanted = ks if not only_telling else [] if telling is None else [telling]
    worst = sorted(evidence.inputs, key=lambda one: (one.rate, one.score))
    for one in worst[:_MOST]:
        if isinstance(one.interval, Undefined):  # nothing beyond the trials is claimed
            continue
        for k in wanted:
            if k <= one.trials:
                row = compute_passes(one.trials, one.passed, k, gate.confidence)
                yield InputPasses(one.input_id, one.trials, one.passed, row)


def collect_input_facts(gate: GateFinding) -> dict[str, float]:
    """Collect the numbers of each input at the k that says most, with the ends of intervals."""
    facts: dict[str, float] = {}
    for one in list_input_passes(gate, only_telling=True):
        for name, value, interval in _list_figures(one.row):
            start = f"{gate.gate}.input.{one.input_id}.{name}.{one.row.k}"
            facts[start] = value
            facts[f"{start}.low"], facts[f"{start}.high"] = interval
    return facts


def list_input_lines(gate: GateFinding) -> tuple[str, ...]:
    """List a line for each input: its passes, pass@k and pass^k with their intervals."""
    return tuple(
        f"{one.input_id}: {one.passed} of {one.trials} passed, "
        + ", ".join(
            f"{sign}{one.row.k} {value:.3f} {as_outward(interval)}"
            for (_, value, interval), sign in zip(
                _list_figures(one.row), ("pass@", "pass^"), strict=True
            )
        )
        for one in list_input_passes(gate, only_telling=True)
    )


def build_passes_table(gate: GateFinding) -> Table | None:
    """Build the table of every k; None where no input has any."""
    rows = list(list_input_passes(gate))
    if not rows:
        return None

    def write(one: InputPasses, place: int) -> tuple[str, str]:
        _, value, interval = list(_list_figures(one.row))[place]
        return f"{value:.3f}", as_outward(interval)

    return build_table(
        "pass@k and pass^k of each input",
        rows,
        ("input", lambda one: Name(cut_middle(one.input_id, _NAME))),
        ("k", lambda one: str(one.row.k)),
        ("passed", lambda one: f"{one.passed} of {one.trials}"),
        ("pass@k", lambda one: write(one, 0)[0]),
        ("interval", lambda one: write(one, 0)[1]),
        ("pass^k", lambda one: write(one, 1)[0]),
        ("interval", lambda one: write(one, 1)[1]),
        notes=("Both intervals are those of the input's own rate, mapped by each formula.",),
    )


def describe_passes(
    trials: int, passed: int, confidence: float = 0.95
) -> list[Mapping[str, float]]:
    """Describe pass@k and pass^k of an input for programs; nothing for a single trial."""
    if trials < 2:
        return []
    found: list[Mapping[str, float]] = []
    for k in usual_ks(trials):
        row: dict[str, float] = {"k": k}
        for name, value, interval in _list_figures(compute_passes(trials, passed, k, confidence)):
            row[f"{name}_k"] = value
            row[f"{name}_k_low"], row[f"{name}_k_high"] = interval
        found.append(row)
    return found


def _list_figures(row: PassK) -> Iterator[tuple[str, float, Interval]]:
    """Yield the name, the estimate and the interval of both figures."""
    for name, value, interval in (
        ("pass_at", row.pass_at_k, row.pass_at_k_interval),
        ("pass_hat", row.pass_hat_k, row.pass_hat_k_interval),
    ):
        assert not isinstance(value, Undefined)
        assert not isinstance(interval, Undefined)
        yield name, value, interval
