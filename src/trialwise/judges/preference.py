"""Which of two outputs is better, asked twice with the places swapped.

Models prefer whatever stands first, or last. Only a preference that survives the swap counts; one
that does not is a tie, and is counted as such. Higher always means that the candidate is better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from trialwise.engine.criterion_progress import derive_seed
from trialwise.engine.ports import Service, SystemClock, Timer, gather
from trialwise.errors import InvalidArgument
from trialwise.judges import gold, jurors, votes
from trialwise.judges.calibration import Calibration, GoldFiles
from trialwise.model.fingerprint import fingerprint
from trialwise.stats.agreement import Confusion
from trialwise.stats.paired import paired_difference_interval, sign_test
from trialwise.stats.result_types import Interval, Undefined
from trialwise.validation import require_choice, require_open_rate, require_text

#: How much a choice is worth to the candidate, where it is the one chosen: by far, or slightly.
_MUCH, _SLIGHTLY, _EQUAL = 1.0, 0.75, 0.5
_NEVER_MEASURED = "nobody measured how often the judge prefers what people prefer"
_NOT_ORIENTED = (
    "its gold pairs do not say which side is the candidate's (`candidate: first` or `second`), so "
    "that a liking for the style of one arm cannot be corrected for"
)
_NOT_YET = f"{_NEVER_MEASURED} yet: `trialwise judge calibrate` does"


class Preference(StrEnum):
    """What came of a comparison, from the candidate's side."""

    WIN = "win"
    LOSS = "loss"
    TIE = "tie"
    """Both answers say equal, or only one of them prefers either."""
    INCONSISTENT = "inconsistent"
    """Each place was preferred once: it was the place, not the output. Counts as a tie."""
    MISSING = "missing"
    """An answer is missing. Counts as nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A candidate beside a reference, judged from both places."""

    preference: Preference
    score: float | Undefined
    """The mean of both answers, 1 for a candidate that is far better, 0 for one far worse."""
    explanation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WinRate:
    """How often the candidate is preferred, a tie counting one half."""

    wins: int
    losses: int
    ties: int
    inconsistent: int
    """The ties in which a swap of places turned the answer round."""
    missing: int
    rate: float | Undefined
    """(wins + ties/2)/comparisons: above one half the candidate is better."""
    interval: Interval | Undefined
    p_value: float
    """The p-value of the exact sign test for equal wins and losses; ties are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairwise:
    """A rubric by which two outputs are compared; made by `pairwise`."""

    rubric: str
    juror: jurors.Juror
    output_limit: int
    name: str = "preference"
    calibration: Calibration | None = None
    files: GoldFiles | None = None
    asking: jurors.Asking = field(compare=False)
    expenses: jurors.Expenses = field(default_factory=jurors.Expenses, compare=False, repr=False)

    def __post_init__(self) -> None:
        require_text("rubric", self.rubric, "be a text that says what is better")
        require_text("name", self.name, "be a text that names the criterion")

    @property
    def identity(self) -> str:
        """A fingerprint of everything that bears on its choices: a calibration belongs to one."""
        asked = {
            "pairwise": {
                "rubric": self.rubric,
                "juror": self.juror.name,
                "output_limit": self.output_limit,
            }
        }
        return fingerprint([asked, votes.PROMPT_VERSION])

    @property
    def advisory(self) -> tuple[str, ...]:
        """Why its preferences can only advise; nothing where they may decide."""
        if self.calibration is None:
            return (_NEVER_MEASURED if self.files is None else _NOT_YET,)
        found = self.calibration.marks(judge=self.identity)
        return found if self.calibration.is_oriented else (*found, _NOT_ORIENTED)

    @property
    def errors(self) -> Confusion | None:
        """Its choices beside people's, where they are good enough to decide by."""
        measured = self.calibration
        return None if measured is None or self.advisory else measured.confusion

    async def compare(
        self,
        candidate: str,
        reference: str,
        *,
        given: Any = None,
        expected: Any = None,
        seed: int = 0,
    ) -> Comparison:
        """Return whether the candidate is better than the reference, asked with either one first.

        Args:
            candidate: What may replace the reference.
            reference: What there is.
            given: What both were asked; None is not shown.
            expected: What a right output says; None is not shown.
            seed: For the juror.
        """
        expenses = jurors.Expenses()
        pairs = (candidate, reference), (reference, candidate)
        calls = [
            partial(
                self._ask, pair, (given, expected), derive_seed("pair", seed, str(place)), expenses
            )
            for place, pair in enumerate(pairs)
        ]
        first, second = await gather(calls)
        self.expenses.take(expenses)
        return _comparison(first, second)

    async def aclose(self) -> None:
        """Close the juror's connections."""
        await self.juror.service.aclose()

    async def _ask(
        self, pair: tuple[str, str], beside: tuple[Any, Any], seed: int, expenses: jurors.Expenses
    ) -> jurors.Answer:
        given, expected = beside
        messages = votes.comparison_messages(
            self.rubric, *pair, given=given, expected=expected, limit=self.output_limit
        )
        seen = [None if given is None else votes.shown_text(given), *pair]
        question = {"rubric": self.rubric, "pair": [self._seen(text) for text in seen]}
        if expected is not None:
            question["expected"] = self._seen(votes.shown_text(expected))
        return await self.asking.ask(
            self.juror, messages, question, votes.read_choice, seed=seed, expenses=expenses
        )

    def _seen(self, text: str | None) -> Any:
        """Return what the juror sees of a text, for the cache."""
        return text and [text[: self.output_limit], len(text)]


