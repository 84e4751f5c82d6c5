"""Read records with named fields, which JSON lines and tables have in common.

Every record is one trial with one or several results, or, where a field names the criterion, one
result of one criterion:

    {"input": "q1", "passed": true}                        a trial, one criterion
    {"input": "q1", "polite": true, "grounded": false}     a trial, result=["polite", "grounded"]
    {"input": "q1", "criterion": "polite", "passed": 1}    one line a criterion

A `Layout` says which field means what; `read_mark` says which values mean passed, failed or broken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

from trialwise.documents.numbers import as_count
from trialwise.model.reply import Usage
from trialwise.model.trial import ErrorClass, FailReason
from trialwise.outcomes.outcome_reading import Layout
from trialwise.outcomes.outcome_rows import (
    MOST_ROWS,
    OutcomeRow,
    Outcomes,
    Problems,
    amount,
    count,
    input_id_of,
    moment,
)

Record: TypeAlias = tuple[str, Mapping[str, Any]]
"""The place of a record in its file, and its fields."""


#: The input of records that do not name one.
ONE_INPUT = "(not named)"


_ABSENT: Any = object()

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


def read_records(
    records: Sequence[Record], *, name: str, form: str, layout: Layout, problems: Problems
) -> Outcomes:
    """Read records into rows.

    Args:
        records: At least one.
        name: What was tested, by default.
        form: The format's name.
        layout: Which field is what.
        problems: The problems of the file.
    """
    fields = _Fields(records, layout, problems)
    rows: list[OutcomeRow] = []
    skipped = 0
    for where, record in records:
        made = list(fields.rows(where, record))
        skipped += made.count(None)
        rows += [row for row in made if row is not None]
        if len(rows) > MOST_ROWS:
            raise problems.refuse(where, f"at most {MOST_ROWS:,} outcomes are read")
    problems.check()
    if not rows:
        raise problems.refuse("", "no record holds an outcome: all of them were skipped")
    notes = [f"Skipped and not counted: {as_count(skipped, 'outcome')}."] if skipped else []
    if fields.input is None:
        notes.append(
            "No field names the input, so that all records count as trials of one input; say "
            "which one does (input) where they are several."
        )
    result = "" if fields.criterion is None else fields.results[0]
    return Outcomes(
        rows=tuple(rows),
        name=name,
        source=problems.path,
        format=form,
        passing=" ".join(part for part in (result, layout.passing) if part) or "passed",
        notes=tuple(notes),
        pass_at=layout.pass_at,
    )


class _Fields:
    """Finds out which field of the records means what."""

    def __init__(self, records: Sequence[Record], layout: Layout, problems: Problems) -> None:
        self._records = records
        self._layout = layout
        self._problems = problems
        self._names = dict.fromkeys(name for _, record in records for name in record)
        self.criterion = self._find("criterion", layout.criterion)
        self.results = self._results()
        self.input = self._find("input", layout.input)
        named = ("trial", "order", "latency", "cost", "explanation", "evidence")
        self._at = {what: self._find(what, getattr(layout, what)) for what in named}
        others = ("input_tokens", "output_tokens", "error", "error_class")
        self._at |= {what: self._find(what, None) for what in others}
        problems.check()

    def _results(self) -> tuple[str, ...]:
        layout = self._layout
        if layout.result:
            found = tuple(self._find("result", one) or one for one in layout.result)
            if self.criterion is not None and len(found) > 1:
                self._problems.add(
                    "", f"several results need no `{self.criterion}` to name the criterion"
                )
            return found
        if (one := self._find("result", None)) is not None:
            return (one,)
        usual = ", ".join(FIELDS["result"])
        raise self._problems.refuse(
            "", f"no field is a result: there are {self._list_fields()}, and {usual} are looked for"
        )

    def _find(self, what: str, given: str | None) -> str | None:
        """Find a field by its given name, which must exist, or by a usual name."""
        if given is None:
            return next((name for name in FIELDS[what] if name in self._names), None)
        if all(_get(record, given) is _ABSENT for _, record in self._records):
            self._problems.add(
                "", f"no record has a field `{given}`; there are {self._list_fields()}"
            )
        return given

    def _list_fields(self) -> str:
        names = list(self._names)
        return ", ".join(f"`{name}`" for name in names[:12]) + (", …" if len(names) > 12 else "")

    def rows(self, where: str, record: Mapping[str, Any]) -> Iterable[OutcomeRow | None]:
        """Return the outcomes of one record; None for one that was skipped."""
        try:
            shared = self._read_shared_fields(record)
        except Unread as error:
            self._problems.add(where, str(error))
            return
        for result in self.results:
            try:
                mark = read_mark(self._value(record, result), self._layout)
            except Unread as error:
                message = f"`{result}`: {error}"
                if error.concerns_all:
                    raise self._problems.refuse(where, message) from None
                self._problems.add(where, message)
                continue
            if mark.skipped:
                yield None
                continue
            name = result if self.criterion is None else self._read_criterion(where, record)
            if name is not None:
                fields = self._explain_failure(record, mark)
                yield OutcomeRow(criterion=name, where=where, score=mark.score, **shared, **fields)

    def _read_criterion(self, where: str, record: Mapping[str, Any]) -> str | None:
        assert self.criterion is not None
        value = _get(record, self.criterion)
        name = input_id_of(value) if isinstance(value, str | int) else ""
        if not name:
            self._problems.add(where, f"`{self.criterion}` must name the criterion")
        return name or None

    def _value(self, record: Mapping[str, Any], field: str) -> Any:
        value = _get(record, field)
        return None if value is _ABSENT else value

    def _optional(self, record: Mapping[str, Any], what: str) -> Any:
        field = self._at[what]
        value = None if field is None else self._value(record, field)
        return None if isinstance(value, str) and not value.strip() else value

    def _read_shared_fields(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Read what all outcomes of a record have in common."""
        shared: dict[str, Any] = {"input_id": ONE_INPUT}
        if self.input is not None:
            value = self._value(record, self.input)
            shared["input_id"] = "" if value is None else input_id_of(value)
            if not shared["input_id"]:
                raise Unread(f"`{self.input}` must name the input")
        trial = self._optional(record, "trial")
        if trial is not None:
            shared["trial"] = input_id_of(trial)
        order = self._optional(record, "order")
        if order is not None:
            allowed = "a number or a time such as 2026-05-15T08:30:00Z"
            shared["order"] = _require_value(moment(order), self._at["order"], order, allowed)
        for what, key in (("latency", "latency_s"), ("cost", "cost_usd")):
            given = self._optional(record, what)
            if given is not None:
                field = self._at[what]
                found = _require_value(amount(given), field, given, "a number of at least 0")
                shared[key] = found / 1000 if str(field).endswith("_ms") else found
        tokens = {
            name: int(_require_value(count(given), self._at[name], given, "a whole number"))
            for name in ("input_tokens", "output_tokens")
            if (given := self._optional(record, name)) is not None
        }
        if tokens:
            shared["usage"] = Usage(**tokens)
        return shared

    def _explain_failure(self, record: Mapping[str, Any], mark: Mark) -> dict[str, Any]:
        """Read why a trial failed."""
        if mark.passed:
            return {"passed": True}
        error = _as_text(self._optional(record, "error"))
        fields: dict[str, Any] = {
            "passed": False,
            "explanation": _as_text(self._optional(record, "explanation")) or error,
            "evidence": _as_text(self._optional(record, "evidence")),
        }
        if mark.passed is not None:
            return fields
        fields |= {"reason": FailReason.NO_VALUE, "error": error, "error_class": mark.error_class}
        fields["explanation"] = fields["explanation"] or "the file holds no result"
        stated = self._optional(record, "error_class")
        if isinstance(stated, str) and stated in {str(one) for one in ErrorClass}:
            fields["error_class"] = ErrorClass(stated)
        elif error and mark.error_class is ErrorClass.NONE:
            fields["error_class"] = error_class_of(error, self._layout)
        return fields


