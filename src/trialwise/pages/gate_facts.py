"""What every reporter says of a gate the same way: its runs, its numbers, its inputs over k."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from trialwise.documents.blocks import Name, Table, build_table
from trialwise.documents.charts import Area, Chart, Line, chart_lines, thin_out
from trialwise.documents.numbers import as_count, as_ends, as_observed, as_percent
from trialwise.documents.printable import cut_middle
from trialwise.model.claim import PopulationClaim
from trialwise.model.metrics import (
    GateFinding,
    InputScore,
    MetricsEvidence,
    PassK,
    ReliabilityEvidence,
)
from trialwise.model.verdict import Decision, Verdict
from trialwise.procedures.metrics import PASS_AT_K, PASS_HAT_K, Intervals, usual_ks
from trialwise.stats.result_types import Interval, Undefined
from trialwise.stats.trace_stability import SUB_SCORES

HELD = {True: "holds", False: "does not hold", None: "undecided"}
"""What became of an expectation, in words."""


def explain_gate(gate: GateFinding) -> str:
    """Explain what became of a gate, and name the session that made it fail."""
    sessions = gate.evidence.sessions
    if gate.decision in (Decision.PASS, None) or not sessions:
        return gate.statement
    worst = min(sessions, key=lambda one: one.weakest_score)  # the first of equals
    left_out = getattr(gate.evidence, "exclude", ())
    scores = [
        f"{name.replace('_', ' ')} {getattr(worst, name):.3f}"
        for name in SUB_SCORES
        if name not in left_out and getattr(worst, name) <= worst.weakest_score
    ]
    # One session is named to look at; a tie must not make it look like the only one.
    alike = sum(one.weakest_score <= worst.weakest_score for one in sessions) - 1
    others = f", as in {as_count(alike, 'other trial')}" if alike else ""
    session = f"trial {worst.trial}, input {worst.input_id}"
    return f"{gate.statement} The lowest is {', '.join(scores)} in {session}{others}."


def collect_gate_facts(gate: GateFinding) -> dict[str, str | int | float | None]:
    """Collect every number under the name of its target, with the ends of its interval."""
    values: dict[str, float | None] = {}
    for one in gate.checks:
        values[one.target] = None if isinstance(one.value, Undefined) else one.value
        # A program that finds no `.low` knows that there is no interval; a null would look like a
        # number that was lost.
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
    curve = gate.evidence.curve
    if len(curve) < 2:
        return ""
    # At powers of two: reliability decays by a factor with every run, so that the first values
    # differ most.
    ks = [*(1 << power for power in range(len(curve).bit_length()) if 1 << power < len(curve))]
    ks.append(len(curve))
    values = ", ".join(f"{curve[k - 1]:.3g}" for k in ks)
    return f"decay curve {values} % at k = {', '.join(map(str, ks))}"


def as_outward(interval: Interval | Undefined, *, in_percent: bool = False) -> str:
    """Write both ends, rounded outwards, so that 0.9999998 does not look like 1.

    Args:
        interval: Of a number from 0 to 1, or to 100 where it is in percent.
        in_percent: Whether it is.

    >>> as_outward(Interval(0.28, 0.99999))
    '[0.280, 1.000]'
    >>> as_outward(Interval(0.0, 67.194), in_percent=True)
    '[0.0 %, 67.2 %]'
    """
    if isinstance(interval, Undefined):
        return "–"
    digits, unit = (1, " %") if in_percent else (3, "")
    low, high = math.floor(10**digits * interval.low), math.ceil(10**digits * interval.high)
    return f"[{low / 10**digits:.{digits}f}{unit}, {high / 10**digits:.{digits}f}{unit}]"


def name_gate_section(gate: GateFinding) -> str:
    """Name where links to a gate lead."""
    return f"gate {gate.gate} {gate.experiment}"


def count_runs(gate: GateFinding) -> str:
    """Count how many runs a gate is about."""
    runs = as_count(gate.runs, "run")
    return runs if gate.inputs == 1 else f"{runs} of each of {as_count(gate.inputs, 'input')}"


def describe_passing(evidence: MetricsEvidence | ReliabilityEvidence) -> str:
    """Describe what a run has to pass, after the name of a figure; nothing for every criterion.

    Two blocks of one contract may differ in it, and their figures then do as well.
    """
    # A run passes by its score where a threshold was given, else by its criteria.
    threshold = getattr(evidence, "threshold", None)
    if threshold is not None:
        return f" from a score of {threshold:g}"
    names = getattr(evidence, "weights", None) or filter(None, [evidence.criterion])
    of = " and ".join(names)
    return f" of {of}" if of else ""


def sum_up_gate(gate: GateFinding) -> str:
    """Sum up the numbers of a block that nothing was asked of, in a line."""
    numbers = {"reliability": _sum_up_reliability, "metrics": _sum_up_scores}.get(gate.gate)
    summary = "" if numbers is None else numbers(gate, gate.evidence)
    return f"{summary} ({count_runs(gate)})" if summary else count_runs(gate)


def _sum_up_reliability(gate: GateFinding, evidence: Any) -> str:
    """Sum up the chance that any run passes, and that all of them do, over the inputs."""
    tasks = [(one.summary.runs, sum(one.summary.outcomes)) for one in evidence.inputs]
    if not tasks or not gate.runs:
        return "no run"
    # k is the fewest runs of an input; of one with more, all choices of k count (Chen et al. 2021
    # for pass@k, Yao et al. 2024 for pass^k).
    ks, of = [gate.runs] * len(tasks), describe_passing(evidence)
    some, every = PASS_AT_K.average(tasks, ks), PASS_HAT_K.average(tasks, ks)
    decay = write_decay(gate)
    return (
        f"pass@{gate.runs}{of} {some:.3g}, pass^{gate.runs}{of} {every:.3g}"
        f"{f'; {decay}' if decay else ''}"
    )


def _sum_up_scores(gate: GateFinding, evidence: Any) -> str:  # noqa: ARG001
    if not evidence.pass_k:
        return ""
    last, of = evidence.pass_k[-1], describe_passing(evidence)
    numbers = {
        f"pass@{last.k}{of}": last.pass_at_k,
        f"pass^{last.k}{of}": last.pass_hat_k,
        "score": evidence.score,
    }
    known = {name: one for name, one in numbers.items() if not isinstance(one, Undefined)}
    return ", ".join(f"{name} {value:.3g}" for name, value in known.items())


# pass@k and pass^k of each input, with intervals that are images of one interval of its rate.

#: Inputs whose numbers a report lists; the record has all of them.
_MOST = 20
_NAME = 80


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
    return Intervals(PopulationClaim.FIXED_INPUTS, confidence).pass_k([(trials, passed)], k)


def list_input_passes(
    gate: GateFinding, *, only_telling: bool = False
) -> Iterator[tuple[InputScore, PassK]]:
    """List pass@k and pass^k of the worst inputs of a metrics block; nothing of other blocks.

    Args:
        gate: The block.
        only_telling: Whether only the k that says most is wanted.
    """
    # Intervals of every k of every input would be computed for rows that nobody reads.
    inputs, wanted = gate.evidence.worst_inputs, gate.evidence.ks
    if only_telling:
        telling = pick_telling_k(wanted, min((one.trials for one in inputs), default=0))
        wanted = [] if telling is None else [telling]
    # Whoever reads the first rows only should have seen what is worst.
    for one in inputs[:_MOST]:
        if isinstance(one.interval, Undefined):  # nothing beyond the trials is claimed
            continue
        for k in wanted:
            if k <= one.trials:
                yield one, compute_passes(one.trials, one.passed, k, gate.confidence)


def collect_input_facts(gate: GateFinding) -> dict[str, float]:
    """Collect the numbers of each input at the k that says most, with the ends of intervals."""
    facts: dict[str, float] = {}
    for one, row in list_input_passes(gate, only_telling=True):
        for name, _, value, interval in _list_figures(row):
            start = f"{gate.gate}.input.{one.input_id}.{name}.{row.k}"
            facts[start] = value
            facts[f"{start}.low"], facts[f"{start}.high"] = interval
    return facts


def list_input_lines(gate: GateFinding) -> tuple[str, ...]:
    """List a line for each input: its passes, pass@k and pass^k with their intervals."""
    lines = []
    for one, row in list_input_passes(gate, only_telling=True):
        said = (
            f"{sign}{row.k} {value:.3f} {as_outward(interval)}"
            for _, sign, value, interval in _list_figures(row)
        )
        lines.append(f"{one.input_id}: {one.passed} of {one.trials} passed, {', '.join(said)}")
    return tuple(lines)


def build_passes_table(gate: GateFinding) -> Table | None:
    """Build the table of every k; None where no input has any."""
    found = [
        (one, row, [(f"{value:.3f}", as_outward(ends)) for *_, value, ends in _list_figures(row)])
        for one, row in list_input_passes(gate)
    ]
    if not found:
        return None
    return build_table(
        "pass@k and pass^k of each input",
        found,
        ("input", lambda one: Name(cut_middle(one[0].input_id, _NAME))),
        ("k", lambda one: str(one[1].k)),
        ("passed", lambda one: f"{one[0].passed} of {one[0].trials}"),
        ("pass@k", lambda one: one[2][0][0]),
        ("interval", lambda one: one[2][0][1]),
        ("pass^k", lambda one: one[2][1][0]),
        ("interval", lambda one: one[2][1][1]),
        notes=("Both intervals are those of the input's own rate, mapped by each formula.",),
    )


def describe_passes(trials: int, passed: int) -> list[Mapping[str, float]]:
    """Describe pass@k and pass^k of an input for programs; nothing for a single trial."""
    found: list[Mapping[str, float]] = []
    # Of a single trial every k is 1, and both figures are its outcome.
    for k in usual_ks(trials) if trials > 1 else ():
        row: dict[str, float] = {"k": k}
        for name, _, value, interval in _list_figures(compute_passes(trials, passed, k, 0.95)):
            row[f"{name}_k"] = value
            row[f"{name}_k_low"], row[f"{name}_k_high"] = interval
        found.append(row)
    return found


def _list_figures(row: PassK) -> Iterator[tuple[str, str, float, Interval]]:
    """Yield the name, the sign, the estimate and the interval of both figures."""
    for name, sign, value, interval in (
        ("pass_at", "pass@", row.pass_at_k, row.pass_at_k_interval),
        ("pass_hat", "pass^", row.pass_hat_k, row.pass_hat_k_interval),
    ):
        # Where k is at most the trials and an interval of the rate exists, both are defined.
        assert not isinstance(value, Undefined)
        assert not isinstance(interval, Undefined)
        yield name, sign, value, interval


# --- The reliability decay curve: the chance that k runs of an input all pass, over k -------------

#: The most values of k that are drawn and listed; beyond as many runs they are spread out.
POINTS = 40


#: Values of the curve in a sentence.
_LISTED = 20


class Step(NamedTuple):
    """What is known of pass^k at one k, as means over inputs."""

    k: int
    unbiased: float
    interval: Interval | Undefined
    """The interval of the unbiased estimate."""
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
        confidence: The confidence of each of them.
    """
    # The curve of the source document looks at the first k runs; the unbiased estimate uses all of
    # them, in any order, and alone has an interval.
    tasks = [(one.summary.runs, sum(one.summary.outcomes)) for one in evidence.inputs]
    steps: list[Step] = []
    for place in sorted(set(thin_out(len(evidence.decay_curve), POINTS))):
        ks = [place + 1] * len(tasks)
        found = Intervals(claim, confidence).of_passes(PASS_HAT_K, tasks, ks)
        mean, decay = PASS_HAT_K.average(tasks, ks), evidence.decay_curve[place] / 100
        steps.append(Step(place + 1, mean, found, decay))
    return steps