def pairwise(
    rubric: str,
    juror: jurors.Juror | Service,
    *,
    name: str = "preference",
    calibration: Calibration | None = None,
    files: GoldFiles | None = None,
    output_limit: int = jurors.OUTPUT_LIMIT,
    timeout_s: float = jurors.TIMEOUT_S,
    retries: int = jurors.RETRIES,
    cache: jurors.VoteCache | None = None,
    clock: Timer | None = None,
) -> Pairwise:
    """Return a comparison of two outputs by a rubric.

    Args:
        rubric: What makes one output better than another.
        juror: A service that answers a conversation.
        name: What the criterion is called in a comparison.
        calibration: How often it prefers what people prefer, by `calibrate_pairwise`. Without one
            its preferences only advise.
        files: Where its gold set and its calibration are kept.
        output_limit: The most characters of each output that it sees.
        timeout_s: The most seconds of one call.
        retries: Further calls after one that failed.
        cache: Where answers are kept by content; None keeps none.
        clock: For the waits between calls.

    >>> import anyio
    >>> from trialwise.services import CallableService
    >>> def longer(messages):
    ...     first, second = messages[1]["content"].split("<<SECOND")
    ...     return '{"better": "%s"}' % ("first" if len(first) > len(second) else "second")
    >>> compare = pairwise("The longer one is better.", CallableService(longer)).compare
    >>> anyio.run(compare, "a much longer answer than the other one" * 9, "short").preference
    <Preference.WIN: 'win'>
    """
    return Pairwise(
        rubric=rubric,
        juror=jurors.juror_of(juror),
        output_limit=output_limit,
        name=name,
        calibration=calibration,
        files=files,
        asking=jurors.Asking(
            timeout_s=timeout_s, retries=retries, cache=cache, clock=clock or SystemClock()
        ),
    )


def win_rate(comparisons: Iterable[Comparison], *, confidence: float = 0.95) -> WinRate:
    """Return how often the candidate is preferred, with an interval; ties are counted, not dropped.

    The rate is one half plus half the paired difference (wins − losses)/comparisons, so that its
    interval is that of `paired_difference_interval` (Tango's). Comparisons without an answer are
    left out and counted.

    Args:
        comparisons: One for each input; several of one input are not independent.
        confidence: The confidence of the interval, strictly between 0 and 1.

    >>> won = Comparison(preference=Preference.WIN, score=1.0)
    >>> tied = Comparison(preference=Preference.TIE, score=0.5)
    >>> result = win_rate([won] * 15 + [tied] * 5)
    >>> result.rate, result.ties, round(result.interval.low, 3)
    (0.875, 5, 0.734)
    """
    require_open_rate("confidence", confidence)
    counts = dict.fromkeys(Preference, 0)
    for one in comparisons:
        if not isinstance(one, Comparison):
            raise InvalidArgument("comparisons", one, "be comparisons")
        counts[one.preference] += 1
    wins, losses = counts[Preference.WIN], counts[Preference.LOSS]
    ties = counts[Preference.TIE] + counts[Preference.INCONSISTENT]
    rate: float | Undefined = Undefined("there is no comparison with an answer")
    interval: Interval | Undefined = Undefined("there is no comparison with an answer")
    if wins + losses + ties:
        rate = (wins + ties / 2) / (wins + losses + ties)
        # A pair that tells the two apart is discordant; which of the other two cells a tie goes
        # into changes neither the difference nor its interval.
        found = paired_difference_interval(ties, wins, losses, 0, confidence=confidence)
        interval = Interval(
            (1 + found.low) / 2, (1 + found.high) / 2, confidence=confidence, method=found.method
        )
    return WinRate(
        wins=wins,
        losses=losses,
        ties=ties,
        inconsistent=counts[Preference.INCONSISTENT],
        missing=counts[Preference.MISSING],
        rate=rate,
        interval=interval,
        p_value=sign_test(wins, losses).p_value,
    )


