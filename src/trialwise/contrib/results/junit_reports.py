"""Outcomes as JUnit XML: what pytest, Maven, Gradle and Jest write of their tests.

    <testsuite name="pytest" tests="3">
      <testcase classname="test_agent" name="test_books[1-2]" time="0.8"/>
      <testcase classname="test_agent" name="test_books[2-2]" time="0.7">
        <failure message="assert 'confirmed' in reply">...</failure>
      </testcase>
      <testcase classname="test_agent" name="test_asks[vague]" time="0.2"/>
    </testsuite>

A test is a criterion, its parameters are its inputs, and repetitions are trials: `[1-2]` of
pytest-repeat and `repetition 1 of 2` of JUnit 5 are recognised, and so is the same test in several
suites or files. `criterion="classname"` or `"suite"` takes whole classes or suites as criteria.

- `<failure>`: the condition did not hold. `<error>`: the test broke, in pytest before or after its
  body, so there was no result: a failure of class infrastructure, or timeout where it says
  so. Both count as failures; the class only matters to the per-protocol rate.
- `<skipped>` was no trial: left out, with a note.
- A test that was *rerun because it failed* is one trial, which failed. Reruns stop at the first
  success, so that counting them would count until the answer is right. Surefire marks reruns;
  pytest-rerunfailures and flaky write a failed run as a further `<testcase>` without its failure
  and leave it out of the suite's `tests`, by which it is recognised.
- `time` is the test's own, taken as the latency.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.parsers import expat

from trialwise.contrib.results.field_records import error_class_of
from trialwise.documents.numbers import as_count
from trialwise.model.trial import ErrorClass, FailReason
from trialwise.outcomes.outcome_reading import Layout, ResultFormat
from trialwise.outcomes.outcome_rows import (
    MOST_ROWS,
    OutcomeRow,
    Outcomes,
    Problems,
    input_id_of,
    read_content,
)

__all__ = ["FORMAT", "read_junit"]

#: Deeper than any report; properties and outputs are nested three or four deep.
_DEEPEST = 40
_LONGEST_TEXT = 4000
_RERUNS = frozenset({"rerunFailure", "rerunError", "flakyFailure", "flakyError"})
_NOT_RUN = frozenset({"notrun", "disabled", "skipped"})
_PARAMETERS = re.compile(r"(.+?)\[(.*)\]", re.DOTALL)
_REPEAT = re.compile(r"(?:(.*)-)?([0-9]{1,7})-([0-9]{1,7})", re.DOTALL)
_REPETITION = re.compile(r"(.*?)[\s:(-]*repetition ([0-9]{1,7}) of [0-9]{1,7}\)?(.*)", re.DOTALL)


@dataclass(slots=True, kw_only=True)
class _Suite:
    """A suite with the tests that stand directly in it."""

    name: str
    tests: int | None
    cases: list[_Case] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Case:
    """One `<testcase>`."""

    classname: str
    name: str
    line: int
    time_s: float | None
    outcome: str = "passed"
    """Or "failure", "error", "skipped"; the gravest of its children."""
    message: str = ""
    text: str = ""
    reruns: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """The test, as a report names it."""
        return self.classname, self.name


class _Refused(Exception):
    """Ends the parsing, since expat calls back."""


def read_junit(content: bytes, *, name: str, layout: Layout, problems: Problems) -> Outcomes:
    """Read the outcomes of a report.

    >>> report = b'<testsuite><testcase classname="t" name="books"/></testsuite>'
    >>> read = read_junit(report, name="ci", layout=Layout(), problems=Problems("junit.xml"))
    >>> read.criteria, read.inputs
    (('t.books',), ('books',))
    """
    by = layout.criterion or "test"
    if by not in ("test", "classname", "suite"):
        raise problems.refuse("", f"criterion must be test, classname or suite, not {by!r}")
    suites = [suite for suite in _parse_report(content, problems) if suite.cases]
    if not suites:
        raise problems.refuse("", "a report with at least one <testcase> is expected")
    rerun = 0
    runs: list[_Run] = []
    skipped = 0
    for number, suite in enumerate(suites):
        cases, again = _trials(suite)
        rerun += again
        skipped += sum(case.outcome == "skipped" for case in cases)
        runs += _name_runs(number, suite, [one for one in cases if one.outcome != "skipped"])
    if not runs:
        raise problems.refuse("", f"all {skipped} tests were skipped: there is no outcome")
    rows = tuple(_row(run, by, layout) for run in runs)
    return Outcomes(
        rows=rows,
        name=name,
        source=problems.path,
        format="junit",
        passing="no failure and no error",
        notes=tuple(_notes(skipped, rerun, rows)),
    )


def _notes(skipped: int, rerun: int, rows: Sequence[OutcomeRow]) -> Iterable[str]:
    if skipped:
        yield f"Skipped and not counted: {as_count(skipped, 'test')}."
    if rerun:
        yield (
            f"Run again because they failed: {as_count(rerun, 'test')}. Reruns end with the first "
            "success and are not trials, so that each of these tests counts as one that failed."
        )
    broken = sum(row.error_class is not ErrorClass.NONE for row in rows)
    if broken:
        yield f"Broken (<error>) and counted as failures: {as_count(broken, 'test')}."


# --- The file -------------------------------------------------------------------------------------


def _parse_report(content: bytes, problems: Problems) -> list[_Suite]:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    reader = _Reader(parser)
    parser.StartDoctypeDeclHandler = reader.doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, _Refused, ValueError, LookupError) as error:
        # LookupError and ValueError: an encoding that Python does not know.
        where = f"line {parser.CurrentLineNumber}"
        expected = "" if isinstance(error, _Refused) else "XML is expected: "
        raise problems.refuse(where, f"{expected}{error}") from None
    return reader.suites


class _Reader:
    """Builds the suites as the parser goes along, so that no tree is ever held."""

    def __init__(self, parser: Any) -> None:
        self.suites: list[_Suite] = []
        self._parser = parser
        self._depth = 0
        self._open: list[_Suite] = []
        self._case: _Case | None = None
        self._inside: str | None = None
        self._count = 0

    def doctype(self, *_: object) -> None:
        """A document type may define entities, which expand without bound or name files."""
        raise _Refused("a report has no document type (<!DOCTYPE …>)")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _Refused(f"elements are nested more than {_DEEPEST} deep")
        if self._depth == 1 and tag not in ("testsuites", "testsuite", "testcase"):
            raise _Refused(f"a report of <testsuites> is expected, not of <{tag[:40]}>")
        if tag == "testsuite":
            self._suite(attributes.get("name", ""), _whole(attributes.get("tests")))
        elif tag == "testcase" and self._case is None:
            self._begin(attributes)
        elif self._case is not None:
            self._child(tag, attributes)

    def end(self, tag: str) -> None:
        """An element ends."""
        self._depth -= 1
        if tag == "testcase":
            self._case = None
        elif tag == "testsuite" and self._open:
            self._open.pop()
        elif tag == self._inside:
            self._inside = None

    def characters(self, text: str) -> None:
        """Text, which is kept of failures and errors alone."""
        case = self._case
        if self._inside is not None and case is not None and len(case.text) < _LONGEST_TEXT:
            case.text += text[: _LONGEST_TEXT - len(case.text)]

    def _suite(self, name: str, tests: int | None) -> None:
        suite = _Suite(name=name, tests=tests)
        self.suites.append(suite)
        self._open.append(suite)

    def _begin(self, attributes: dict[str, str]) -> None:
        if not self._open:
            self._suite("", None)
        self._count += 1
        if self._count > MOST_ROWS:
            raise _Refused(f"at most {MOST_ROWS:,} tests are read")
        not_run = attributes.get("status", "").casefold() in _NOT_RUN
        self._case = _Case(
            classname=attributes.get("classname", "").strip(),
            name=attributes.get("name", "").strip() or "(not named)",
            line=self._parser.CurrentLineNumber,
            time_s=_seconds(attributes.get("time")),
            outcome="skipped" if not_run else "passed",
        )
        self._open[-1].cases.append(self._case)

    def _child(self, tag: str, attributes: dict[str, str]) -> None:
        case = self._case
        assert case is not None
        if tag in _RERUNS:
            case.reruns += 1
        if tag in ("failure", "error") and case.outcome not in ("failure", "error"):
            case.outcome = tag
            case.message = attributes.get("message", "") or attributes.get("type", "")
            self._inside = tag
        elif tag == "skipped" and case.outcome == "passed":
            case.outcome = "skipped"
            case.message = attributes.get("message", "")


def _seconds(text: str | None) -> float | None:
    try:
        # Some writers group thousands.
        value = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,9}", text) else None


# --- Which tests were trials ----------------------------------------------------------------------


def _trials(suite: _Suite) -> tuple[list[_Case], int]:
    """The trials of a suite, and how many of them were run again."""
    cases = _without_teardowns(suite.cases)
    surplus = len(cases) - len({case.key for case in cases})
    uncounted = suite.tests is not None and suite.tests <= len(suite.cases) - surplus
    rerun: dict[tuple[str, str], int] = {
        key: count - 1
        for key, count in Counter(case.key for case in cases).items()
        if surplus and uncounted and count > 1
    }
    kept: dict[int, _Case] = {}
    first: dict[tuple[str, str], _Case] = {}
    for place, case in enumerate(cases):
        again = rerun.get(case.key, case.reruns)
        if case.key in rerun and first.setdefault(case.key, case) is not case:
            continue
        kept[place] = _failed_first(case, again) if again else case
    return list(kept.values()), sum(case.outcome == "rerun" for case in kept.values())


def _failed_first(case: _Case, again: int) -> _Case:
    times = "once" if again == 1 else f"{again} times"
    message = f"failed, and was run again {times}"
    return replace(case, outcome="rerun", message=f"{message}: {case.message}".rstrip(": "))


def _without_teardowns(cases: Sequence[_Case]) -> list[_Case]:
    """Without the second entry that pytest makes of a failed test whose teardown fails too."""
    failed = {case.key for case in cases if case.outcome == "failure"}
    return [
        case
        for case in cases
        if not (
            case.outcome == "error"
            and case.message.startswith("failed on teardown")
            and case.key in failed
        )
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A test case with what its name says."""

    case: _Case
    suite: str
    test: str
    """Without parameters."""
    parameters: str | None
    trial: str | None