def describe_decay(evidence: ReliabilityEvidence) -> str:
    """Describe the first values of the curve, and how it is made."""
    values = ", ".join(f"{value:.4g}" for value in evidence.decay_curve[:_LISTED])
    return (
        f"Decay curve: {values} (plug-in, in percent). It takes the runs in the order they were "
        "started, and it need not fall."
    )


def chart_decay(verdict: Verdict, gate: GateFinding, evidence: ReliabilityEvidence) -> Chart:
    """Chart the curve over k, with the interval of every point where it has one."""
    steps = list_decay_steps(evidence, verdict.claim.population, gate.confidence)
    band = [(float(one.k), one.interval) for one in steps if isinstance(one.interval, Interval)]
    level = as_percent(gate.confidence)
    runs = next(one for one in verdict.experiments if one.name == gate.experiment)
    # Where a run ended early, what was seen chose where to stop: intervals do not cover then.
    descriptive = "" if runs.trials >= runs.planned else ", descriptive"
    area = Area(
        name=f"{level} interval of each k{descriptive}",
        ink="one",
        upper=tuple((k, found.high) for k, found in band),
        lower=tuple((k, found.low) for k, found in band),
    )
    unbiased = tuple((float(one.k), one.unbiased) for one in steps)
    plug_in = tuple((float(one.k), one.decay) for one in steps)
    names = "unbiased pass^k", "decay curve: plug-in pass^k of the first k runs"
    chart = chart_lines(
        "Reliability decay curve",
        _write_summary(steps, len(evidence.inputs)),
        "k runs, all of which pass",
        "pass^k",
        [
            Line(name=names[0], ink="one", points=unbiased),
            Line(name=names[1], ink="quiet", points=plug_in, dashed=True),
        ],
        y_unit="rate",
        x_unit="count",
        y_high=1,
    )
    return replace(
        chart,
        areas=(area,) if len(band) > 1 else (),
        columns=("k", names[0], f"{level} interval", "decay curve"),
        rows=tuple(
            (f"{one.k:,}", as_observed(one.unbiased), one.ends, as_observed(one.decay))
            for one in steps
        ),
    )


def _write_summary(steps: Sequence[Step], inputs: int) -> str:
    last, mean, found, curve = steps[-1]
    once = as_observed(steps[0].unbiased)
    over = f", a mean over {as_count(inputs, 'input')}" if inputs > 1 else ""
    unknown = f" It has no interval: {found.reason}." if isinstance(found, Undefined) else ""
    return (
        f"The chance that k runs of an input all pass{over}: {once} at "
        f"k = 1, {as_observed(mean)} at k = {last:,}, where it only says whether every run "
        f"passed.{unknown} The decay curve ends at {as_observed(curve)}. Beyond "
        f"k = {last:,}, the fewest runs of an input, nothing is estimated: it would be "
        "extrapolation."
    )