def _get(record: Mapping[str, Any], field: str) -> Any:
    """Return a field by its name, or by a dotted path to it."""
    if field in record:
        return record[field]
    value: Any = record
    for part in field.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return _ABSENT
        value = value[part]
    return value


def _require_value(found: float | None, field: str | None, value: Any, allowed: str) -> float:
    if found is None:
        raise Unread(f"`{field}` must be {allowed}, got {value!r}")
    return found


def _as_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return input_id_of(value)


class Unread(ValueError):
    """A value that cannot be read as a result; the message names values that can."""

    concerns_all: ClassVar[bool] = False
    """Whether the same has to be said of most values, so that it is said once."""


class ScoreUnread(Unread):
    """A score is neither 0 nor 1, and nobody said which scores pass."""

    concerns_all = True


class Mark(NamedTuple):
    """The result that one value stands for."""

    passed: bool | None
    """None if there is no result, which counts as a failure."""
    error_class: ErrorClass = ErrorClass.NONE
    skipped: bool = False
    score: float | None = None
    """The score that was held against `pass_at`."""


def read_mark(value: Any, layout: Layout) -> Mark:
    """Read a value as a result.

    >>> read_mark("error", Layout()).error_class
    <ErrorClass.INFRASTRUCTURE: 'infrastructure'>

    Raises:
        Unread: The value is not a result.
    """
    if value is None:
        return Mark(None)
    if isinstance(value, bool):
        return Mark(value)
    if isinstance(value, int | float):
        return Mark(None) if value != value else _grade(value, layout)  # noqa: PLR0124 - NaN
    if isinstance(value, str):
        return _read_word(value, layout)
    raise Unread(f"{_shorten(value)} is not a single result: name one inside it, such as `a.b`")


