"""Which earlier run serves again: one policy for the command line, Python and pytest.

The newest run of the contract counts, or the one that is named. If it is unfinished, it is resumed.
If it is finished and belongs to the session that was stopped, its record is kept and nothing is
run. Both need the same plan: if the plan differs, the trials answer another question, and the
earlier run is refused with what differs. A finished run of an older session serves for nothing: a
suite that runs again is to ask the service again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from trialwise.decimals import as_written
from trialwise.errors import RunNotFound, TrialwiseError
from trialwise.model.evidence import Threshold
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.pages.run_rules import Expense
from trialwise.procedures.base import has_agreeing_interval
from trialwise.procedures.chances import OpenRun, join_errors, word_joint_errors
from trialwise.stats.result_types import Decision
from trialwise.stores.run_files import PlanChanged
from trialwise.stores.runs import RunStore, StoredRun

if TYPE_CHECKING:
    from trialwise.model.run import RunRecord, RunSummary


MakePlan: TypeAlias = Callable[[datetime | None, int | None], Plan]
"""Plans a contract as of a date and with a seed; None for now and a new seed."""


class EarlierRun(NamedTuple):
    """What an earlier run contributes to this one."""

    plan: Plan
    """What to run: the resumed run's plan, or a new one."""
    stored: StoredRun | None = None
    """The unfinished run to resume."""
    finished: RunRecord | None = None
    """The finished run to keep instead of a new one."""
    refused: PlanChanged | None = None
    """Why the earlier run does not serve."""


class EarlierRuns:
    """The runs of a store, listed once, when the first contract asks.

    Args:
        store: The folder that runs are kept in.
        named: The one run that may be resumed; None for the newest of each contract.
    """

    def __init__(self, store: Path, named: str | None = None) -> None:
        self._runs = RunStore(store)
        self._named = named
        self._kept: list[RunSummary] | None = None

    def find(self, contract: str, make_plan: MakePlan, *, purpose: str = "test") -> EarlierRun:
        """Return what the runs of a contract contribute.

        Args:
            contract: Its name.
            make_plan: Plans it.
            purpose: "test", or "measure" where a baseline is measured.

        Raises:
            RunNotFound: The named run is not there.
        """
        stored = self._newest(contract, purpose)
        if stored is None or not (stored.is_unfinished or self._was_stopped(stored.session)):
            return EarlierRun(make_plan(None, None))
        # Conditions such as the day of the week are those of the first start, and so is the seed.
        plan = make_plan(stored.started_at, stored.plan.seed)
        try:
            stored.check_plan(plan)
        except PlanChanged as refused:
            return EarlierRun(make_plan(None, None), refused=refused)
        if stored.is_unfinished:
            return EarlierRun(plan, stored=stored)
        return EarlierRun(plan, finished=stored.record())

    def _newest(self, contract: str, purpose: str) -> StoredRun | None:
        if self._named is not None:
            found = self._runs.open(self._named)
            if found.comparison:
                raise RunNotFound(
                    f"{self._named} is an arm of the comparison {found.comparison}: "
                    f"`trialwise compare --resume {found.comparison}` continues it"
                )
            return found if found.plan.contract == contract else None
        for summary in self._list():
            # The arms of a comparison go on with it, and never alone. What was scored has no calls.
            if summary.contract != contract or summary.comparison or summary.scored:
                continue
            found = self._runs.open(summary.run_id)
            if found.plan.purpose == purpose:
                return found
        return None

    def _was_stopped(self, session: str) -> bool:
        """Return whether a session left a run unfinished, or is the newest one."""
        kept = self._list()
        stopped = {one.session for one in kept if one.is_unfinished or one is kept[0]}
        return session in stopped - {""}

    def _list(self) -> list[RunSummary]:
        if self._kept is None:
            self._kept = [one for one in self._runs.list() if not one.damage]
        return self._kept


def find_earlier(
    runs: EarlierRuns | None, contract: str, make_plan: MakePlan, purpose: str, store: Path | None
) -> EarlierRun:
    """Return what earlier runs contribute, with what the plan is worth together with them.

    Args:
        runs: Those that may be resumed; None where nothing is resumed.
        contract: The contract's name.
        make_plan: Plans it.
        purpose: "test" or "measure".
        store: Where INCONCLUSIVE runs of the same question are looked for; None for nowhere.
    """
    if runs is None:
        found = EarlierRun(make_plan(None, None))
    else:
        found = runs.find(contract, make_plan, purpose=purpose)
    # A run that is finished keeps what it said; a measurement decides nothing.
    if store is None or purpose != "test" or found.finished is not None:
        return found
    until = None if found.stored is None else found.stored.started_at
    return found._replace(plan=state_joint_errors(found.plan, store, until=until))


def list_notes(plan: Plan, store: Path) -> list[str]:
    """List what the newest run of a contract makes worth knowing before the next one."""
    named: dict[str, list[str]] = {}
    for one in plan.criteria:
        named.setdefault(word_joint_errors(one), []).append(one.criterion)
    joint = [f"{', '.join(names)}: {note}" for note, names in named.items() if note]
    return [note for note in (note_old_margin(plan, store), *joint) if note]