def _name_runs(number: int, suite: _Suite, cases: Sequence[_Case]) -> list[_Run]:
    repeated = _find_repeated(cases)
    runs = []
    for case in cases:
        test, parameters, trial = _parts(case)
        if parameters is not None and (found := _REPEAT.fullmatch(parameters)) is not None:
            rest, place, of = found.groups()
            if (case.classname, test, rest, of) in repeated:
                parameters, trial = rest, place
        runs.append(
            _Run(
                case=case,
                suite=suite.name,
                test=test,
                parameters=parameters,
                # The same repetition may stand in several suites.
                trial=None if trial is None else f"{number}.{trial}",
            )
        )
    return runs


def _parts(case: _Case) -> tuple[str, str | None, str | None]:
    """Name, parameters and repetition."""
    if (found := _REPETITION.fullmatch(case.name)) is not None:
        before, place, after = found.groups()
        name = f"{before}{after}".strip() or case.classname.rpartition(".")[2] or "(not named)"
        return name, None, place
    if (found := _PARAMETERS.fullmatch(case.name)) is not None:
        return found[1], found[2], None
    return case.name, None, None


def _find_repeated(cases: Iterable[_Case]) -> set[tuple[str, str, str | None, str]]:
    """What pytest-repeat repeated: `2-4` may be a parameter, several of 1-4 … 4-4 are not."""
    seen: dict[tuple[str, str, str | None, str], set[int]] = {}
    for case in cases:
        test, parameters, _ = _parts(case)
        found = _REPEAT.fullmatch(parameters) if parameters is not None else None
        if found is not None:
            rest, place, of = found.groups()
            seen.setdefault((case.classname, test, rest, of), set()).add(int(place))
    return {
        key
        for key, places in seen.items()
        if len(places) > 1 and min(places) >= 1 and max(places) <= int(key[3])
    }


def _row(run: _Run, by: str, layout: Layout) -> OutcomeRow:
    case = run.case
    test = run.test if run.parameters is None else f"{run.test}[{run.parameters}]"
    if by == "test":
        criterion = f"{case.classname}.{run.test}" if case.classname else run.test
    else:
        criterion = case.classname if by == "classname" else run.suite
        if by == "suite" and case.classname:
            test = f"{case.classname}.{test}"
    criterion = input_id_of(criterion) or "(not named)"
    fields: dict[str, Any] = {}
    if case.outcome == "error":
        message = case.message or case.text
        fields = {
            "reason": FailReason.NO_VALUE,
            "error_class": error_class_of(message, layout),
            "error": message,
        }
    if case.outcome != "passed":
        fields |= {"explanation": case.message or case.outcome, "evidence": case.text.strip()}
    return OutcomeRow(
        input_id=input_id_of(test),
        criterion=criterion,
        group=criterion,
        passed=case.outcome == "passed",
        trial=run.trial,
        latency_s=case.time_s,
        where=f"line {case.line}",
        **fields,
    )


def _read(path: Path, **arguments: Any) -> Outcomes:
    return read_junit(read_content(path), **arguments)


FORMAT = ResultFormat(name="junit", read=_read)
