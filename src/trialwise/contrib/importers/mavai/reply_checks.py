"""What a mavai criterion asks of a reply, where a suite file has no postcondition for it.

An imported suite names functions that are made here, in a module beside it: checks over views of
the reply, selected values compared as decimals or as sets, optional checks with their slack, and
what is expected of one input alone. The forms keep the names of mavai.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias

from trialwise.checks.check_base import Unreadable, failed, preview, shown
from trialwise.checks.reply_reading import same, text_of
from trialwise.contrib.importers.mavai.form_comparison import FORMS, Mismatch
from trialwise.contrib.importers.mavai.reply_views import View, select_values, view_of
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply
from trialwise.model.trial import CheckResult, FailReason

__all__ = ["Judge", "criterion"]

Spec: TypeAlias = Mapping[str, Any]

_QUALIFIERS = ("in", "path", "optional")


def criterion(
    checks: Sequence[Spec] = (),
    *,
    views: Mapping[str, str | Callable[[str], Any]] | None = None,
    functions: Mapping[str, Callable[[Any], object]] | None = None,
    optional_slack: int | str = 0,
    expected: Sequence[tuple[Any, Sequence[Spec]]] = (),
) -> Judge:
    """Make a function that checks a reply as baseltest does.

    Args:
        checks: Each of one form, as `{"in": "doc", "path": "$.premium", "eq": 2637.8}`.
        views: What `in` may name: `json`, `xml`, `yaml`, or a function of the reply's text.
        functions: What `satisfies` may name.
        optional_slack: How many checks marked `optional` may fail, or a percentage of them.
        expected: Further checks for one input each, beside that input.

    >>> check = criterion([{"in": "doc", "path": "$.n", "gt": 2}], views={"doc": "json"})
    >>> check(Reply(value='{"n": 3}')).passed, check(Reply(value='{"n": 2}')).explanation
    (True, '$.n: 2 is not greater than 2')
    """
    return Judge(
        checks=list(checks),
        views=dict(views or {}),
        functions=dict(functions or {}),
        optional_slack=optional_slack,
        expected=[(given, list(several)) for given, several in expected],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """A criterion of a contract, to be called with a reply.

    An object and not a closure: what it asks is in its fields, so that a baseline knows it.
    """

    checks: list[Spec]
    views: dict[str, str | Callable[[str], Any]]
    functions: dict[str, Callable[[Any], object]]
    optional_slack: int | str
    expected: list[tuple[Any, list[Spec]]]
    _always: list[_Check] = field(init=False, repr=False, compare=False)
    _by_input: list[tuple[Any, list[_Check]]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = {name: view_of(one) for name, one in self.views.items()}

        def make_checks(several: list[Spec]) -> list[_Check]:
            return [_Check.read(one, known, self.functions) for one in several]

        object.__setattr__(self, "_always", make_checks(self.checks))
        by_input = [(given, make_checks(several)) for given, several in self.expected]
        object.__setattr__(self, "_by_input", by_input)

    @property
    def __name__(self) -> str:
        """How reports call it."""
        forms = [key for one in self.checks for key in one if key not in _QUALIFIERS]
        more = ["expected"] if self.expected else []
        return f"checks ({', '.join(dict.fromkeys([*forms, *more]))})"

    def __call__(self, reply: Reply) -> CheckResult:
        """What it says of a reply."""
        try:
            return _decide_checks(
                reply, [*self._always, *self._find_expected(reply)], self.optional_slack
            )
        except Unreadable as error:
            return failed(error.explanation, error.evidence, reason=error.reason)

    def _find_expected(self, reply: Reply) -> list[_Check]:
        if not self._by_input:
            return []
        if "input" not in reply.details:
            raise Unreadable("the trial's input is not known", reason=FailReason.NO_VALUE)
        found = reply.details["input"]
        return [check for given, checks in self._by_input if same(given, found) for check in checks]


def _decide_checks(reply: Reply, checks: list[_Check], slack: int | str) -> CheckResult:
    """Every required check holds, and no more of the optional ones fail than may."""
    text = text_of(reply)
    seen: dict[str, Any] = {}
    required: CheckResult | None = None
    optional: list[CheckResult] = []
    for check in checks:
        result = check.decide(text, seen)
        if result.passed:
            continue
        if result.reason is FailReason.TRANSFORM:
            # What cannot be read is not within any slack.
            return required or result
        if check.is_optional:
            optional.append(result)
        else:
            required = required or result
    if required is not None:
        return required
    allowed = _allowance(slack, sum(check.is_optional for check in checks))
    return optional[0] if len(optional) > allowed else CheckResult.ok()


def _allowance(slack: int | str, optional: int) -> int:
    """How many of the optional checks may fail; a percentage is rounded down."""
    if isinstance(slack, int):
        return slack
    return int(Decimal(slack.rstrip("%")) * optional / 100)


class _Check:
    """One form over one view, perhaps at a path."""

    def __init__(
        self,
        form: str,
        operand: Any,
        *,
        view: View | None,
        name: str,
        path: str | None,
        is_optional: bool,
        function: Callable[[Any], object] | None,
    ) -> None:
        self.is_optional = is_optional
        self._form = form
        self._operand = operand
        self._view = view
        self._name = name
        self._path = path
        self._function = function
        self._select = None if path is None or view is None else select_values(view, path)

    @classmethod
    def read(
        cls, spec: Spec, views: Mapping[str, View], functions: Mapping[str, Callable[[Any], object]]
    ) -> _Check:
        """A check from its spelling, refused if that is wrong."""
        forms = [key for key in spec if key not in _QUALIFIERS]
        if len(forms) != 1 or (forms[0] not in FORMS and forms[0] not in ("parses", "satisfies")):
            raise InvalidArgument("check", dict(spec), "hold exactly one form")
        form, operand = forms[0], spec[forms[0]]
        name = operand if form == "parses" else spec.get("in", "raw")
        if name != "raw" and name not in views:
            raise InvalidArgument("in", name, f"be one of raw, {', '.join(views)}")
        if form == "satisfies" and operand not in functions:
            raise InvalidArgument("satisfies", operand, "be one of the functions given")
        path = spec.get("path")
        if path is not None and name == "raw":
            raise InvalidArgument("path", path, "go with a view")
        return cls(
            form,
            operand,
            view=views.get(name),
            name=name,
            path=path,
            is_optional=spec.get("optional") is True,
            function=functions[operand] if form == "satisfies" else None,
        )

    def decide(self, text: str, seen: dict[str, Any]) -> CheckResult:
        """What it says of a reply.

        Args:
            text: The reply's.
            seen: The views computed so far, each at most once.
        """
        subject: Any = text
        if self._view is not None:
            try:
                if self._name not in seen:
                    seen[self._name] = self._view.read(text)
                subject = seen[self._name]
            except ValueError as error:
                why = f"the reply cannot be read as {self._name}: {error}"
                return failed(why, preview(text), reason=FailReason.TRANSFORM)
        if self._form == "parses":
            return CheckResult.ok()
        try:
            self._compare(subject)
        except Mismatch as mismatch:
            where = f"{self._path}: " if self._path is not None else ""
            return failed(f"{where}{mismatch}", _evidence(subject, text))
        return CheckResult.ok()

    def _compare(self, subject: Any) -> None:
        if self._function is not None:
            try:
                holds = bool(self._function(subject))
            except Exception as error:  # the user's function may raise anything
                raise Mismatch(f"{self._operand} raised {type(error).__name__}") from error
            if not holds:
                raise Mismatch(f"{self._operand} does not hold")
            return
        form = FORMS[self._form]
        if self._select is None:
            form.compare(subject, self._operand)
            return
        values = self._select(subject)
        if form.is_collective:
            form.compare(values, self._operand)
            return
        if not values and self._form != "is-null":
            raise Mismatch("selects nothing")
        for value in values:
            form.compare(form.project(value), self._operand)


def _evidence(subject: Any, text: str) -> str:
    return shown(subject) if isinstance(subject, dict | list) else preview(text)
