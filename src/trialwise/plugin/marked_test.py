"""The call of one marked test, and of contracts inside a test: verdicts, as pytest reports them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import trialwise
from trialwise.checks.criterion_scopes import scopes_of
from trialwise.engine.ports import SystemClock
from trialwise.engine.run_state import RunOutcome
from trialwise.errors import TrialwiseError
from trialwise.model import Contract, Decision, RunRecord
from trialwise.model.codec import to_plain
from trialwise.plugin import other_plugins, reporting
from trialwise.plugin.admission import CASE, Case, admit, find_earlier
from trialwise.plugin.marked_runs import TestRun
from trialwise.plugin.reasons import Reasons
from trialwise.plugin.session import SessionBudget, Settings
from trialwise.plugin.trial_fixture import UnknownCriterion
from trialwise.plugin.trial_items import TrialItem
from trialwise.runtime.answers import Comparison
from trialwise.runtime.earlier_runs import EarlierRun, EarlierRuns
from trialwise.runtime.measuring import Measurement, check_complete, write_baseline
from trialwise.runtime.result import Result
from trialwise.runtime.workspace import decide_and_keep
from trialwise.stores.baselines import BaselineStore
from trialwise.stores.runs import StoredRun

RESULTS = pytest.StashKey[list[dict[str, Any]]]()
"""What the runs of a test came to, as plain values: workers send them to the session's summary."""


@dataclass
class MarkedTest:
    """A marked test while it runs."""

    item: pytest.Function
    settings: Settings
    budget: SessionBudget
    """What is left of the session's budget."""
    earlier: EarlierRuns | None
    """The runs of earlier sessions; None where nothing is resumed."""
    reasons: Reasons = field(default_factory=Reasons)
    run: TestRun | None = None

    def call(self) -> None:
        """Run the trials and conclude.

        Raises:
            Judged: A FAIL, or an INCONCLUSIVE that counts as one.
            pytest.skip.Exception: The first trial was skipped, or INCONCLUSIVE is to be a skip.
        """
        other_plugins.stop_timer(self.item)
        try:
            # A test that was not collected before, such as one run by its name, is planned now.
            for error in admit([self.item], self.settings):
                raise pytest.UsageError(error)
            self._call(self.item.stash[CASE])
        except UnknownCriterion:  # shown where it is
            raise
        except TrialwiseError as error:
            pytest.fail(str(error), pytrace=False)

    def _call(self, case: Case) -> None:
        earlier = find_earlier(case, self.settings, self.earlier)
        if earlier.finished is not None:
            path = self.settings.store / "runs" / earlier.finished.run_id
            where = note_result(self.item, earlier.finished, path, note="finished before, kept")
            self._raise_unless_passed(earlier.finished, where)
            return
        folder = self.settings.store
        self.run = TestRun(self.item, case, earlier, self.budget, folder, self.reasons)
        if self.settings.measure:
            self._measure(case, earlier, self.run)
            return
        changed = "" if earlier.refused is None else earlier.refused.changed
        note = f"not resumed, since the test has changed: {changed}" if changed else ""

        def conclude(outcome: RunOutcome, stored: StoredRun) -> tuple[RunRecord, str]:
            record = decide_and_keep(earlier.plan, outcome, stored)
            self.reasons.note_kept(record)
            # Noted here: after an interrupt nobody comes back to do so.
            return record, note_result(self.item, record, stored.path, note=note)

        self._raise_unless_passed(*self.run.go(conclude))

    def raise_leftovers(self) -> None:
        """Raise what went wrong in tearing trials down: an error beside the verdict, once."""
        if self.run is None or not self.run.teardown_errors:
            return
        first, *others = self.run.teardown_errors
        if others:
            first.add_note(f"and in tearing down {len(others)} other trials")
        raise first

    def _measure(self, case: Case, earlier: EarlierRun, run: TestRun) -> None:
        # Found out before the trials are paid for.
        BaselineStore(self.settings.baselines).check_writable(case.contract.name)
        scopes = scopes_of(case.contract)

        def conclude(outcome: RunOutcome, stored: StoredRun) -> Measurement:
            resume_with = "`pytest --trialwise-measure --trialwise-resume`"
            check_complete(outcome, stored, resume_with=resume_with)
            return write_baseline(
                earlier.plan,
                outcome.trials,
                stored,
                scopes=scopes,
                baselines=self.settings.baselines,
                created_at=SystemClock().now(),
            )

        done = run.go(conclude)
        found = done.baseline.criteria.items()
        baseline = show_path(done.path, self.item)
        rates = {name: f"{one.passed} of {one.trials}" for name, one in found}
        said = {"baseline": baseline, "rates": rates, "warnings": list(done.warnings)}
        properties = [("trialwise.baseline", baseline)]
        _note(self.item, properties, {"contract": case.contract.name, **said})

    def _raise_unless_passed(self, record: RunRecord, where: str) -> None:
        if record.verdict.decision is not Decision.PASS:
            # What the trials of the tracebacks printed and logged.
            for trial, sections in sorted(self.reasons.sections.items()):
                for when, key, content in sections:
                    self.item.add_report_section(when, f"{key} of trial {trial}", content)
            raise_verdict(self.item, record, self.reasons, where, self.settings)


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
    where = show_path(path, item)
    said = {"run_id": record.run_id, "run": where, "note": note}
    said["verdict"] = to_plain(record.verdict)
    properties = reporting.properties_of(record, where, prefix=prefix)
    _note(item, properties, {"contract": record.plan.contract, **said})
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
    where, verdict = show_path(path, item), comparison.verdict
    name = " / ".join(one.label for one in comparison.arms)
    said = {"decision": verdict.decision.value, "statement": verdict.statement, "comparison": where}
    properties = [(f"trialwise.{name}.{key}", value) for key, value in said.items()]
    _note(item, properties, {"contract": name, **said})
    return where


