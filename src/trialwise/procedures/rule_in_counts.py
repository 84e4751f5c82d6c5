"""A sequential rule as a person would apply it: how many failures after how many trials.

A design keeps a boundary for every number of trials; a person needs only the steps, and only those
at which a run can still be going.
"""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.stats.sequential.design import SequentialDesign

#: A rule with more steps than this is shown by its beginning and its end.
MOST_STEPS, FIRST_STEPS, LAST_STEPS = 12, 7, 2


def describe_rule(design: SequentialDesign) -> tuple[str, ...]:
    """When a design says PASS and FAIL, in trials and failures, and what is left in the end."""
    passing, failing = list(list_passing_steps(design)), list(list_failing_steps(design))
    looks = f"Looking every {design.batch} trials: " if design.batch > 1 else ""
    passes = _shorten_steps(passing, "after") or "never"
    fails = _shorten_steps(failing, "within") or "never"
    rest = (
        f"By trial {max(n for n, *_ in _list_reached(design))} every run has its verdict."
        if design.always_decides
        else f"What is open after {design.cap} trials is INCONCLUSIVE."
    )
    given_up = [f"INCONCLUSIVE early {_list_futile(design)}."] if design.futile else []
    return f"{looks}PASS {passes}.", f"FAIL {fails}.", *given_up, rest


def _list_futile(design: SequentialDesign) -> str:
    """List the failures at which a decision has become improbable, where they change."""
    spans = [(n, span) for n, span in enumerate(design.futile) if span[0] <= span[1]]
    steps = [
        f"with {low if low == high else f'{low} to {high}'} failures after {n} trials"
        for (n, (low, high)), (_, before) in zip(spans, [(0, (-1, -1)), *spans], strict=False)
        if (low, high) != before
    ]
    if len(steps) > MOST_STEPS:
        steps = [*steps[:FIRST_STEPS], "…", *steps[-LAST_STEPS:]]
    return ", ".join(steps)


def list_passing_steps(design: SequentialDesign) -> Iterator[tuple[int, int]]:
    """(failures, trials): the first look at which so many failures PASS, where a run can be."""
    shown = -1
    for n, low, _ in _list_reached(design):
        most = design.accept[n]
        if most > shown and most >= low:
            yield most, n
            shown = most


def list_failing_steps(design: SequentialDesign) -> Iterator[tuple[int, int]]:
    """(failures, trials): the last look at which so many failures FAIL, where a run can be."""
    last: tuple[int, int] | None = None
    for n, _, high in _list_reached(design):
        fewest = design.reject[n]
        if fewest > high:
            continue
        if last is not None and fewest > last[0]:
            yield last
        last = fewest, n
    if last is not None:
        yield last


def _list_reached(design: SequentialDesign) -> Iterator[tuple[int, int, int]]:
    """(trials, fewest failures, most failures) of the runs that are still going before a look."""
    low = high = 0
    for n in range(1, design.cap + 1):
        high += 1
        yield n, low, high
        low, high = max(low, design.accept[n] + 1), min(high, design.reject[n] - 1)
        if low > high:
            return


def _shorten_steps(steps: list[tuple[int, int]], word: str) -> str:
    if not steps:
        return ""
    (failures, trials), *rest = steps
    noun = "failure" if failures == 1 else "failures"
    first = f"with {failures} {noun} {word} {trials} trials"
    if len(steps) > MOST_STEPS:
        rest = rest[: FIRST_STEPS - 1]
    listed = [first, *(f"{f} {word} {n}" for f, n in rest)]
    if len(steps) > MOST_STEPS:
        listed += ["…", *(f"{f} {word} {n}" for f, n in steps[-LAST_STEPS:])]
    return ", ".join(listed)


def join_steps(steps: list[tuple[int, int]], word: str) -> str:
    """Join all steps in one line."""
    return ", ".join(f"{f} {word} {n}" for f, n in steps) or "never"