def _read_word(text: str, layout: Layout) -> Mark:
    word = " ".join(text.split()).casefold()
    broken = _find_trouble(word, layout)
    if word in layout.skips:
        return Mark(None, skipped=True)
    if layout.passes is not None and word in layout.passes:
        return Mark(True)
    if broken is not None or word in _MISSING:
        return Mark(None, broken or ErrorClass.NONE)
    if _NUMBER.fullmatch(word) and (layout.passes is None or layout.pass_at is not None):
        return _grade(float(word), layout)
    return Mark(_passes(text, word, layout))


def _grade(score: float, layout: Layout) -> Mark:
    return Mark(_reaches(score, layout), score=None if layout.pass_at is None else float(score))


def _find_trouble(word: str, layout: Layout) -> ErrorClass | None:
    found = layout.broken if word in layout.errors else _ERRORS.get(word)
    return layout.broken if found is ErrorClass.INFRASTRUCTURE else found


def _passes(text: str, word: str, layout: Layout) -> bool:
    if layout.passes is not None and layout.pass_at is None:
        return False
    if word in _PASSES or word in _FAILS:
        return word in _PASSES
    raise Unread(
        f"{_shorten(text)} is neither passed nor failed; say which words pass (passes), or "
        "give the least score that does (pass_at)"
    )


def _reaches(score: float, layout: Layout) -> bool:
    if layout.pass_at is not None:
        return score >= layout.pass_at
    if score in (0, 1):
        return score == 1
    raise ScoreUnread(
        f"a score of {score!r} is neither 0 nor 1: say which score passes, such as "
        "`--pass-at 0.7` (in Python `pass_at=0.7`)"
    )


def error_class_of(text: str, layout: Layout) -> ErrorClass:
    """Find the class of an error by its message: a timeout is the service's own failure."""
    return ErrorClass.TIMEOUT if _TIMEOUT.search(text) else layout.broken


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
