"""Comparison of arms: services on the same inputs, in turn, told apart pair by pair or not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeAlias, Unpack, cast

from trialwise.errors import DesignRefused, InvalidArgument, RunInterrupted
from trialwise.model.contract import Contract
from trialwise.model.evidence import StopReason
from trialwise.model.intent import Intent
from trialwise.model.options import RunOptions
from trialwise.model.plan import Plan
from trialwise.model.run import RunRecord
from trialwise.model.run_settings import RunSettings
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.comparison_findings import (
    ArmRun,
    ComparisonFinding,
    ComparisonQuestion,
    ComparisonVerdict,
    Question,
)
from trialwise.procedures.comparing.criterion_conclusion import fewest_discordant
from trialwise.procedures.comparing.run_comparison import compare_records, name_arms
from trialwise.runtime.deciding import decide_and_keep
from trialwise.runtime.interleaving import adrive_in_turn, drive_in_turn
from trialwise.runtime.looping import warn_inside_loop
from trialwise.runtime.preparing import options_of, prepare
from trialwise.runtime.result import Result
from trialwise.runtime.workspace import Workspace, open_service
from trialwise.stats.multiplicity import Correction

if TYPE_CHECKING:
    from datetime import datetime

    from trialwise.documents.blocks import Document
    from trialwise.engine.drivers.arms_driver import DrivenArm
    from trialwise.engine.run_parts import DriverSettings
    from trialwise.engine.run_state import RunOutcome
    from trialwise.procedures.comparing.score_lift import ScoreLift
    from trialwise.runtime.frames import ComparisonFrame, Library
    from trialwise.stores.runs import StoredRun


Run: TypeAlias = RunRecord | Result | str | Path
"""A run, or where it is kept."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Arms compared: the runs of the control and of the candidates, and what they show.

    >>> import trialwise as tw
    >>> criterion = tw.Criterion("answers", tw.contains("555"), at_least=0.9)
    >>> old = tw.Contract("sums", lambda question, seed: "555" if seed % 3 else "554", [criterion])
    >>> new = old.with_service(lambda question: "555")
    >>> comparison = compare(old, new, inputs=["15 * 37?"], trials=30, seed=1, store=None)
    >>> comparison.findings[0].contrast
    <Contrast.BETTER: 'better'>
    """

    verdict: ComparisonVerdict
    arms: tuple[ArmRun, ...]
    """The control first."""

    @property
    def control(self) -> RunRecord:
        """The run of the control."""
        return self.arms[0].record

    @property
    def candidate(self) -> RunRecord:
        """The run of the first candidate."""
        return self.arms[1].record

    @property
    def paths(self) -> tuple[Path | None, ...]:
        """The folders the runs are kept in, if they are kept."""
        return tuple(one.path for one in self.arms)

    @property
    def decision(self) -> Decision:
        """FAIL if any candidate fails a criterion, PASS if all pass everywhere."""
        return self.verdict.decision

    @property
    def findings(self) -> tuple[ComparisonFinding, ...]:
        """One for every criterion of every two arms that are compared."""
        return self.verdict.findings

    def build_page(self) -> Document:
        """Build the page that every report of the comparison is made from."""
        from trialwise.pages.comparison import build_comparison_page

        return build_comparison_page(self.verdict, self.arms)

    def score_lift(self, criterion: str, *, confidence: float = 0.95) -> ScoreLift:
        """Measure how much better the candidate's scores are, pair by pair.

        Args:
            criterion: Which both runs have; without scores, a pass counts 1 and a failure 0.
            confidence: The confidence of the interval.
        """
        from trialwise.procedures.comparing.score_lift import measure_lift

        return measure_lift(self.control, self.candidate, criterion, confidence=confidence)

    def show(self, *, stream: TextIO | None = None) -> None:
        """Print what the comparison concluded."""
        from trialwise.pages.comparison import summarize_comparison
        from trialwise.renderers.capabilities import read_capabilities
        from trialwise.renderers.document_text import render_document_text

        out = sys.stdout if stream is None else stream
        page = summarize_comparison(self.verdict, self.arms)
        out.write(render_document_text(page, read_capabilities(out)))

    def to_dict(self) -> dict[str, Any]:
        """Return the conclusion as plain values, fit for JSON."""
        from trialwise.pages.comparison_json import describe_comparison

        return describe_comparison(self.verdict, self.arms)

    def write(self, path: str | Path) -> Path:
        """Write a report: `.html`, `.md`, `.xml` (JUnit), `.json` or `.txt`.

        Args:
            path: Where; its ending says the format.
        """
        from trialwise.reports.comparison_reports import write_comparison

        return write_comparison(path, self.verdict, self.arms)

    def __repr__(self) -> str:
        return f"<Comparison {self.decision.value}: {self.verdict.statement.removesuffix('.')}>"

    def to_frame(self, kind: ComparisonFrame = "pairs", *, library: Library | None = None) -> Any:
        """Return a table for analysis in pandas or polars.

        Args:
            kind: "pairs", one row for each pair and criterion, or "findings".
            library: "pandas" or "polars"; None for pandas where it is installed, else polars.
        """
        from trialwise.runtime.frames import comparison_frame

        return comparison_frame(self, kind, library=library)

    def _repr_html_(self) -> str:
        from trialwise.pages.comparison import summarize_comparison
        from trialwise.renderers.html.page_frame import render_fragment

        return render_fragment(summarize_comparison(self.verdict, self.arms, is_pictured=True))


def compare(
    contract_a: Contract,
    contract_b: Contract,
    *,
    inputs: Any = None,
    labels: tuple[str, str] | None = None,
    question: Question | None = None,
    margin: float | None = None,
    guardrails: Mapping[str, float] | None = None,
    confidence: float = 0.95,
    options: RunOptions | None = None,
    store: str | Path | None = ".trialwise",
    progress: bool | None = None,
    redact: Callable[[str], str] | None = None,
    **settings: Unpack[RunSettings],
) -> Comparison:
    """Run two services on the same inputs and say which is better, if that can be said.

    Trial by trial the two get the same input and seed, in turn, so that what changes with time
    hits both alike. Every trial is run; the thresholds of the criteria play no part. A criterion
    is decided by McNemar's exact test on the pairs of one input and repetition.

    Args:
        contract_a: The control.
        contract_b: The candidate: often `contract_a.with_service(other)`.
        inputs: What to try both on, where the contracts do not say.
        labels: What to call the two; by default their contracts, where those have two names.
        question: "different", "better", "not-worse" or "equivalent"; unless given, "different", or
            "not-worse" where a margin is.
        margin: A difference of rates, such as 0.05: how much better, not worse, or alike.
        guardrails: Criteria that must not be worse, each by its own margin: {"safe": 0.02}.
        confidence: Every interval has it; 1 − confidence is the level of all tests together.
        options: How both runs are made; single settings given beside it prevail. `trials` is the
            number of pairs, 100 by default; budgets and rates hold for each run.
        store: The folder both runs are kept in, like any other; None keeps nothing.
        progress: Whether to show progress on standard error; None: where it is a terminal.
        redact: Takes secrets out of every text that is kept.
        settings: The fields of `RunOptions`. `correction` says how several criteria share the
            level of all tests: "holm" unless given, "bonferroni", "bh", "by" or "none".

    Raises:
        DesignRefused: So few pairs cannot tell anything apart; nothing was run.
        RunInterrupted: Somebody pressed Ctrl-C; its `result` holds what can be compared.
    """
    warn_inside_loop("compare", contract_a, contract_b)
    space = Workspace.open(store, progress=progress, redact=redact)
    # A comparison has p-values only; the question refuses other corrections.
    correction = cast("Correction", settings.pop("correction", "holm"))
    asked = ComparisonQuestion.of(
        question, margin, confidence=confidence, correction=correction, guardrails=guardrails or {}
    )
    contracts = _alike(contract_a, contract_b, inputs)
    plans = _plans(contracts, options_of(options, settings), asked)
    with _open_pair(contracts, plans, space) as pair:
        comparison = pair.decide(drive_in_turn(pair.sides), asked, labels)
    _check_interrupted(comparison)
    return comparison


async def acompare(
    contract_a: Contract,
    contract_b: Contract,
    *,
    inputs: Any = None,
    labels: tuple[str, str] | None = None,
    question: Question | None = None,
    margin: float | None = None,
    guardrails: Mapping[str, float] | None = None,
    confidence: float = 0.95,
    options: RunOptions | None = None,
    store: str | Path | None = ".trialwise",
    progress: bool | None = None,
    redact: Callable[[str], str] | None = None,
    **settings: Unpack[RunSettings],
) -> Comparison:
    """Compare two services in the running event loop, as `arun` runs one.

    Async services are called in the loop of the caller, so that they can use the caller's clients.
    The arguments are those of `compare`.

    Raises:
        DesignRefused: So few pairs cannot tell anything apart; nothing was run.
        RunInterrupted: Somebody pressed Ctrl-C; its `result` holds what can be compared.
    """
    from anyio import to_thread

    from trialwise.runtime.looping import let_cancellation_through

    space = Workspace.open(store, progress=progress, redact=redact)
    # A comparison has p-values only; the question refuses other corrections.
    correction = cast("Correction", settings.pop("correction", "holm"))
    asked = ComparisonQuestion.of(
        question, margin, confidence=confidence, correction=correction, guardrails=guardrails or {}
    )
    contracts = _alike(contract_a, contract_b, inputs)
    chosen = options_of(options, settings)
    # A plan may take a while, in which the loop must go on.
    plans = await to_thread.run_sync(lambda: _plans(contracts, chosen, asked))
    with _open_pair(contracts, plans, space, in_thread=True) as pair:
        comparison = pair.decide(await adrive_in_turn(pair.sides), asked, labels)
    if _is_interrupted(comparison):
        await let_cancellation_through()
    _check_interrupted(comparison)
    return comparison


def compare_runs(
    run_a: Run,
    run_b: Run,
    *,
    labels: tuple[str, str] | None = None,
    question: Question | None = None,
    margin: float | None = None,
    guardrails: Mapping[str, float] | None = None,
    confidence: float = 0.95,
    correction: Correction = "holm",
    store: str | Path = ".trialwise",
) -> Comparison:
    """Compare two runs that were made before.

    Their trials are paired by input and repetition. Runs that stopped because of what they saw are
    compared by a test that allows it, where both had one order, and not told apart otherwise; runs
    on different inputs are compared as a whole, and told apart only where both claim to speak of
    one population. `compare` makes two runs that need none of this.

    Args:
        run_a: The control: a result, a record, or the name or folder of a stored run.
        run_b: The candidate.
        labels: What to call the two; by default their contracts, where those have two names.
        question: "different", "better", "not-worse" or "equivalent"; unless given, "different", or
            "not-worse" where a margin is.
        margin: A difference of rates, such as 0.05: how much better, not worse, or alike.
        guardrails: Criteria that must not be worse, each by its own margin: {"safe": 0.02}.
        confidence: Every interval has it; 1 − confidence is the level of all tests together.
        correction: How several criteria share that level.
        store: The folder runs are kept in.

    Raises:
        RunNotFound: A run is not there or has no verdict.
        InvalidArgument: The runs make different claims or are analysed differently.
    """
    asked = ComparisonQuestion.of(
        question, margin, confidence=confidence, correction=correction, guardrails=guardrails or {}
    )
    (control, first), (candidate, second) = (_open_run(one, Path(store)) for one in (run_a, run_b))
    return _conclude((control, candidate), (first, second), asked, labels)


def _conclude(
    records: Sequence[RunRecord],
    paths: Sequence[Path | None],
    question: ComparisonQuestion,
    labels: Sequence[str] | None,
) -> Comparison:
    arms = tuple(
        replace(arm, path=path) for arm, path in zip(name_arms(records, labels), paths, strict=True)
    )
    return Comparison(compare_records(arms, question), arms)


def _open_run(run: Run, store: Path) -> tuple[RunRecord, Path | None]:
    if isinstance(run, Result):
        return run.record, run.path
    if isinstance(run, RunRecord):
        return run, None
    from trialwise.stores.runs import RunStore

    stored = RunStore(store).open(run)
    return stored.record(), stored.path


# --- Before the first trial -------------------------------------------------------------------


def _alike(contract_a: Contract, contract_b: Contract, inputs: Any) -> tuple[Contract, Contract]:
    """Return both contracts with the same inputs, and without sizes of their own."""
    given = inputs
    if given is None:
        given = contract_a.sampling if contract_a.samplings else contract_b.sampling
    if given is None:
        raise InvalidArgument("inputs", None, "be given: services are compared on inputs")
    if inputs is None and contract_a.samplings and contract_b.samplings:
        _check_inputs(contract_a, contract_b)
    first, second = _neutral(contract_a.with_inputs(given)), _neutral(contract_b.with_inputs(given))
    _check_criteria(first, second)
    return first, second


def _check_inputs(contract_a: Contract, contract_b: Contract) -> None:
    from trialwise.model.fingerprint import sampling_fingerprint

    ours, theirs = (
        {name: sampling_fingerprint(one) for name, one in contract.samplings.items()}
        for contract in (contract_a, contract_b)
    )
    if ours != theirs:
        allowed = "be the same for both, or be given to `compare`"
        raise InvalidArgument("inputs", sorted({*ours} | {*theirs}), allowed)


def _neutral(contract: Contract) -> Contract:
    """Return the contract with every criterion on every pair, and nothing that ends a run early."""
    criteria = tuple(replace(one, trials=None, max_trials=None) for one in contract.criteria)
    return replace(contract, criteria=criteria, latency=None)


def _check_criteria(contract_a: Contract, contract_b: Contract) -> None:
    from trialwise.checks.criterion_scopes import scopes_of

    ours, theirs = scopes_of(contract_a), scopes_of(contract_b)
    shared = ours.keys() & theirs.keys()
    if not shared:
        allowed = f"share a criterion with the other's: {', '.join(theirs)}"
        raise InvalidArgument("criteria", list(ours), allowed)
    changed = sorted(name for name in shared if ours[name].structure != theirs[name].structure)
    if changed:
        allowed = "ask the same of both, or have another name"
        raise InvalidArgument("criteria", changed, allowed)
    if contract_a.claim != contract_b.claim:
        claims = [str(one.claim.population) for one in (contract_a, contract_b)]
        raise InvalidArgument("claim", claims, "be one for both contracts")


def _plans(
    contracts: tuple[Contract, Contract], options: RunOptions, question: ComparisonQuestion
) -> tuple[Plan, Plan]:
    """Two plans of one seed, so of one order: all of it is run, nothing is decided by it."""
    if options.executor != "local":
        # Two runs take turns, trial by trial, so that whatever changes meanwhile meets both.
        allowed = (
            "be local in a comparison, whose two services take turns in one process: leave it out, "
            "and use `concurrency` for services that wait"
        )
        raise InvalidArgument("executor", options.executor, allowed)
    for name in ("max_trials", "baseline", "horizon"):
        if getattr(options, name) is not None:
            allowed = "be left out: a comparison has a fixed size and needs no baseline"
            raise InvalidArgument(name, getattr(options, name), allowed)
    nowhere = Path("baselines")  # no baseline takes part
    first = prepare(contracts[0], options, nowhere, measuring=True)
    second = prepare(contracts[1], options, nowhere, seed=first.seed, measuring=True)
    _check_size(first, second, question)
    return first, second


def _check_size(first: Plan, second: Plan, question: ComparisonQuestion) -> None:
    theirs = {one.criterion for one in second.criteria}
    shared = [one for one in first.criteria if one.criterion in theirs]
    fewest = fewest_discordant(question.alpha, question.correction, len(shared))
    reasons = tuple(
        f"{one.criterion}: {one.trials} pairs cannot tell anything apart at confidence "
        f"{question.confidence:g} over {len(shared)} criteria: even if the candidate won them "
        f"all, chance would do as well. At least {fewest} pairs are needed, or smoke intent"
        for one in shared
        if one.trials < fewest
    )
    if reasons and first.intent is Intent.VERIFICATION:
        raise DesignRefused(reasons)


# --- The two runs -----------------------------------------------------------------------------


def _keep(stack: ExitStack, folder: Path | None, plan: Plan, now: datetime) -> StoredRun | None:
    if folder is None:
        return None
    from trialwise.stores.runs import RunStore

    return stack.enter_context(RunStore(folder).create(plan, now))


class _Pair(NamedTuple):
    """The two runs of a comparison, with their journals open."""

    sides: tuple[DrivenArm, DrivenArm]
    kept: tuple[StoredRun | None, StoredRun | None]
    started_at: datetime

    def decide(
        self,
        outcomes: Sequence[RunOutcome],
        question: ComparisonQuestion,
        labels: tuple[str, str] | None,
    ) -> Comparison:
        """Keep both runs and compare them."""
        first, second = (
            decide_and_keep(side.plan, outcome, stored, started_at=self.started_at)
            for side, outcome, stored in zip(self.sides, outcomes, self.kept, strict=True)
        )
        paths = tuple(_path(one) for one in self.kept)
        return _conclude((first, second), paths, question, labels)


@contextmanager
def _open_pair(
    contracts: tuple[Contract, Contract],
    plans: tuple[Plan, Plan],
    space: Workspace,
    *,
    in_thread: bool = False,
) -> Iterator[_Pair]:
    services = [
        open_service(contract, plan.options, in_thread=in_thread)
        for contract, plan in zip(contracts, plans, strict=True)
    ]
    with ExitStack() as stack:
        stack.callback(space.close_listeners)
        now = space.clock.now()
        kept = _keep(stack, space.store, plans[0], now), _keep(stack, space.store, plans[1], now)

        def side(place: int) -> DrivenArm:
            from trialwise.engine.drivers.arms_driver import DrivenArm

            settings = space.driver_arguments(kept[place])
            if place == 1:
                # The two advance together, so that the progress of one is that of both.
                settings["listener"] = None
            return DrivenArm(
                plan=plans[place],
                contract=contracts[place],
                service=services[place],
                settings=cast("DriverSettings", settings),
            )

        yield _Pair((side(0), side(1)), kept, now)


def _is_interrupted(comparison: Comparison) -> bool:
    return any(one.record.verdict.stop is StopReason.INTERRUPTED for one in comparison.arms)


def _check_interrupted(comparison: Comparison) -> None:
    if _is_interrupted(comparison):
        pairs = min(len(one.record.trials) for one in comparison.arms)
        message = f"interrupted after {pairs} pairs; what is complete is compared in `result`"
        raise RunInterrupted(message, comparison)


def _path(stored: StoredRun | None) -> Path | None:
    return None if stored is None else stored.path
