"""Which arms somebody means: contracts of a suite, their arms, stored runs, or results in files.

One home for `compare`, `choose` and `explore`. Arms either run now, or were run before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from trialwise.cli.options import read_changes
from trialwise.declarations.written import suggest_name
from trialwise.runtime.chosen_runs import RunChooser
from trialwise.runtime.selecting import Chosen, load

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from trialwise.model.run import RunRecord
    from trialwise.procedures.comparing.findings import ArmRun
    from trialwise.stores.runs import StoredRun
    from trialwise.suite import Suite, SuiteContract

#: Endings of files with results: a name that has one is no contract.
_RESULTS = (".csv", ".eval", ".json", ".jsonl", ".ndjson", ".tsv", ".xml")
_USAGE = "name what to compare it with, or declare variants of it under `arms:`"


class LiveArms(NamedTuple):
    """Arms that are going to run, the control first."""

    suite: Suite
    arms: tuple[Chosen, ...]
    labels: tuple[str, ...]
    """What reports call them: an arm by its own name, where no other has it."""


class StoredArms(NamedTuple):
    """Arms that were run before, the control first."""

    suite: Suite | None
    """The suite of this folder, where it could be read; its section `compare` has defaults."""
    arms: tuple[ArmRun, ...]


def choose_arms(names: Sequence[str], given: dict[str, Any]) -> LiveArms | StoredArms:
    """Choose arms by name, the control first.

    One name alone stands for a contract and its arms, or for the entries of a model matrix. No name
    at all stands for what the section `compare` of the suite says.

    Args:
        names: Contracts, entries of a matrix such as `agent [large]`, arms such as `agent/short` or
            `short`, names or folders of stored runs, and files with results.
        given: The options of the command line: sizes, pace, and `criteria` to keep. `file` is the
            suite's, `stored` takes contracts for their latest runs, `a_a` compares one arm with
            itself, and with `replay` something else stands for what is under test.

    Raises:
        UsageError: A name stands for nothing, or arms of both kinds are named.
    """
    for name in names:
        # A file that is not there would be searched for among the contracts, and the hint would
        # mislead.
        if name.lower().endswith(_RESULTS) and not Path(name).exists():
            raise click.UsageError(f"{name}: there is no such file")
    # What is plainly on disk needs no suite: it may be compared where there is none.
    file, with_itself = given["file"], given["a_a"]
    if given["stored"] or (names and all(map(_is_kept, names))):
        return StoredArms(_read_suite(file), _open_stored(names, given))
    suite = _load_suite(names, given)
    if suite is None:
        return StoredArms(None, _open_stored(names, given))
    there = _Names(suite)
    live = [name for name in names if there.has(name)]
    others = [name for name in names if name not in live]
    if others and not live and file is None and _are_runs(names):
        return StoredArms(suite, _open_stored(names, given))
    if others:
        if not live or not _are_runs(others[:1]):
            there.refuse(others[0])
        message = (
            f"{live[0]!r} would run and {others[0]!r} was run before: what changed in between "
            "would count as a difference. Name arms of one kind; --stored takes the latest runs of "
            "contracts"
        )
        raise click.UsageError(message)
    arms = there.list_arms(names, with_itself=with_itself)
    # One size for all arms: pairs are made of trials that have a partner.
    sized = tuple(read_changes(given).resize([(suite, one) for one in arms]))
    # A short name where it is enough: the labels stand in every row and column.
    short = [one.arm or one.name for one in arms]
    labels = short if len(set(short)) == len(short) else [one.name for one in arms]
    if with_itself:
        labels.append(f"{labels[0]} again")
    return LiveArms(suite, sized, tuple(labels))


def check_section(suite: Suite) -> None:
    """Check that the arms and criteria that the section `compare` names are there.

    Raises:
        UsageError: One is not.
    """
    section = suite.compare
    if section.control is None and not section.candidates and not section.guardrails:
        return
    first = _Names(suite).list_arms((), with_itself=False)[0]
    check_criteria(section.guardrails, [one.name for one in first.contract.criteria])


def check_criteria(names: Iterable[str], known: Sequence[str]) -> None:
    """Refuse the name of a guardrail that is no criterion."""
    for name in names:
        if name not in known:
            message = f"there is no criterion {name!r} for a guardrail; {_hint(name, known)}"
            raise click.UsageError(message)


def _hint(name: str, known: Sequence[str], listed: Iterable[str] = ()) -> str:
    """Return what somebody may have meant by a name, or what there is."""
    return suggest_name(name, known, f"there are: {', '.join(listed or known)}", quote="'")


class _Names:
    """The names that arms of a suite have."""

    def __init__(self, suite: Suite) -> None:
        self._suite = suite
        self._full = {
            one.name: one for contract in suite.contracts for one in (contract, *contract.arms)
        }
        self._entries: dict[str, list[str]] = {}
        self._short: dict[str, list[str]] = {}
        for one in suite.contracts:
            model = one.contract.factors.get("model")
            # Entries of a model matrix are contracts of their own, which share what stands before
            # the model.
            base = one.name.removesuffix(f" [{model}]")
            if base != one.name:
                self._entries.setdefault(base, []).append(one.name)
            for arm in one.arms:
                self._short.setdefault(arm.arm, []).append(arm.name)

    def has(self, name: str) -> bool:
        """Return whether the name stands for an arm or several."""
        return name in self._full or name in self._entries or name in self._short

    def refuse(self, name: str) -> None:
        """Refuse a name that stands for nothing."""
        known = [*self._full, *self._entries, *self._short]
        # Entries of a matrix and short names are listed by the full ones already.
        hint = _hint(name, known, self._full)
        message = (
            f"{name!r} is not a contract or arm of {self._suite.path}, and no stored run; {hint}"
        )
        raise click.UsageError(message)

    def list_arms(self, names: Sequence[str], *, with_itself: bool) -> list[SuiteContract]:
        """Return the arms that names stand for, the control first."""
        section = self._suite.compare
        if not names:
            names = self._list_usual(section.control, section.candidates)
        found = [one for name in names for one in self._find(name)]
        if with_itself:
            if len(found) != 1:
                raise click.UsageError("--a-a compares one contract with itself: name one")
            return found
        if len(found) == 1:
            found += found[0].arms
        if len(found) == 1:
            others = [one for one in self._full if one != found[0].name]
            more = f"; there are: {', '.join(others)}" if others else ""
            raise click.UsageError(f"{found[0].name!r} has no arms: {_USAGE}{more}")
        _refuse_twice([one.name for one in found], "; --a-a compares a contract with itself")
        return found

    def _find(self, name: str) -> list[SuiteContract]:
        if not self.has(name):
            self.refuse(name)
        if name in self._full:
            return [self._full[name]]
        several = self._entries.get(name) or self._short[name]
        if name not in self._entries and len(several) > 1:
            message = f"{name!r} is an arm of several contracts: write {' or '.join(several)}"
            raise click.UsageError(message)
        return [self._full[one] for one in several]

    def _list_usual(self, control: str | None, candidates: Sequence[str]) -> list[str]:
        """Return the names where the command line has none."""
        if control is not None:
            return [control, *candidates]
        # Where there is one thing to compare, nobody has to name it.
        usual = [one.name for one in self._suite.contracts if one.arms] or [*self._entries]
        if len(usual) != 1:
            which = f"there are several: {', '.join(usual)}" if usual else "there is none"
            message = (
                f"name what to compare: {which} with arms or a model matrix in "
                f"{self._suite.path}. `compare: {{control: …}}` says which one is meant"
            )
            raise click.UsageError(message)
        return [*usual, *candidates]


# --- What was run before --------------------------------------------------------------------------


def _load_suite(names: Sequence[str], given: dict[str, Any]) -> Suite | None:
    """Load the suite; None where there is none and the names may be those of runs."""
    from trialwise.suite import SuiteNotFound

    file, settings = given["file"], given.get("settings", ())
    without = given["replay"] is not None
    try:
        return load(file, settings=settings, without_services=without, with_arms=True)
    except SuiteNotFound:
        if file is not None or not names:
            raise
        return None


def _read_suite(file: Path | None) -> Suite | None:
    """Read the suite for what it says about comparisons; a mistake in it hides no stored run."""
    from trialwise.errors import TrialwiseError

    try:
        return load(file, without_services=True)
    except TrialwiseError:
        return None


def _is_kept(name: str) -> bool:
    """Return whether a name is that of a file with results, or of the folder of a run."""
    path = Path(name)
    try:
        return (path.is_file() and bool(path.suffix)) or (path / "plan.json").is_file()
    except (OSError, ValueError):
        return False


def _are_runs(names: Sequence[str]) -> bool:
    from trialwise.errors import RunNotFound

    try:
        return all(_is_kept(name) or _find_runs(name) for name in names)
    except RunNotFound:
        return False


def _open_stored(names: Sequence[str], given: dict[str, Any]) -> tuple[ArmRun, ...]:
    """Open the runs and files that names stand for."""
    from trialwise.procedures.comparing.findings import ArmRun

    found: list[StoredRun | Path] = []
    for name in names:
        path = Path(name)
        found += [path] if _is_kept(name) and path.is_file() else _find_runs(name)
    if len(names) == 1 and len(found) == 1:
        latest = sorted(RunChooser().latest_by_contract().items())
        found += [run for name, run in latest if name.startswith(f"{names[0]}/")]
    if len(found) < 2:
        raise click.UsageError("name two stored runs or files with results, or more")
    keys = [str(one) if isinstance(one, Path) else one.run_id for one in found]
    # A run beside itself has no difference by construction, and would pass for an answer.
    _refuse_twice(keys)
    wanted = given.get("criteria") or ()
    return _label(
        [
            _read_results(one, wanted)
            if isinstance(one, Path)
            else ArmRun("", _keep_criteria(one.record(), wanted), one.path)
            for one in found
        ]
    )


def _refuse_twice(names: Sequence[str], advice: str = "") -> None:
    for place, name in enumerate(names):
        if name in names[:place]:
            raise click.UsageError(f"{name!r} is named twice{advice}")


def _keep_criteria(record: RunRecord, wanted: Sequence[str]) -> RunRecord:
    """Return a record with the criteria that somebody asked for."""
    known = [one.criterion for one in record.plan.criteria]
    for name in wanted:
        if name not in known:
            hint = _hint(name, known)
            raise click.UsageError(f"{record.run_id} has no criterion {name!r}; {hint}")
    kept = tuple(one for one in record.plan.criteria if not wanted or one.criterion in wanted)
    return replace(record, plan=replace(record.plan, criteria=kept))


def _label(arms: Sequence[ArmRun]) -> tuple[ArmRun, ...]:
    """Label arms by their contracts or files; by their runs where two have one name."""
    names = [arm.label or arm.record.plan.contract for arm in arms]
    return tuple(
        replace(arm, label=name if names.count(name) == 1 else (arm.record.run_id or str(arm.path)))
        for arm, name in zip(arms, names, strict=True)
    )


def _find_runs(name: str) -> list[StoredRun]:
    """Return the latest stored runs of a name: of a run, a contract, a matrix, or an arm.

    Raises:
        RunNotFound: There is none.
    """
    from trialwise.errors import RunNotFound

    chooser = RunChooser()
    try:
        return [chooser.find(name)]
    except RunNotFound:
        kept = chooser.latest_by_contract()
        entries = [one for one in kept if one.startswith(f"{name} [") and one.endswith("]")]
        arms = [one for one in kept if one.endswith(f"/{name}")]
        if not entries and len(arms) != 1:
            raise
        return [kept[one] for one in sorted(entries) or arms]


def _read_results(path: Path, criteria: Sequence[str]) -> ArmRun:
    from trialwise.outcomes.outcome_reading import read_outcomes
    from trialwise.procedures.comparing.findings import ArmRun
    from trialwise.runtime.outcome_scoring import record_outcomes

    outcomes = read_outcomes([path])
    for note in outcomes.notes:
        click.echo(f"{path}: {note}", err=True)
    return ArmRun(str(path), record_outcomes(outcomes, criteria=criteria))


def complete_arms(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem | str]:
    """Complete the name of a contract, an arm or a stored run."""
    from trialwise.errors import TrialwiseError

    names: list[str] = []
    try:
        suite = load(None, without_services=True, with_arms=True)
        names += [one.name for each in suite.contracts for one in (each, *each.arms)]
    except TrialwiseError:
        pass  # a suite that cannot be read completes nothing
    names += [one.run_id for one in RunChooser().runs.list()]
    return [name for name in dict.fromkeys(names) if name and name.startswith(incomplete)]