def note_old_margin(plan: Plan, store: Path) -> str:
    """Say that an earlier version decided this contract with a margin that nobody had written.

    Args:
        plan: The contract's, as it is planned now.
        store: Where runs are kept.

    Returns:
        A sentence, or nothing where the newest run of the contract had no such margin.
    """
    try:
        earlier = RunStore(store).latest(plan.contract).plan
    except TrialwiseError:
        return ""
    planned = {one.criterion: one for one in earlier.criteria}
    names = [
        one.criterion
        for one in plan.criteria
        if one.counting.stops_early
        and one.threshold.alternative_rate == one.threshold.required_rate
        and (before := planned.get(one.criterion)) is not None
        and before.counting.stops_early
        and not has_agreeing_interval(before)
        and _has_old_margin(before.threshold)
    ]
    if not names:
        return ""
    return (
        f"{', '.join(names)}: until 0.1 `at_least` had a margin of 10 points that nobody wrote, "
        "and a PASS showed no more than that. Now a PASS shows the required rate itself. To keep "
        "the old question, write `margin: 10%` and `power: 80%`."
    )


def state_joint_errors(plan: Plan, store: Path, *, until: datetime | None = None) -> Plan:
    """Return the plan with what each criterion is worth together with the runs that left it open.

    The runs of the contract are followed back, newest first, up to the one that decided the
    criterion or asked another question of it. A run without a measured trial has spent nothing.

    Args:
        plan: The contract's, as it is planned now.
        store: Where runs are kept.
        until: When the run started, where it is resumed: only earlier ones count.
    """
    following = {one.criterion for one in plan.criteria if one.alpha is not None}
    before: dict[str, list[OpenRun]] = {}
    for stored in RunStore(store).decided(plan.contract):
        if not following:
            break
        try:
            if stored.scored or (until is not None and stored.started_at >= until):
                continue
            earlier = stored.verdict()
        except TrialwiseError:
            break
        # A measurement asks nothing, so that it neither answers a question nor leaves one open.
        if earlier.plan is None or earlier.plan.purpose != plan.purpose:
            continue
        found = {one.criterion: one for one in earlier.findings}
        for name in sorted(following):
            finding = found.get(name)
            is_open = finding is not None and finding.decision is Decision.INCONCLUSIVE
            if not is_open or _question(plan, name) != _question(earlier.plan, name):
                following.discard(name)
            elif finding is not None and finding.all_trials.trials:
                # A run that was cut short spent less of its error than its design allows.
                is_whole = finding.stop is None or not finding.stop.is_premature
                run = OpenRun(earlier.run_id, finding.plan, is_whole)
                before.setdefault(name, []).append(run)
    if not before:
        return plan
    return replace(
        plan,
        criteria=tuple(_with_joint_errors(one, before.get(one.criterion)) for one in plan.criteria),
    )


def _with_joint_errors(plan: CriterionPlan, before: list[OpenRun] | None) -> CriterionPlan:
    joined = plan.change(together=join_errors(plan, before or ()))
    told = word_joint_errors(joined)
    return replace(joined, caveats=(*joined.caveats, told)) if told else plan


def _question(plan: Plan, name: str) -> tuple[object, ...] | None:
    """Return what a criterion asks, and of what; how many trials it may take is not part of it."""
    for one in plan.criteria:
        if one.criterion == name:
            threshold = one.threshold
            inputs = [each.fingerprint for each in plan.experiments if each.name == one.experiment]
            return (
                threshold.required_rate,
                threshold.alternative_rate if one.counting.stops_early else None,
                None if threshold.baseline is None else threshold.baseline.identifier,
                plan.structure.get(name),
                inputs,
                plan.claim,
                dict(plan.factors),
                one.counting.each_input,
            )
    return None


def _has_old_margin(threshold: Threshold) -> bool:
    good, bad = threshold.required_rate, threshold.alternative_rate
    if good is None or bad is None:
        return False
    return as_written(good) - as_written(bad) == as_written(0.1)


def expense_of(plan: Plan, store: Path) -> Expense | None:
    """Return what a trial took in the newest decided run of a contract; None if there is none.

    Args:
        plan: The contract's.
        store: Where runs are kept.
    """
    return find_expense(plan.contract, plan.options.cost_per_trial_usd, store)


def find_expense(contract: str, declared: float | None, store: Path) -> Expense | None:
    """Return what a trial took in the newest decided run of a contract, or what is declared.

    Args:
        contract: Its name.
        declared: What a trial costs by its suite, where that is known.
        store: Where runs are kept.
    """
    said = Expense(trial_usd=declared, known_from="as cost_per_trial says")
    assumed = None if declared is None else said
    try:
        verdict = RunStore(store).latest(contract).verdict()
    except TrialwiseError:
        return assumed
    spent = verdict.spending
    if not spent.trials:
        return assumed
    known_from = f"as the {spent.trials} trials of {verdict.run_id} did"
    paid_usd = spent.paid_usd
    before = None if verdict.plan is None else verdict.plan.options.cost_per_trial_usd
    if paid_usd is not None and declared is not None and before is not None:
        # What the suite said a trial costs is known better by what it says now.
        supposed = before * spent.trials
        if declared != before and math.isclose(spent.usd or 0.0, supposed, abs_tol=1e-6):
            paid_usd += declared * spent.trials - supposed
            known_from = f"by cost_per_trial, and {known_from}"
    return Expense(
        trial_usd=declared if paid_usd is None else paid_usd / spent.trials,
        trial_s=spent.seconds / spent.trials,
        known_from=known_from,
    )
