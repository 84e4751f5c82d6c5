"""Comparisons on disk: which runs are the arms, and what decides them, so that one can be resumed.

    .trialwise/comparisons/2026-11-15T06-25-24Z-support-agent-3f9c/
        comparison.json   written before the first trial: arms, question, rules, seed
        verdict.json      what was concluded; absent while it goes on, and after a kill

The trials are in the runs, which name the comparison that they belong to.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trialwise import __version__
from trialwise.errors import InvalidArgument, RunNotFound
from trialwise.model.codec import from_plain
from trialwise.model.evidence import StopReason
from trialwise.model.plain_json import CHECKSUM
from trialwise.model.verdict import Decision
from trialwise.stores import _files

if TYPE_CHECKING:
    from os import PathLike

COMPARISON_FORMAT = "trialwise.comparison/1"
VERDICT_FORMAT = "trialwise.comparison-verdict/1"

#: The characters of a name that say when: 2026-11-16T14-10-46Z.
_DATE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonHead:
    """What is known of a comparison before its first trial."""

    comparison_id: str
    started_at: datetime
    labels: tuple[str, ...]
    """Of the arms, the control first."""
    runs: tuple[str, ...]
    """The names of the arms' runs."""
    seed: int
    kind: str = "comparison"
    """What the arms come to: a comparison, a choice or an exploration."""
    question: Mapping[str, Any]
    """As plain values."""
    rules: tuple[Mapping[str, Any], ...] = ()
    """The rule of each test, with the arms and the criterion; none for a fixed size."""
    source: Mapping[str, Any] = field(default_factory=dict)
    """How to find the contracts again, such as the suite and the names given to the command."""


