"""Tests of promptfoo that assert the same, put together as one criterion.

Tests that differ only in the one text that an assertion compares with are put together too: the
text is then what each input expects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trialwise.contrib.importers.import_notes import Notes
from trialwise.contrib.importers.passing_sets import MOST_WEIGHED, combine_checks, find_passing_sets
from trialwise.contrib.importers.promptfoo.promptfoo_assertions import Assertion, Reader
from trialwise.contrib.importers.promptfoo.promptfoo_cases import Case
from trialwise.contrib.importers.promptfoo.promptfoo_prompts import show_value
from trialwise.contrib.importers.yaml_mappings import is_number

__all__ = ["Group", "Groups"]


@dataclass(frozen=True, slots=True)
class Group:
    """Tests that assert the same of their outputs."""

    cases: tuple[Case, ...]
    checks: tuple[dict[str, Any], ...]
    judges: tuple[dict[str, Any], ...]
    expected: tuple[str, ...] = ()
    """What each test compares with, where only that is different."""

    @property
    def title(self) -> str:
        """What a person calls it: the description of its test, or its place."""
        descriptions = dict.fromkeys(one.description for one in self.cases if one.description)
        if len(descriptions) == 1:
            return " ".join(next(iter(descriptions)).split())[:80]
        if len(self.cases) > 1:
            return f"{len(self.cases)} tests from {self.cases[0].where}"
        given = self.cases[0].variables
        shown = ", ".join(f"{name}: {show_value(value)}" for name, value in given.items())
        return " ".join(shown.split())[:60] or self.cases[0].where


@dataclass(frozen=True, slots=True)
class Groups:
    """Puts the tests of a file together."""

    notes: Notes
    reader: Reader

    def make(self, cases: Sequence[Case]) -> list[Group]:
        """Put tests together that assert the same, or the same but for one text."""
        shapes: dict[str, list[tuple[Case, list[Assertion], str | None]]] = {}
        for case in cases:
            assertions = [
                assertion
                for given, where in case.assertions
                for assertion in self._read_assertion(given, case, where)
            ]
            if not assertions:
                self.notes.leave_out("a test without an assertion: it always passes", case.where)
                continue
            shape, text = _find_shape(assertions, case.threshold)
            shapes.setdefault(shape, []).append((case, assertions, text))
        found = [self._make_group(members) for members in shapes.values()]
        return [group for group in found if group.checks or group.judges]

    def _read_assertion(
        self, given: Mapping[str, Any], case: Case, where: str
    ) -> Iterator[Assertion]:
        """Read an assertion; a set of assertions is one check."""
        if given.get("weight") == 0:
            self.notes.leave_out("an assertion of weight 0, which decides nothing", where)
            return
        if given["type"] != "assert-set":
            changed = case.is_changed
            options = case.options.get("provider")
            one = {**given, "provider": given.get("provider") or options} if options else given
            yield self.reader.read(one, case.variables, where, changed=changed)
            return
        listed = given.get("assert")
        parts = [
            assertion
            for one in (listed if isinstance(listed, list) else [])
            if isinstance(one, dict) and isinstance(one.get("type"), str)
            for assertion in self._read_assertion(one, case, where)
        ]
        threshold = given.get("threshold")
        limit = float(threshold) if isinstance(threshold, int | float) else None
        checks, judges = self._combine(parts, limit, where)
        weight = given.get("weight", 1)
        weight = float(weight) if is_number(weight) else 1.0
        if checks:
            joined = checks[0] if len(checks) == 1 else {"all_of": list(checks)}
            yield Assertion(check=joined, weight=weight, kind="assert-set")
        for judge in judges:
            yield Assertion(judge=judge, weight=weight, kind="assert-set")

    def _make_group(self, members: list[tuple[Case, list[Assertion], str | None]]) -> Group:
        texts = [text for _, _, text in members]
        cases = tuple(case for case, _, _ in members)
        _, assertions, first = members[0]
        expected: tuple[str, ...] = ()
        if first is not None and len(set(texts)) > 1:
            expected = tuple(text or "" for text in texts)
            assertions = [
                replace(one, check=_compare_expected(one.comparison[0])) if one.comparison else one
                for one in assertions
            ]
        checks, judges = self._combine(assertions, cases[0].threshold, cases[0].where)
        return Group(cases, tuple(checks), tuple(judges), expected)

    def _combine(
        self, assertions: list[Assertion], threshold: float | None, where: str
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the checks that all have to hold, and the judges beside them."""
        checks = [one for one in assertions if one.check is not None]
        judges = [one for one in assertions if one.judge is not None]
        found = [one.check for one in checks if one.check is not None]
        rubrics = [one.judge for one in judges if one.judge is not None]
        if threshold is None or not assertions:
            return found, rubrics
        if judges:
            self.notes.add(
                "A score with a `threshold` counts a rubric as failed here, since its judge "
                "decides apart",
                where,
            )
        sets: list[tuple[int, ...]] = []
        if len(checks) <= MOST_WEIGHED and all(one.weight > 0 for one in assertions):
            sets = find_passing_sets(
                [one.weight for one in checks], threshold, given=sum(one.weight for one in judges)
            )
        if not sets:
            self.notes.leave_out(
                f"a `threshold` of {threshold:g} over {len(assertions)} assertions: every one has "
                "to pass here",
                where,
            )
            return found, rubrics
        joined = combine_checks(found, sets)
        if joined is None:
            self.notes.add(f"A `threshold` of {threshold:g} is always reached", where)
        return ([] if joined is None else [joined]), rubrics


def _find_shape(assertions: Sequence[Assertion], threshold: float | None) -> tuple[str, str | None]:
    """Return what an assertion list asks, without the one text that may be the input's own."""
    compared = [one for one in assertions if one.comparison is not None]
    only = compared[0] if len(compared) == 1 else None
    parts = [
        [one.comparison[0], one.weight]
        if one is only and one.comparison is not None
        else [one.check, one.judge, one.weight]
        for one in assertions
    ]
    shape = json.dumps([parts, threshold], sort_keys=True, default=str)
    return shape, None if only is None or only.comparison is None else only.comparison[1]


def _compare_expected(how: str) -> dict[str, Any]:
    if how == "equals":
        return {"as_expected": "equals"}
    if how == "contains":
        return {"as_expected": "contains"}
    return {"as_expected": {"how": "contains", "ignore_case": True}}
