"""Which of two outputs is better, asked twice with the places swapped.

Models prefer whatever stands first, or last. Only a preference that survives the swap counts; one
that does not is a tie, and is counted as such. Higher always means that the candidate is better.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any

from trialwise.engine.criterion_progress import derive_seed
from trialwise.engine.ports import Service, SystemClock, Timer, gather
from trialwise.errors import InvalidArgument
from trialwise.judges import jurors, votes
from trialwise.judges.calibration import Calibration, GoldFiles
from trialwise.model.fingerprint import fingerprint
from trialwise.stats.agreement import Confusion
from trialwise.stats.paired import paired_difference_interval, sign_test
from trialwise.stats.result_types import Interval, Undefined
from trialwise.validation import require_open_rate, require_text

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


#: What both answers come to: whom each of them prefers, 1 for the candidate.
_BY_SIGNS = {
    frozenset({1}): Preference.WIN,
    frozenset({-1}): Preference.LOSS,
    frozenset({-1, 1}): Preference.INCONSISTENT,
}


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
    """The ties in which the answer changed when the two replies swapped places."""
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
        asked = {"rubric": self.rubric, "juror": self.juror.name, "output_limit": self.output_limit}
        return fingerprint([{"pairwise": asked}, votes.PROMPT_VERSION])

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
        # Both orders, with a seed for each: judges prefer a place as well as a reply (Zheng and
        # others 2023), and one answer cannot tell which of the two it was.
        pairs = (candidate, reference), (reference, candidate)
        seeds = [derive_seed("pair", seed, place) for place in ("0", "1")]
        ask = partial(self._ask, beside=(given, expected), expenses=expenses)
        calls = [partial(ask, pair, one) for pair, one in zip(pairs, seeds, strict=True)]
        first, second = await gather(calls)
        self.expenses.take(expenses)
        return _comparison(first, second)

    async def aclose(self) -> None:
        """Close the juror's connections."""
        await self.juror.service.aclose()

    async def _ask(
        self, pair: tuple[str, str], seed: int, beside: tuple[Any, Any], expenses: jurors.Expenses
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
        interval = replace(found, low=(1 + found.low) / 2, high=(1 + found.high) / 2)
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
        nothing, why = Undefined("an answer is missing"), missing.error
        return Comparison(preference=Preference.MISSING, score=nothing, explanation=why)
    scores = (_score(candidate_first.value, "first"), _score(candidate_second.value, "second"))
    signs = frozenset((score > _EQUAL) - (score < _EQUAL) for score in scores)
    return Comparison(
        preference=_BY_SIGNS.get(signs, Preference.TIE),
        score=sum(scores) / 2,
        explanation=candidate_first.value.reasoning,
    )


def _score(choice: votes.Choice, place: str) -> float:
    """Return what an answer is worth to the candidate, which stood at that place."""
    if choice.better == "equal":
        return _EQUAL
    chosen = _MUCH if choice.much else _SLIGHTLY
    return chosen if choice.better == place else 1 - chosen
