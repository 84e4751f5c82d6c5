"""The call of one marked test: its trials, its verdict, and how pytest reports that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pytest

from trialwise.engine.attempt import fresh_copy
from trialwise.engine.run_state import TrialStart
from trialwise.errors import TrialwiseError
from trialwise.model.claim import Input
from trialwise.model.codec import to_plain
from trialwise.model.plan import Plan
from trialwise.model.run import RunRecord
from trialwise.model.trial import CheckResult
from trialwise.model.verdict import Decision
from trialwise.plugin import other_plugins
from trialwise.plugin.admission import CASE, Case, admit, find_earlier
from trialwise.plugin.one_by_one import OneByOne
from trialwise.plugin.pytest_driver import TestRun
from trialwise.plugin.reasons import Ending, Reasons, show_place
from trialwise.plugin.reporting import Judged, headline, properties_of, verdict_repr
from trialwise.plugin.session_budget import SessionBudget
from trialwise.plugin.settings import Settings
from trialwise.plugin.trial_fixture import TrialHandle, UnknownCriterion
from trialwise.plugin.trial_items import TrialItem, copy_item
from trialwise.runtime.earlier_runs import EarlierRun, EarlierRuns
from trialwise.runtime.workspace import decide_and_keep

if TYPE_CHECKING:
    from trialwise.plugin.worker_run import WorkerRun
    from trialwise.runtime.answers import Comparison

    AnyRun: TypeAlias = TestRun | WorkerRun

T = TypeVar("T")

RESULTS = pytest.StashKey[list[dict[str, Any]]]()
"""What the runs of a test came to, as plain values: workers send them to the session's summary."""


class CheckFailed(AssertionError):
    """A check that does not hold, shown like an assertion at its place."""

    # Tracebacks would spell out where it is defined, which nobody needs to know.
    __module__ = "builtins"


class MarkedTest:
    """A marked test while it runs.

    Args:
        item: The test.
        settings: The session's.
        budget: The session's budget.
        earlier: The runs of earlier sessions; None where nothing is resumed.
    """

    def __init__(
        self,
        item: pytest.Function,
        settings: Settings,
        budget: SessionBudget,
        earlier: EarlierRuns | None,
    ) -> None:
        self._item = item
        self._settings = settings
        self._budget = budget
        self._earlier = earlier
        self._run: AnyRun | None = None
        self._criteria: tuple[str, ...] = ()
        self._inputs: Sequence[Input] = ()
        self._reseed = other_plugins.reseeding_of(item.config)
        self._where = ""
        self.reasons = Reasons()

    def call(self) -> None:
        """Run the trials and conclude.

        Raises:
            Judged: A FAIL, or an INCONCLUSIVE that counts as one.
            pytest.skip.Exception: The first trial was skipped, or INCONCLUSIVE is to be a skip.
        """
        other_plugins.stop_timer(self._item)
        try:
            self._call()
        except UnknownCriterion:  # shown where it is
            raise
        except TrialwiseError as error:
            pytest.fail(str(error), pytrace=False)

    def _call(self) -> None:
        case = self._case()
        self._criteria = tuple(one.name for one in case.contract.criteria)
        (sampling,) = case.contract.samplings.values()
        self._inputs = sampling.inputs
        earlier = find_earlier(case, self._settings, self._earlier)
        if earlier.finished is not None:
            path = self._settings.store / "runs" / earlier.finished.run_id
            note = "finished before, kept"
            self._where = note_result(self._item, earlier.finished, path, note=note)
            self._raise_unless_passed(earlier.finished)
            return
        self._run = self._open_run(case, earlier)
        if self._settings.measure:
            self._measure(case, earlier.plan)
            return
        note = ""
        if earlier.refused is not None:
            note = f"not resumed, since the test has changed: {earlier.refused.changed}"

        def conclude(run: AnyRun) -> RunRecord:
            record = decide_and_keep(earlier.plan, run.outcome, run.stored_run)
            self.reasons.note_kept(record)
            self._where = note_result(self._item, record, run.path, note=note)
            return record

        self._raise_unless_passed(self._through(case, conclude))

    def _open_run(self, case: Case, earlier: EarlierRun) -> AnyRun:
        resume = None if earlier.stored is None else earlier.stored.run_id
        folder, budget = self._settings.store, self._budget
        if case.options.executor != "local":
            from trialwise.plugin.worker_run import WorkerRun

            return WorkerRun(
                self._item,
                earlier.plan,
                case.contract,
                budget=budget,
                folder=folder,
                resume=resume,
            )
        session = self._item.session
        return TestRun(
            earlier.plan,
            budget=budget,
            folder=folder,
            resume=resume,
            asked_to_stop=lambda: session.shouldfail or session.shouldstop,
        )

    def raise_leftovers(self) -> None:
        """Raise what went wrong in tearing trials down: an error beside the verdict, once."""
        run = self._run
        if run is None or run.teardown_error is None:
            return
        error = run.teardown_error.value
        if run.teardown_failures > 1:
            error.add_note(f"and in tearing down {run.teardown_failures - 1} other trials")
        raise error

    def _case(self) -> Case:
        """Return the test's plan, which is made now if the test was not collected before."""
        for error in admit([self._item], self._settings):
            raise pytest.UsageError(error)
        return self._item.stash[CASE]

    def _through(self, case: Case, conclude: Callable[[AnyRun], T]) -> T:
        """Run the trials, one by one, side by side or in workers, and conclude."""
        run = self._run
        if not isinstance(run, TestRun):
            assert run is not None
            return run.go(conclude)
        if case.options.concurrency == 1:
            return run.go(OneByOne(self._make), conclude)
        from trialwise.plugin.side_by_side import SideBySide

        return run.go(SideBySide(self._item, self._make, self.reasons), conclude)

    def _make(self, start: TrialStart) -> TrialItem:
        given = self._inputs[start.position]
        handle = TrialHandle(
            index=start.index,
            input=fresh_copy(given.value),
            expected=fresh_copy(given.expected),
            seed=start.seed,
            criteria=self._criteria,
        )
        item = copy_item(self._item, handle, reseed=self._reseed)
        handle.on_failed = partial(self._failed_check, item)
        return item

    def _failed_check(
        self, item: TrialItem, name: str, result: CheckResult, frame: FrameType
    ) -> str:
        """Show a failed check like an assertion, while its frame is there."""
        path = Path(frame.f_code.co_filename)
        where = show_place(path, frame.f_lineno, item.config.rootpath)

        def write() -> Any:
            error = CheckFailed(f"{name}: {result.explanation}")
            trace = TracebackType(None, frame, frame.f_lasti, frame.f_lineno)
            excinfo = pytest.ExceptionInfo.from_exception(error.with_traceback(trace))
            return item.repr_failure(excinfo)

        self.reasons.note(Ending(result=result, where=where), item.trial.index, write)
        return where

    def _measure(self, case: Case, plan: Plan) -> None:
        from trialwise.checks.criterion_scopes import scopes_of
        from trialwise.engine.ports import SystemClock
        from trialwise.runtime.measuring import Measurement, check_complete, write_baseline
        from trialwise.stores.baselines import BaselineStore

        # Found out before the trials are paid for.
        BaselineStore(self._settings.baselines).check_writable(case.contract.name)
        scopes = scopes_of(case.contract)

        def conclude(run: AnyRun) -> Measurement:
            outcome, stored = run.outcome, run.stored_run
            resume_with = "`pytest --trialwise-measure --trialwise-resume`"
            check_complete(outcome, stored, resume_with=resume_with)
            return write_baseline(
                plan,
                outcome.trials,
                stored,
                scopes=scopes,
                baselines=self._settings.baselines,
                created_at=SystemClock().now(),
            )

        done = self._through(case, conclude)
        rates = {
            name: f"{found.passed} of {found.trials}"
            for name, found in done.baseline.criteria.items()
        }
        baseline = shown_path(done.path, self._item)
        self._item.user_properties.append(("trialwise.baseline", baseline))
        self._item.stash[RESULTS] = [
            {
                "contract": case.contract.name,
                "baseline": baseline,
                "rates": rates,
                "warnings": list(done.warnings),
            }
        ]

    def _raise_unless_passed(self, record: RunRecord) -> None:
        if record.verdict.decision is not Decision.PASS:
            # What the trials of the tracebacks printed and logged.
            for trial, sections in sorted(self.reasons.sections.items()):
                for when, key, content in sections:
                    self._item.add_report_section(when, f"{key} of trial {trial}", content)
            raise_verdict(self._item, record, self.reasons, self._where, self._settings)