def _note(
    item: pytest.Item, properties: Sequence[tuple[str, object]], result: dict[str, Any]
) -> None:
    host = item.host if isinstance(item, TrialItem) else item
    host.user_properties.extend(properties)
    host.stash.setdefault(RESULTS, []).append(result)


def raise_verdict(
    item: pytest.Item, record: RunRecord, reasons: Reasons, where: str, settings: Settings
) -> None:
    """Report a verdict other than PASS to pytest, as the session's settings say.

    Raises:
        Judged: A FAIL, or an INCONCLUSIVE that counts as one.
        pytest.skip.Exception: INCONCLUSIVE is to be a skip.
    """
    text = reporting.headline(record.verdict)
    if not _excuses(record.verdict.decision, text, settings):
        raise reporting.Judged(text, reporting.verdict_repr(record, reasons, item, where))


def _excuses(decision: Decision | None, text: str, settings: Settings) -> bool:
    """Return whether a verdict passes a test, as the session's settings say.

    Raises:
        pytest.skip.Exception: It is to be a skip.
        pytest.xfail.Exception: It is to be an expected failure.
    """
    if decision is Decision.INCONCLUSIVE and settings.inconclusive == "skip":
        raise pytest.skip.Exception(text, _use_item_location=True)
    if decision is Decision.INCONCLUSIVE and settings.inconclusive == "xfail":
        pytest.xfail(text)
    may_pass = decision is Decision.INCONCLUSIVE and settings.inconclusive == "pass"
    return may_pass or decision is Decision.PASS


def show_path(path: Path, item: pytest.Item) -> str:
    """Return a path as the rest of the report shows paths."""
    root = item.config.invocation_params.dir
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


# --- The `trialwise` fixture: contracts built and run inside a test, as part of its session -------

#: Settings of a session that are a run's own too.
_OF_A_RUN = ("trials", "max_trials", "intent", "rule", "seed")


@dataclass
class Workbench:
    """trialwise inside a test: every public name of it, and runs that belong to the session.

    Runs are kept where the session keeps its own, draw on its budget and stand in its summary.
    """

    _item: pytest.Item
    _settings: Settings
    _budget: SessionBudget

    def __getattr__(self, name: str) -> Any:
        return getattr(trialwise, name)

    def run(self, contract: Contract, **arguments: Any) -> Result:
        """Run and decide a contract; what the verdict means is left to the test.

        Args:
            contract: What is promised, of which service.
            arguments: As of `trialwise.run`.
        """
        return self._run(contract, arguments)[0]

    def verify(self, contract: Contract, **arguments: Any) -> Result:
        """Run a contract and fail the test unless it passes.

        An INCONCLUSIVE one is what `--trialwise-inconclusive` says.
        """
        result, where = self._run(contract, arguments)
        raise_verdict(self._item, result.record, Reasons(), where, self._settings)
        return result

    def compare(self, control: Contract, *candidates: Contract, **arguments: Any) -> Comparison:
        """Compare services in turn; what the verdict means is left to the test.

        Args:
            control: What the candidates are compared with.
            candidates: One or more.
            arguments: As of `trialwise.compare`.
        """
        return self._compare((control, *candidates), arguments)[0]

    def verify_comparison(
        self, control: Contract, *candidates: Contract, **arguments: Any
    ) -> Comparison:
        """Compare services and fail the test unless the candidates pass.

        An INCONCLUSIVE comparison is what `--trialwise-inconclusive` says.
        """
        found, where = self._compare((control, *candidates), arguments)
        text = f"{found.decision.value}: {found.verdict.statement}"
        if not (found.passed or _excuses(found.decision, text, self._settings)):
            shown = reporting.comparison_repr(found, text, self._item, where)
            raise reporting.Judged(text, shown)
        return found

    def _compare(
        self, contracts: Sequence[Contract], arguments: dict[str, Any]
    ) -> tuple[Comparison, str]:
        given = self._arguments(arguments)
        del given["baselines"]
        found = trialwise.compare(*contracts, **given)
        for one in found.arms:
            spending = one.record.verdict.spending
            self._budget.pay(spending.paid_usd, spending.trials)
        assert found.path is not None
        return found, note_comparison(self._item, found, found.path)

    def _run(self, contract: Contract, arguments: dict[str, Any]) -> tuple[Result, str]:
        result = trialwise.run(contract, **self._arguments(arguments))
        spending = result.verdict.spending
        self._budget.pay(spending.paid_usd, spending.trials)
        assert result.path is not None
        where = note_result(self._item, result.record, result.path, prefix=contract.name)
        return result, where

    def _arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        left = self._budget.remaining()
        if left is None:
            pytest.fail("the session's budget is used up: nothing was run", pytrace=False)
        settings = self._settings
        folders = {"store": settings.store, "baselines": settings.baselines}
        merged = settings.merge(given, _OF_A_RUN)
        return {**folders, "progress": False, "budget": left, **merged}
