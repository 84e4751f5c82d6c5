"""Read back what `trialwise run -o results.jsonl` wrote: rows of runs, results and trials.

Only trials count: each of their graders is the result of one criterion. A file with several runs
has the name of the contract before each criterion.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from trialwise.model.reply import Usage
from trialwise.model.trial import ErrorClass, FailReason
from trialwise.outcomes.bounded_files import Problems, decode_text, read_content
from trialwise.outcomes.field_records import Layout
from trialwise.outcomes.json_lines import parse_lines
from trialwise.outcomes.outcome_reading import ResultFormat
from trialwise.outcomes.outcome_rows import OutcomeRow, Outcomes

#: How the format calls itself, up to its number.
_SCHEMA = "trialwise.results/"


def is_own_results(document: Any) -> bool:
    """Return whether the first of some JSON lines is a run of ours."""
    first = document[0] if isinstance(document, list) and document else None
    return isinstance(first, dict) and str(first.get("schema", "")).startswith(_SCHEMA)


def read_own_results(
    document: list[Any], *, name: str, layout: Layout, problems: Problems
) -> Outcomes:
    """Read the trials of all runs.

    Args:
        document: The objects of the lines.
        name: What was tested, where the file does not say.
        layout: Whose `result` chooses criteria.
        problems: The problems of the file.
    """
    runs: dict[str, dict[str, Any]] = {}
    rows: list[OutcomeRow] = []
    for number, one in enumerate(document, start=1):
        where = f"line {number}"
        try:
            if one["type"] == "run":
                _check_version(one, where, problems)
                runs[str(one["run_id"])] = one
            elif one["type"] == "trial":
                rows += _list_trial_rows(one, where)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            problems.add(where, f"this is no row of {_SCHEMA}1 ({type(error).__name__}: {error})")
    problems.check()
    if not rows:
        raise problems.refuse("", "the file holds no trials")
    if len(runs) > 1:
        rows = [_name_contract(row, runs) for row in rows]
    named = [str(run.get("contract") or name) for run in runs.values()]
    found = Outcomes(
        rows=tuple(rows),
        name=named[0] if len(named) == 1 else name,
        source=problems.path,
        format="trialwise",
        factors=_find_factors(runs),
    )
    return found.only(*layout.result) if layout.result else found


def _check_version(run: dict[str, Any], where: str, problems: Problems) -> None:
    if run.get("schema") != f"{_SCHEMA}1":
        problems.add(where, f"{run.get('schema')} is not read, only {_SCHEMA}1")


def _list_trial_rows(one: dict[str, Any], where: str) -> list[OutcomeRow]:
    tokens = _find_number(one, "input_tokens"), _find_number(one, "output_tokens")
    usage = None
    if tokens[0] is not None and tokens[1] is not None:
        usage = Usage(input_tokens=int(tokens[0]), output_tokens=int(tokens[1]))
    reply = _find_text(one, "reply") or ""
    return [
        OutcomeRow(
            input_id=str(one["input_id"]),
            criterion=str(grader["name"]),
            passed=grader["passed"] is True,
            reason=None if grader.get("reason") is None else FailReason(grader["reason"]),
            explanation=_find_text(grader, "explanation") or "",
            evidence=_find_text(grader, "evidence") or reply,
            error_class=ErrorClass(one.get("error_class") or "none"),
            error=_find_text(one, "error") or "",
            trial=str(one["trial"]),
            group=f"{one['run_id']} {one['sampling']}",
            order=_find_number(one, "trial"),
            latency_s=_find_number(one, "latency_s"),
            cost_usd=_find_number(one, "cost_usd"),
            usage=usage,
            attempts=max(1, int(_find_number(one, "attempts") or 1)),
            where=where,
            asked=_find_text(one, "asked") or "",
            expected=_find_text(one, "expected"),
        )
        for grader in one["graders"]
    ]


def _find_number(one: dict[str, Any], name: str) -> float | None:
    """Find a number that is at least 0; None where there is none."""
    value = one.get(name)
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 <= value < math.inf:
        raise ValueError(f"`{name}` must be a number of at least 0")
    return float(value)


def _find_text(one: dict[str, Any], name: str) -> str | None:
    value = one.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"`{name}` must be a text")
    return value


def _name_contract(row: OutcomeRow, runs: dict[str, dict[str, Any]]) -> OutcomeRow:
    from dataclasses import replace

    contract = runs.get(row.group.partition(" ")[0], {}).get("contract", "?")
    return replace(row, criterion=f"{contract}: {row.criterion}")


def _find_factors(runs: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Find what was under test, where all trials are of one run."""
    given = next(iter(runs.values())).get("factors") if len(runs) == 1 else None
    return {str(k): str(v) for k, v in given.items()} if isinstance(given, dict) else {}


def _read(path: Path, **arguments: Any) -> Outcomes:
    text = decode_text(read_content(path), str(path))
    records = parse_lines(text, arguments["problems"])
    return read_own_results([fields for _, fields in records], **arguments)


FORMAT = ResultFormat(
    name="trialwise", read=_read, recognises=is_own_results, read_json=read_own_results
)
