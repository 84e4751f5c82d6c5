"""What repeated runs came to: the numbers behind a gate, what was asked of them and what held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self, TypeAlias

from trialwise.model.gate import Basis
from trialwise.model.matcher import Matcher
from trialwise.stats.result_types import Decision, Interval, Undefined
from trialwise.stats.run_reliability import ReliabilitySummary


@dataclass(frozen=True, slots=True, kw_only=True)
class PassK:
    """What k further trials of an input would show, as a mean over the inputs.

    `pass_at_k` and `pass_hat_k` are unbiased and have the intervals; the other two put each
    input's rate into the formula and are biased.
    """

    k: int
    pass_at_k: float | Undefined
    """At least one of k passes."""
    pass_at_k_interval: Interval | Undefined
    pass_hat_k: float | Undefined
    """All of k pass."""
    pass_hat_k_interval: Interval | Undefined
    pass_at_k_naive: float | Undefined
    pass_hat_k_plugin: float | Undefined

    def after_early_stop(self) -> PassK:
        """Return the same of runs that are not all that were planned."""
        return replace(
            self,
            pass_at_k_interval=self.pass_at_k_interval.after_early_stop(),
            pass_hat_k_interval=self.pass_hat_k_interval.after_early_stop(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionPassK:
    """The table of one criterion alone."""

    criterion: str
    pass_k: tuple[PassK, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputScore:
    """One input's runs: the score of a stimulus."""

    input_id: str
    trials: int
    passed: int
    rate: float
    interval: Interval | Undefined
    """Two-sided, exact, for this input's own rate."""
    score: float
    """The runs' weighted marks, averaged."""
    flaky: bool
    """Whether it both passed and failed."""
    flakiness: float
    """The share of its rarer outcome in percent, from 0 to 50."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _GateEvidence:
    """What every gate keeps of its runs."""

    def after_early_stop(self) -> Self:
        """Return the same of runs that are not all that were planned."""
        return self

    @property
    def unseen(self) -> int:
        """The runs that said nothing of what the gate looks at; any may have been the worst."""
        return 0

    @property
    def sessions(self) -> tuple[RunStability, ...]:
        """The runs whose sessions were scored."""
        return ()

    @property
    def curve(self) -> tuple[float, ...]:
        """The decay curve of the runs, in percent, by their number."""
        return ()

    @property
    def ks(self) -> list[int]:
        """The values of k for which pass@k and pass^k were asked."""
        return []

    @property
    def worst_inputs(self) -> list[InputScore]:
        """The inputs that were scored, the worst first."""
        return []

    def list_doubts(self) -> Iterator[str]:
        """List what a reader must know of what was measured."""
        return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsEvidence(_GateEvidence):
    """The score of a skill: its inputs, and means over them, never over pooled trials."""

    criterion: str | None
    weights: Mapping[str, float] = field(default_factory=dict)
    threshold: float | None = None
    inputs: tuple[InputScore, ...]
    unscored: tuple[str, ...] = ()
    """Inputs without graders, or without a run: kept, and part of no mean."""
    pass_k: tuple[PassK, ...]
    """The table of runs that pass as a whole."""
    criteria: tuple[CriterionPassK, ...] = ()
    pass_rate: float | Undefined
    score: float | Undefined
    passed: bool | Undefined
    """Whether the score reaches the threshold; without one, whether every run passed."""

    def after_early_stop(self) -> Self:
        """Return the same of runs that are not all that were planned."""

        def mark(rows: tuple[PassK, ...]) -> tuple[PassK, ...]:
            return tuple(row.after_early_stop() for row in rows)

        criteria = tuple(replace(one, pass_k=mark(one.pass_k)) for one in self.criteria)
        return replace(self, pass_k=mark(self.pass_k), criteria=criteria)

    @property
    def ks(self) -> list[int]:
        """The values of k of the table."""
        return [row.k for row in self.pass_k]

    @property
    def worst_inputs(self) -> list[InputScore]:
        """The inputs, those first that pass least often."""
        return sorted(self.inputs, key=lambda one: (one.rate, one.score))

    @property
    def flaky(self) -> tuple[str, ...]:
        """The inputs that both passed and failed."""
        return tuple(one.input_id for one in self.inputs if one.flaky)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputReliability:
    """One input's runs in the order they were issued."""

    input_id: str
    summary: ReliabilitySummary


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCount:
    """How many runs of an input would pin its rate, at worst."""

    half_width: float
    """The distance to either end of the interval that is asked for."""
    wilson: int
    """Runs at which Wilson's interval is no wider."""
    wald: int | Undefined
    """Runs at which Wald's nominal one is, which covers less than it says near 0 and 1."""
    reached: float
    """The half-width of Wilson's interval that the runs there are give, at worst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityEvidence(_GateEvidence):
    """The reliability summary of every input, and its means over the inputs."""

    criterion: str | None
    inputs: tuple[InputReliability, ...]
    untried: tuple[str, ...] = ()
    """Inputs without a run: part of no mean."""
    decay_curve: tuple[float, ...] = ()
    """The mean over inputs of their decay curves, as far as all of them go; it need not fall."""
    recommendation: RunCount | None = None
    """None without a run."""

    @property
    def curve(self) -> tuple[float, ...]:
        """The decay curve."""
        return self.decay_curve


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStability:
    """The sub-scores of one run's session."""

    input_id: str
    trial: int
    """Its place in the order of inputs, from 0."""
    tool_usage_stability: float
    response_consistency: float
    redundancy: float
    """The share of calls that are *not* repeats."""
    cost_per_progress: float
    weakest_score: float
    """The lowest of those that count."""
    drift: tuple[str, ...] = ()
    """Those below their floor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityEvidence(_GateEvidence):
    """Every run's session, in the order of inputs."""

    runs: tuple[RunStability, ...]
    exclude: tuple[str, ...] = ()
    unmeasured: int = 0
    """Runs without a reply, or whose reply told neither of turns nor of tool calls."""
    short: int = 0
    """Runs of at most one turn and one tool call, whose every sub-score is 1 by definition."""

    @property
    def unseen(self) -> int:
        """The runs without a session: any of them may have been the worst."""
        return self.unmeasured

    def list_doubts(self) -> Iterator[str]:
        """List which sessions were not seen, and whether any measured something."""
        if self.unmeasured:
            runs = "1 run" if self.unmeasured == 1 else f"{self.unmeasured} runs"
            yield f"{runs} without a session: no reply, or one without turns and tool calls." + (
                ""
                if self.runs
                else " A command or an endpoint says with `trace: $.trace` where its reply holds "
                "the session; a function returns a `Trace` or its messages."
            )
        if self.short and self.short == len(self.runs):
            yield (
                "Every session has at most one turn and one tool call, and so sub-scores of 1 by "
                "definition: nothing was measured."
            )

    @property
    def sessions(self) -> tuple[RunStability, ...]:
        """The runs whose sessions were scored."""
        return self.runs