def _comparison(candidate_first: jurors.Answer, candidate_second: jurors.Answer) -> Comparison:
    missing = next((one for one in (candidate_first, candidate_second) if one.value is None), None)
    if missing is not None:
        return Comparison(
            preference=Preference.MISSING,
            score=Undefined("an answer is missing"),
            explanation=missing.error,
        )
    scores = (_score(candidate_first.value, "first"), _score(candidate_second.value, "second"))
    return Comparison(
        preference=_preference(*scores),
        score=sum(scores) / 2,
        explanation=candidate_first.value.reasoning,
    )


def _score(choice: votes.Choice, place: str) -> float:
    """Return what an answer is worth to the candidate, which stood at that place."""
    if choice.better == "equal":
        return _EQUAL
    chosen = _MUCH if choice.much else _SLIGHTLY
    return chosen if choice.better == place else 1 - chosen


def _preference(one: float, other: float) -> Preference:
    signs = {(score > _EQUAL) - (score < _EQUAL) for score in (one, other)}
    if signs == {1}:
        return Preference.WIN
    if signs == {-1}:
        return Preference.LOSS
    return Preference.INCONSISTENT if signs == {-1, 1} else Preference.TIE


# Gold sets of pairs: which of two outputs people prefer, and where the labels come from.
#
# In YAML or JSON::
#
#     provenance: {source: replies of two prompts, labelled_by: two agents, rule: both had to
# agree}
#     entries:
#       - input: How do I cancel?
#         first: Just stop paying.
#         second: Open Billing.
#         better: second
#         candidate: first
#
# or as JSON lines, as for other gold sets. Pairs that people find equal are left out. `candidate`
# says which side is of the arm, or has the style, that is the candidate in a comparison. A judge
# that favours the style of one arm errs more often to its side, and only then can that be
# corrected for.

_NEEDED = ("first", "second", "better")
_PAIR_KEYS = {"id", "input", "expected", "note", "candidate", *_NEEDED}
_PAIRS_FORM = "such as `{first: Stop paying., second: Open Billing., better: second}`"


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
    provenance, entries = gold.read_entries(path)
    problems: list[str] = []
    units = list(_read_units(entries, problems))
    gold.refuse_problems(path, problems)
    if not units:
        raise gold.GoldSetError(f"{path}: the gold set holds no labelled pair; {_PAIRS_FORM}")
    try:
        return PairGold(units=tuple(units), provenance=gold.describe_provenance(provenance))
    except InvalidArgument as error:
        raise gold.GoldSetError(f"{path}: {error}") from None


def _read_units(entries: Iterable[tuple[str, Any]], problems: list[str]) -> Iterator[PairUnit]:
    for number, (where, entry) in enumerate(entries, 1):
        if isinstance(entry, gold.BrokenLine):
            problems.append(f"{where} {entry}")
        elif not isinstance(entry, dict):
            problems.append(f"{where} must be a mapping with `first`, `second` and `better`")
        elif lacking := [name for name in _NEEDED if entry.get(name) is None]:
            problems.append(f"{where} lacks `{lacking[0]}`")
        elif unknown := sorted(map(str, set(entry) - _PAIR_KEYS)):
            known = ", ".join(sorted(_PAIR_KEYS))
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
