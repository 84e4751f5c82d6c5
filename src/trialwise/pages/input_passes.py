"""pass@k and pass^k of each input, with intervals that are images of one interval of its rate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from trialwise.documents.blocks import Name, Table, build_table
from trialwise.documents.printable import cut_middle
from trialwise.pages.gate_facts import as_outward, pick_telling_k
from trialwise.procedures.metrics import Reach, pass_k_of, usual_ks
from trialwise.stats.result_types import Interval, Undefined

if TYPE_CHECKING:
    from trialwise.model.metrics import GateFinding, PassK

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
    return pass_k_of([(trials, passed)], k, confidence=confidence, reach=Reach.INPUTS)


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