@dataclass(frozen=True, slots=True, kw_only=True)
class GateNumber:
    """A target's number, whether or not anything was asked of it."""

    target: str
    basis: Basis
    value: float | Undefined
    interval: Interval | Undefined
    """The interval of what the number estimates, or why there is none. It decides nothing."""

    @property
    def shown(self) -> str:
        """The number, short."""
        return "–" if isinstance(self.value, Undefined) else f"{self.value:.4g}"


GateEvidence: TypeAlias = ReliabilityEvidence | StabilityEvidence | MetricsEvidence


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCheck(GateNumber):
    """One expectation and the number it was held against."""

    matcher: Matcher
    holds: bool | None
    """None where there is no number."""

    def __str__(self) -> str:
        if isinstance(self.value, Undefined):
            return f"{self.target} is undefined: {self.value.reason}"
        return f"{self.target} {self.shown} {'meets' if self.holds else 'misses'} {self.matcher}"

    @property
    def shown(self) -> str:
        """The number, short, and never rounded to the other side of a limit."""
        if isinstance(self.value, Undefined):
            return "undefined"
        short = f"{self.value:.0f}" if float(self.value).is_integer() else f"{self.value:.4g}"
        return short if self.matcher.holds(float(short)) is self.holds else f"{self.value:.10g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFinding:
    """What one block of a contract found; its decision has no error rate."""

    gate: str
    """reliability, stability or metrics."""
    experiment: str
    decision: Decision | None
    """None where nothing was asked and the numbers are only reported."""
    checks: tuple[GateCheck, ...] = ()
    numbers: tuple[GateNumber, ...] = ()
    """Every target of the block that names no k, asked for or not."""
    inputs: int
    """Distinct inputs that were tried."""
    runs: int
    """The fewest runs of any of them."""
    confidence: float
    """The confidence of the intervals."""
    evidence: GateEvidence
    statement: str = ""
    caveats: tuple[str, ...] = ()

    @property
    def heuristics(self) -> tuple[str, ...]:
        """The targets that are conventions and estimate nothing."""
        return tuple(one.target for one in self.checks if one.basis is Basis.HEURISTIC)
