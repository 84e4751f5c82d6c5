"""Where a project keeps its runs, which of them somebody means, and whether they still hold.

Looking at what was stored must not need a suite that loads: its functions are not imported, and a
mistake in it does not hide the record of an earlier run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trialwise import suite as suites
from trialwise.errors import JournalDamaged, RunNotFound, TrialwiseError

if TYPE_CHECKING:
    from trialwise.documents.blocks import Document
    from trialwise.model.run import RunRecord, RunSummary
    from trialwise.runtime.answers import Answer
    from trialwise.runtime.verifying import Verification
    from trialwise.stores.runs import RunStore, StoredRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a project keeps things."""

    suite: Path | None = None
    """None: there is no suite here or above."""
    runs: Path = Path(".trialwise")
    baselines: Path = Path("baselines")

    @property
    def name(self) -> str:
        """What reports call the project: by the folder of its suite, as `run` does."""
        return (Path.cwd() if self.suite is None else self.suite.parent).resolve().name


def find_places() -> Places:
    """Find the folders that the suite of this folder names; the usual ones where it names none."""
    try:
        suite = suites.find_suite(Path.cwd())
    except suites.SuiteNotFound:
        return Places()
    named = _read_folders(suite)
    return Places(
        suite=suite,
        runs=suite.parent / named.get("runs", ".trialwise"),
        baselines=suite.parent / named.get("baselines", "baselines"),
    )


def _read_folders(suite: Path) -> dict[str, str]:
    """Return what the suite's `store` says, as far as it can be read."""
    from trialwise.suite.reading_context import Context

    context = Context(suite, os.environ)
    root = context.root()
    if root is None or not root.is_mapping:
        return {}
    entry = context.entries(root).get("store")
    if entry is None or not entry[1].is_mapping:
        return {}
    named: dict[str, str] = {}
    for name, (_, node) in context.entries(entry[1]).items():
        text = context.fill(node, node.value) if type(node.value) is str else None
        if isinstance(text, str) and text:
            named[name] = text
    return named


@dataclass(frozen=True)
class RunChooser:
    """Finds the stored runs and comparisons that names mean; every command asks it.

    Args:
        store: The folder of the runs; that of this folder's suite if None.
    """

    store: Path | None = None

    @cached_property
    def folder(self) -> Path:
        """The store."""
        return find_places().runs if self.store is None else self.store

    @cached_property
    def runs(self) -> RunStore:
        """The runs of the store."""
        from trialwise.stores.runs import RunStore

        return RunStore(self.folder)

    def choose(self, names: Sequence[str], *, every: bool = False) -> list[StoredRun]:
        """Choose runs; without a name all that were run last.

        Args:
            names: Each the name or folder of a run, `latest`, or a contract.
            every: Whether the latest run of every contract is meant.

        Raises:
            RunNotFound: There is no such run; names near to it are given.
        """
        if every:
            # The oldest of the latest first, as they were run.
            names = list(self._list_contracts())[::-1]
        return [self.find(name) for name in names] or self._list_last()

    def find(self, name: str) -> StoredRun:
        """Find one run.

        Args:
            name: Of a run, its folder, `latest`, or a contract, of which the latest is meant.

        Raises:
            RunNotFound: There is none.
        """
        if name == "latest":
            return self._find_latest()
        try:
            return self.runs.open(name)
        except RunNotFound as missing:
            try:
                return self._find_latest(name)
            except RunNotFound:
                contracts = sorted(self._list_contracts())
                known = f". Contracts with a verdict: {', '.join(contracts)}" if contracts else ""
                raise RunNotFound(f"{missing}{known}") from None

    def latest_by_contract(self) -> dict[str, StoredRun]:
        """Return the latest decided run of every contract."""
        return {name: self.runs.latest(name) for name in self._list_contracts()}

    def list_names(self) -> list[str]:
        """List what a run may be called, for a shell that completes a word."""
        kept = self.runs.list()
        names = ["latest", *(one.contract for one in kept), *(one.run_id for one in kept)]
        return [name for name in dict.fromkeys(names) if name]

    def _list_contracts(self) -> dict[str, None]:
        return dict.fromkeys(one.contract for one in self.runs.list() if one.is_decided)

    def _list_last(self) -> list[StoredRun]:
        """List the latest run and, of each other contract, the latest run together with it."""
        newest = self._find_latest()
        if not newest.session:
            return [newest]
        last: dict[str, str] = {}
        for one in self.runs.list():
            if one.session == newest.session and (one.is_decided or one.run_id == newest.run_id):
                last.setdefault(one.contract, one.run_id)
        # As they were run.
        return [self.runs.open(name) for name in list(last.values())[::-1]]

    def _find_latest(self, contract: str | None = None) -> StoredRun:
        """Find the newest run with a verdict; where none has one, the newest of all."""
        try:
            return self.runs.latest(contract)
        except RunNotFound:
            for one in self.runs.list():
                if not one.damage and contract in (None, one.contract):
                    return self.runs.open(one.run_id)
            raise

    def describe(
        self, contracts: Sequence[str], last: int
    ) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]], int]:
        """Describe the last runs, the comparisons that they are arms of, and count the older ones.

        Args:
            contracts: Only theirs; those of all where there are none.
            last: How many runs are described at most.
        """
        kept = [one for one in self.runs.list() if not contracts or one.contract in contracts]
        shown = [self._describe_run(one) for one in kept[:last]]
        names = dict.fromkeys(one.comparison for one in kept[:last] if one.comparison)
        found = {name: self._describe_comparison(name) for name in names}
        compared = {name: one for name, one in found.items() if one is not None}
        return shown, compared, max(0, len(kept) - last)

    def _describe_run(self, one: RunSummary) -> dict[str, Any]:
        """Describe a run; one without a verdict is a measurement or unfinished."""
        from trialwise.stores.runs import StoreUnusable

        trials, result = one.trials, str(one.decision or "")
        if one.damage:
            result = "DAMAGED"
        elif not one.is_decided:
            stored = self.runs.open(one.run_id)
            try:
                trials = len(stored.shown_trials())
                measured = stored.plan.purpose == "measure" and trials >= stored.plan.max_trials
                result = "MEASURED" if measured else "UNFINISHED"
            except (JournalDamaged, StoreUnusable):
                result = "DAMAGED"
        return {
            "run_id": one.run_id,
            "contract": one.contract,
            "result": result,
            "started_at": None if one.started_at is None else one.started_at.isoformat(),
            "trials": trials,
            **({"comparison": one.comparison} if one.comparison else {}),
        }

    def _describe_comparison(self, name: str) -> dict[str, Any] | None:
        """Describe a comparison; None for one that is damaged."""
        from trialwise.stores.comparisons import ComparisonStore

        try:
            stored = ComparisonStore(self.folder).open(name)
            head, verdict = stored.head, stored.verdict()
        except TrialwiseError:
            return None
        return {
            "comparison": name,
            "result": "UNFINISHED" if verdict is None else str(verdict["decision"]),
            "statement": "" if verdict is None else str(verdict.get("statement", "")),
            "started_at": head.started_at.isoformat(),
            "arms": dict(zip(head.runs, head.labels, strict=True)),
        }

    def are_comparisons(self, names: Sequence[str]) -> bool:
        """Return whether all names are those of comparisons."""
        files = [self.folder / "comparisons" / name / "comparison.json" for name in names]
        return bool(files) and all(one.is_file() for one in files)

    def load_comparisons(self, names: Sequence[str]) -> Sequence[Answer]:
        """Return the comparisons and choices of these names; none where any is another's name."""
        if not self.are_comparisons(names):
            return []
        from trialwise.runtime.answers import load_answer

        return [load_answer(name, store=self.folder) for name in names]