def note_result(
    item: pytest.Item, record: RunRecord, path: Path, *, note: str = "", prefix: str = ""
) -> str:
    """Note what a run of a test came to, for pytest's reports and the session's summary.

    Args:
        item: The test.
        record: What was run.
        path: Where it is kept.
        note: What a reader should know of how it came about.
        prefix: Tells the runs of one test apart.

    Returns:
        The path as reports show it.
    """
    where = shown_path(path, item)
    host = item.host if isinstance(item, TrialItem) else item
    host.user_properties.extend(properties_of(record, where, prefix=prefix))
    host.stash.setdefault(RESULTS, []).append(
        {
            "contract": record.plan.contract,
            "run_id": record.run_id,
            "run": where,
            "verdict": to_plain(record.verdict),
            "note": note,
        }
    )
    return where


def note_comparison(item: pytest.Item, comparison: Comparison, path: Path) -> str:
    """Record the result of a comparison in a test for pytest's reports and the summary.

    Args:
        item: The test.
        comparison: What was compared.
        path: Where it is kept.

    Returns:
        The path as reports show it.
    """
    where, verdict = shown_path(path, item), comparison.verdict
    host = item.host if isinstance(item, TrialItem) else item
    name = " / ".join(one.label for one in comparison.arms)
    said = {
        "decision": verdict.decision.value,
        "statement": verdict.statement,
        "comparison": where,
    }
    host.user_properties.extend((f"trialwise.{name}.{key}", value) for key, value in said.items())
    host.stash.setdefault(RESULTS, []).append({"contract": name, **said})
    return where


def raise_verdict(
    item: pytest.Item, record: RunRecord, reasons: Reasons, where: str, settings: Settings
) -> None:
    """Report a verdict other than PASS to pytest, as the session's settings say.

    Raises:
        Judged: A FAIL, or an INCONCLUSIVE that counts as one.
        pytest.skip.Exception: INCONCLUSIVE is to be a skip.
    """
    text = headline(record.verdict)
    if record.verdict.decision is Decision.INCONCLUSIVE and excuses(text, settings):
        return
    raise Judged(text, verdict_repr(record, reasons, item, where))


def excuses(text: str, settings: Settings) -> bool:
    """Return whether an INCONCLUSIVE verdict passes a test, as the session's settings say.

    Raises:
        pytest.skip.Exception: It is to be a skip.
        pytest.xfail.Exception: It is to be an expected failure.
    """
    if settings.inconclusive == "skip":
        raise pytest.skip.Exception(text, _use_item_location=True)
    if settings.inconclusive == "xfail":
        pytest.xfail(text)
    return settings.inconclusive == "pass"


def shown_path(path: Path, item: pytest.Item) -> str:
    """Return a path as the rest of the report shows paths."""
    root = item.config.invocation_params.dir
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