class StoredComparison:
    """One comparison's folder.

    Args:
        path: The folder.
        head: What comparison.json holds, where it was just written.
    """

    def __init__(self, path: Path, head: ComparisonHead | None = None) -> None:
        self.path = path
        self._head = head

    @property
    def comparison_id(self) -> str:
        """Its name, by which it is opened."""
        return os.path.basename(os.path.abspath(self.path))

    @property
    def head(self) -> ComparisonHead:
        """What was known before the first trial; read when it is needed."""
        if self._head is None:
            file = self.path / "comparison.json"
            kept = _files.read_json(file, COMPARISON_FORMAT)
            known = {one.name: kept[one.name] for one in fields(ComparisonHead) if one.name in kept}
            try:
                head = from_plain(ComparisonHead, known)
            except InvalidArgument as error:
                reason = f"it is not as it was written ({error}). Restore it from a copy."
                raise _files.StoreUnusable(file, "read it", reason) from None
            self._head = replace(head, comparison_id=self.comparison_id)
        return self._head

    def write_verdict(
        self,
        verdict: Mapping[str, Any],
        stops: Sequence[StopReason],
        *,
        votes: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Keep what was concluded; what was kept before is replaced.

        Args:
            verdict: As plain values, with its decision.
            stops: Why each arm's run ended.
            votes: What a judge preferred, which stands in no run.
        """
        kept = {
            "format": VERDICT_FORMAT,
            "tool_version": __version__,
            "stops": [one.value for one in stops],
            # A judge was paid and may answer otherwise tomorrow: what it said is kept like trials
            # are.
            "votes": [dict(one) for one in votes],
            "verdict": dict(verdict),
        }
        _files.write_json(self.path / "verdict.json", kept)

    def verdict(self) -> dict[str, Any] | None:
        """Return what was concluded, as plain values; None where nothing was yet."""
        return self._read_verdict().get("verdict")

    def votes(self) -> list[dict[str, Any]]:
        """Return what a judge preferred, as plain values."""
        return list(self._read_verdict().get("votes", ()))

    @property
    def tool_version(self) -> str:
        """The version that wrote the verdict."""
        return str(self._read_verdict().get("tool_version", ""))

    def compare_checksums(self) -> dict[str, bool]:
        """Compare the checksum in each file with the checksum of its content."""
        files = {"comparison.json": COMPARISON_FORMAT, "verdict.json": VERDICT_FORMAT}
        kept = {name: _files.read_json(self.path / name, form) for name, form in files.items()}
        return {name: one.get(CHECKSUM) == _files.checksum_of(one) for name, one in kept.items()}

    def _read_verdict(self) -> dict[str, Any]:
        file = self.path / "verdict.json"
        return _files.read_json(file, VERDICT_FORMAT) if file.exists() else {}

    @property
    def is_unfinished(self) -> bool:
        """Whether it can be resumed: it was cut short, and its question is open."""
        kept = self._read_verdict()
        if not kept:
            return True
        # Only what ended an arm too early can be made up for by going on.
        was_cut = any(StopReason(one).is_premature for one in kept["stops"])
        # What was answered stays answered: more pairs would look twice at one question.
        return was_cut and kept["verdict"]["decision"] == Decision.INCONCLUSIVE.value


class ComparisonStore:
    """A folder of comparisons.

    Args:
        folder: The store; made with the first comparison.
        suffix: What tells apart comparisons that start in one second.
    """

    def __init__(self, folder: Path = Path(".trialwise")) -> None:
        self._folder = folder / "comparisons"

    def reserve(self, contract: str, started_at: datetime) -> Path:
        """Make the folder of a new comparison, so that its runs can name it.

        Args:
            contract: The control's.
            started_at: Now, with its zone.
        """
        return _files.make_dated_folder(self._folder, "comparison", started_at, contract)

    def write(self, path: Path, head: ComparisonHead) -> StoredComparison:
        """Write down a comparison before its first trial.

        Args:
            path: Its folder.
            head: What is known of it.
        """
        # Not by the codec: the options of a command may hold tuples, which JSON takes as lists.
        # Before the first trial: whoever reads it later sees that the question was not chosen after
        # the pairs, and by which rule they were to be decided.
        plain = {**asdict(head), "started_at": head.started_at.isoformat()}
        _files.write_json(path / "comparison.json", {"format": COMPARISON_FORMAT, **plain})
        return StoredComparison(path, head)

    def open(self, name: str | PathLike[str]) -> StoredComparison:
        """Return a comparison.

        Args:
            name: Its name or its folder.

        Raises:
            RunNotFound: There is none.
        """
        given = Path(name)
        path = self._folder / given.name if given.name == str(given) else given
        if not (path / "comparison.json").is_file():
            known = [one.comparison_id for one in self.list()]
            hint = f"The newest is {known[0]}" if known else "No comparison is kept here"
            raise RunNotFound(f"{self._folder}: no comparison {str(name)!r}. {hint}")
        return StoredComparison(path)

    def list(self) -> list[StoredComparison]:
        """List every comparison, newest first."""
        try:
            names = os.listdir(self._folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        # A folder without this file belongs to a comparison that died while it was being reserved.
        files = [self._folder / name / "comparison.json" for name in names]
        # A name has the second of the start, and the file is written once, at the start.
        kept = [one for one in files if one.is_file()]
        dated = [(one.parent.name[:_DATE], one.stat().st_mtime_ns, one.parent) for one in kept]
        return [StoredComparison(folder) for *_, folder in sorted(dated, reverse=True)]

    def find_unfinished(self, name: str | None, kind: str) -> StoredComparison:
        """Return what is to be resumed: what is named, or the newest of a kind.

        Args:
            name: Its name or folder.
            kind: What the arms come to, such as "comparison".

        Raises:
            RunNotFound: There is none.
        """
        if name is not None:
            return self.open(name)
        # Only the newest: an older one was given up, and would surprise whoever resumes.
        newest = next((one for one in self.list() if one.head.kind == kind), None)
        if newest is not None and newest.is_unfinished:
            return newest
        raise RunNotFound(f"{self._folder}: no {kind} is unfinished: there is none to resume")
