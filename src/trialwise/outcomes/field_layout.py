"""Which field of a file means what, and which values mean passed, failed or broken."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from trialwise.errors import InvalidArgument
from trialwise.model.trial import ErrorClass
from trialwise.validation import require_choice, require_real

__all__ = ["FIELDS", "Layout", "Mark", "Unread", "error_class_of"]

#: Names that are looked for if the layout gives none, in this order.
FIELDS: dict[str, tuple[str, ...]] = {
    "input": ("input_id", "input", "id", "case", "question"),
    "result": (
        "passed",
        "pass",
        "success",
        "ok",
        "correct",
        "result",
        "outcome",
        "status",
        "score",
    ),
    "criterion": ("criterion", "metric", "check"),
    "trial": ("trial", "epoch", "repetition", "repeat"),
    "order": ("order", "started_at", "timestamp"),
    "latency": ("latency_s", "latency_ms", "duration_s", "duration_ms"),
    "cost": ("cost_usd", "cost"),
    "input_tokens": ("input_tokens", "prompt_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens"),
    "error": ("error",),
    "error_class": ("error_class",),
    "explanation": ("explanation", "reason", "message"),
    "evidence": ("evidence", "reply", "output", "answer"),
}

_PASSES = frozenset(
    ("true", "t", "yes", "y", "pass", "passed", "ok", "success", "succeeded", "correct", "c")
)
_FAILS = frozenset(
    ("false", "f", "no", "n", "fail", "failed", "failure", "incorrect", "wrong", "i")
)
_SKIPS = frozenset(("skip", "skipped", "disabled", "notrun", "not-run", "xfail", "xfailed"))
_MISSING = frozenset(("", "null", "none", "nan", "na", "n/a", "unscored"))
_ERRORS = {
    "error": ErrorClass.INFRASTRUCTURE,
    "errored": ErrorClass.INFRASTRUCTURE,
    "exception": ErrorClass.INFRASTRUCTURE,
    "timed out": ErrorClass.TIMEOUT,
    **{str(one): one for one in ErrorClass if one is not ErrorClass.NONE},
}
_NUMBER = re.compile(r"[-+]?(\d{1,15}\.?\d{0,17}|\.\d{1,17})([eE][-+]?\d{1,3})?")
_TIMEOUT = re.compile(r"\btim(?:ed?|ing)[ -]?out", re.IGNORECASE)


class Unread(ValueError):
    """A value that cannot be read as a result; the message names values that can."""


class Mark(NamedTuple):
    """The result that one value stands for."""

    passed: bool | None
    """None if there is no result, which counts as a failure."""
    error_class: ErrorClass = ErrorClass.NONE
    skipped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which field means what. Names are those of columns or JSON fields, dotted if nested.

    >>> layout = Layout(result=("score",), pass_at=0.7)
    >>> layout.mark(0.8).passed, layout.mark("error").error_class
    (True, <ErrorClass.INFRASTRUCTURE: 'infrastructure'>)
    """

    input: str | None = None
    result: tuple[str, ...] = ()
    """The fields that hold results; each is a criterion."""
    criterion: str | None = None
    """The field that names the criterion, if every criterion has its own line."""
    trial: str | None = None
    order: str | None = None
    latency: str | None = None
    """The field with the latency in seconds, or in milliseconds if its name ends in `_ms`."""
    cost: str | None = None
    explanation: str | None = None
    evidence: str | None = None
    passes: frozenset[str] | None = None
    """Words that mean passed; every other word then means failed."""
    errors: frozenset[str] = frozenset()
    """Further words that mean that the trial broke."""
    skips: frozenset[str] = _SKIPS
    """Words that mean that there was no trial."""
    pass_at: float | None = None
    """The lowest score that passes; without it only 0 and 1 are results."""
    error_class: ErrorClass | str = ErrorClass.INFRASTRUCTURE
    """The error class of trials that broke without saying how."""
    delimiter: str | None = None
    """The character between columns; by default the most frequent of `,`, `;` and tab."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "passes", None if self.passes is None else _words("passes", self.passes))
        put(self, "errors", _words("errors", self.errors))
        put(self, "skips", _words("skips", self.skips))
        if self.pass_at is not None:
            put(self, "pass_at", require_real("pass_at", self.pass_at))
        known = tuple(str(one) for one in ErrorClass)
        put(self, "error_class", ErrorClass(require_choice("error_class", self.error_class, known)))
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise InvalidArgument("delimiter", self.delimiter, "be one character, and no quote")

    @property
    def broken(self) -> ErrorClass:
        """The class of a trial that broke without saying how."""
        return ErrorClass(self.error_class)

    @property
    def passing(self) -> str:
        """What counts as passed, if this layout changes it."""
        parts = [] if self.pass_at is None else [f">= {self.pass_at:g}"]
        parts += [] if self.passes is None else [f"in {', '.join(sorted(self.passes))}"]
        return " or ".join(parts)

    def mark(self, value: Any) -> Mark:
        """Read a value as a result.

        Raises:
            Unread: The value is not a result.
        """
        if value is None:
            return Mark(None)
        if isinstance(value, bool):
            return Mark(value)
        if isinstance(value, int | float):
            return Mark(None) if value != value else Mark(self._reaches(value))  # noqa: PLR0124 - NaN
        if isinstance(value, str):
            return self._word(value)
        raise Unread(f"{_shorten(value)} is not a single result: name one inside it, such as `a.b`")

    def _word(self, text: str) -> Mark:
        word = " ".join(text.split()).casefold()
        broken = self._broken(word)
        if word in self.skips:
            return Mark(None, skipped=True)
        if self.passes is not None and word in self.passes:
            return Mark(True)
        if broken is not None or word in _MISSING:
            return Mark(None, broken or ErrorClass.NONE)
        return Mark(self._passes(text, word))

    def _broken(self, word: str) -> ErrorClass | None:
        found = self.broken if word in self.errors else _ERRORS.get(word)
        return self.broken if found is ErrorClass.INFRASTRUCTURE else found

    def _passes(self, text: str, word: str) -> bool:
        if self.passes is not None and self.pass_at is None:
            return False
        if _NUMBER.fullmatch(word):
            return self._reaches(float(word))
        if word in _PASSES or word in _FAILS:
            return word in _PASSES
        raise Unread(
            f"{_shorten(text)} is neither passed nor failed; say which words pass (passes), or "
            "give the least score that does (pass_at)"
        )

    def _reaches(self, score: float) -> bool:
        if self.pass_at is not None:
            return score >= self.pass_at
        if score in (0, 1):
            return score == 1
        raise Unread(
            f"a score of {score!r} is neither 0 nor 1: give the least score that passes (pass_at)"
        )


def error_class_of(text: str, layout: Layout) -> ErrorClass:
    """Find the class of an error by its message: a timeout is the service's own failure."""
    return ErrorClass.TIMEOUT if _TIMEOUT.search(text) else layout.broken


def _words(argument: str, given: Iterable[str]) -> frozenset[str]:
    words = [" ".join(str(one).split()).casefold() for one in given]
    if not all(words):
        raise InvalidArgument(argument, given, "be words")
    return frozenset(words)


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
