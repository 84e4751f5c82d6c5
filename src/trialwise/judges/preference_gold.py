"""Gold sets of pairs: which of two outputs people prefer, and where the labels come from.

In YAML or JSON::

    provenance: {source: replies of two prompts, labelled_by: two agents, rule: both had to agree}
    entries:
      - input: How do I cancel?
        first: Just stop paying.
        second: Open Billing.
        better: second
        candidate: first

or as JSON lines, as for other gold sets. Pairs that people find equal are left out. `candidate`
says which side is of the arm, or has the style, that is the candidate in a comparison. A judge that
favours the style of one arm errs more often to its side, and only then can that be corrected for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trialwise.errors import InvalidArgument
from trialwise.judges.gold import (
    BrokenLine,
    GoldSetError,
    describe_provenance,
    read_entries,
    refuse_problems,
)
from trialwise.model.fingerprint import fingerprint
from trialwise.validation import require_choice, require_text

_NEEDED = ("first", "second", "better")
_KNOWN = {"id", "input", "expected", "note", "candidate", *_NEEDED}
_FORM = "such as `{first: Stop paying., second: Open Billing., better: second}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairUnit:
    """Two outputs and which of them people prefer."""

    id: str
    first: str
    second: str
    better: str
    """`first` or `second`."""
    input: Any = None
    expected: Any = None
    note: str = ""
    """Why, for people."""
    candidate: str | None = None
    """The side of the candidate's arm or style, `first` or `second`; None where nobody says."""

    def __post_init__(self) -> None:
        require_text("id", self.id, "be a text that names the pair")
        for name, text in (("first", self.first), ("second", self.second)):
            if not isinstance(text, str):
                raise InvalidArgument(name, text, "be text")
        require_choice("better", self.better, ("first", "second"))
        if self.candidate is not None:
            require_choice("candidate", self.candidate, ("first", "second"))

    @property
    def prefers_first(self) -> bool:
        """Whether people prefer the first output."""
        return self.better == "first"

    @property
    def prefers_candidate(self) -> bool:
        """Whether people prefer the candidate's output: the first one, where nobody says."""
        return self.better == (self.candidate or "first")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairGold:
    """Pairs of outputs with people's preferences, and where those come from.

    >>> unit = PairUnit(id="1", first="Wait, please.", second="Wait.", better="first")
    >>> PairGold(units=(unit,), provenance="by hand").units[0].prefers_first
    True
    """

    units: tuple[PairUnit, ...]
    provenance: str = ""
    """Who labelled what, drawn from where; nothing makes it unfit to decide anything."""

    def __post_init__(self) -> None:
        known: set[str] = set()
        for unit in self.units:
            if unit.id in known:
                raise InvalidArgument("id", unit.id, "be that of one pair only")
            known.add(unit.id)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the labelled contents, without names, notes and order."""
        contents = (
            [unit.input, unit.first, unit.second, unit.better, unit.expected]
            + [unit.candidate] * (unit.candidate is not None)
            for unit in self.units
        )
        return fingerprint(sorted(map(fingerprint, contents)))

    @property
    def is_oriented(self) -> bool:
        """Whether every pair says which side is the candidate's."""
        return all(unit.candidate is not None for unit in self.units)


def read_pair_gold(path: Path) -> PairGold:
    """Read the gold set of pairs that a file holds.

    Args:
        path: The file: YAML or JSON, or JSON lines by its suffix `.jsonl`.

    Raises:
        GoldSetError: There is no such file, or it does not hold one; the first problems are named.
    """
    provenance, entries = read_entries(path)
    problems: list[str] = []
    units = list(_read_units(entries, problems))
    refuse_problems(path, problems)
    if not units:
        raise GoldSetError(f"{path}: the gold set holds no labelled pair; {_FORM}")
    try:
        return PairGold(units=tuple(units), provenance=describe_provenance(provenance))
    except InvalidArgument as error:
        raise GoldSetError(f"{path}: {error}") from None


def _read_units(entries: Iterable[tuple[str, Any]], problems: list[str]) -> Iterator[PairUnit]:
    for number, (where, entry) in enumerate(entries, 1):
        if isinstance(entry, BrokenLine):
            problems.append(f"{where} {entry}")
        elif not isinstance(entry, dict):
            problems.append(f"{where} must be a mapping with `first`, `second` and `better`")
        elif lacking := [name for name in _NEEDED if entry.get(name) is None]:
            problems.append(f"{where} lacks `{lacking[0]}`")
        elif unknown := sorted(map(str, set(entry) - _KNOWN)):
            known = ", ".join(sorted(_KNOWN))
            problems.append(f"{where} has an unknown key `{unknown[0]}`; known are {known}")
        else:
            try:
                yield PairUnit(
                    id=str(entry.get("id", number)),
                    first=entry["first"],
                    second=entry["second"],
                    better=entry["better"],
                    input=entry.get("input"),
                    expected=entry.get("expected"),
                    note=str(entry.get("note", "")),
                    candidate=entry.get("candidate"),
                )
            except InvalidArgument as error:
                problems.append(f"{where}: `{error.argument}` must {error.allowed}")