def count_measured(stored: StoredRun) -> dict[str, Any]:
    """Return what a measurement of a baseline counted, as plain values."""
    from trialwise.runtime.measuring import pick_rows

    trials, plan = stored.trials(), stored.plan
    counts = {}
    for one in plan.criteria:
        _, rows = pick_rows(one, plan, trials)
        counts[one.criterion] = {"passed": rows.passed, "trials": len(rows)}
    return {
        "run_id": stored.run_id,
        "contract": plan.contract,
        "trials": len(trials),
        "planned": plan.max_trials,
        "criteria": counts,
    }


VERIFICATION_SCHEMA = "trialwise.verification/1"
_UNCHECKED = "Times, versions and settings of pace are shown as stored and were not checked."
#: Beyond these one cause is seen many times.
_MOST_DIFFERENCES = 20


@dataclass(slots=True)
class CheckedRuns:
    """Stored runs, decided again; one that is not as it was written does not hold."""

    records: list[RunRecord] = field(default_factory=list)
    """Those that could be read whole."""
    verifications: list[Verification] = field(default_factory=list)
    damages: list[tuple[str, str]] = field(default_factory=list)
    """The names of the others, and what is wrong with them."""

    @classmethod
    def check(cls, stored: Sequence[StoredRun]) -> CheckedRuns:
        """Decide runs again.

        Raises:
            RunNotFound: One of them has no verdict yet.
        """
        from trialwise.runtime.verifying import verify
        from trialwise.stores.runs import StoreUnusable

        checked = cls()
        for one in stored:
            try:
                record = one.record()
                checked.verifications.append(
                    verify(record, known_hash=one.plan_hash, checksums=one.compare_checksums())
                )
                checked.records.append(record)
            except (JournalDamaged, StoreUnusable) as error:
                checked.damages.append((one.run_id, str(error)))
        return checked

    @property
    def holds(self) -> bool:
        """Whether every record says what follows from it."""
        return not self.damages and all(one.matches for one in self.verifications)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        runs: list[dict[str, Any]] = [
            {**asdict(one), "matches": one.matches, "damage": None} for one in self.verifications
        ]
        runs += [{"run_id": name, "matches": False, "damage": why} for name, why in self.damages]
        return {"schema": VERIFICATION_SCHEMA, "matches": self.holds, "runs": runs}

    def build_page(self) -> Document:
        """Build the outcome as a page: a line for each run, and what differs."""
        from trialwise.pages.stored_runs import build_checked_page

        return build_checked_page(self._list_found())

    def _list_found(self) -> Iterator[tuple[str, str, list[str]]]:
        for one in self.verifications:
            name = one.run_id or one.contract
            if one.matches:
                said = [f"the verdict follows from the plan and its {one.trials} trials"]
                if files := " and ".join(one.without_checksum):
                    said.append(f"{files}: written without a checksum. {_UNCHECKED}")
                yield "VERIFIED", name, said
            else:
                said = ["the record does not say what follows from it"]
                said += [str(each) for each in one.differences[:_MOST_DIFFERENCES]]
                if (more := len(one.differences) - _MOST_DIFFERENCES) > 0:
                    said.append(f"and {more} more")
                yield "DIFFERS", name, said
        for name, why in self.damages:
            yield "DAMAGED", name, [why]
