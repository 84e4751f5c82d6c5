"""Outcomes as promptfoo results: the JSON that `promptfoo eval -o results.json` writes.

    {"results": {"version": 3, "results": [
      {"testIdx": 0, "promptIdx": 0, "provider": {"id": "openai:gpt-4o"},
       "prompt": {"label": "Answer: {{q}}"}, "vars": {"q": "15 * 37"}, "success": true,
       "failureReason": 0, "latencyMs": 812, "cost": 0.0004,
       "tokenUsage": {"prompt": 8, "completion": 4},
       "gradingResult": {"pass": true, "componentResults": [
         {"pass": true, "assertion": {"type": "contains", "metric": "answers"}}]}}]}}

Versions 2 and 3, the summary alone, and the lines of `-o results.jsonl` are read alike.

- A test case is an input: its description and variables. `--repeat` numbers the repetitions as
  tests of their own; equal test cases are trials of one input here.
- `success` is the criterion. `result` may name metrics instead: one passes where every assertion
  of its name does. One that only has a score (`namedScores`) passes by `pass_at`.
- Prompts and providers are different services: where there are several, each has criteria of its
  own, such as `success @ openai:gpt-4o · Answer: {{q}}`, and none is pooled with another.
- `failureReason` 2 (in version 2: an error and no grading) is a trial that broke: a failure of
  class infrastructure, or timeout where it says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trialwise.contrib.results.field_records import Unread, error_class_of, read_mark
from trialwise.contrib.results.json_lines import parse_document
from trialwise.documents.numbers import as_count
from trialwise.model.reply import Usage
from trialwise.model.trial import FailReason
from trialwise.outcomes.outcome_reading import Layout, ResultFormat
from trialwise.outcomes.outcome_rows import (
    MOST_ROWS,
    OutcomeRow,
    Outcomes,
    Problems,
    amount,
    count,
    decode_text,
    input_id_of,
    read_content,
    text_of,
)

__all__ = ["FORMAT", "is_promptfoo_results", "read_promptfoo"]

_OVERALL = "success"
_ERROR = 2


def is_promptfoo_results(document: Any) -> bool:
    """Whether JSON is a results file, the summary in one, or a list of results."""
    if isinstance(document, list):
        return bool(document) and all(map(_is_result, document))
    return _find_results(document) is not None


def _is_result(record: Any) -> bool:
    """Whether an object is one result, as the lines of a `.jsonl` export are."""
    if not isinstance(record, Mapping) or "success" not in record:
        return False
    return isinstance(record.get("vars"), Mapping) and "prompt" in record


def read_promptfoo(document: Any, *, name: str, layout: Layout, problems: Problems) -> Outcomes:
    """Read the outcomes of a results file, of its summary, or of a list of results."""
    given = document if isinstance(document, list) else _find_results(document)
    if not given:
        raise problems.refuse("results", "a list of at least one result is expected")
    if len(given) > MOST_ROWS:
        raise problems.refuse("results", f"at most {MOST_ROWS:,} results are read")
    results: list[tuple[str, Mapping[str, Any]]] = []
    for place, one in enumerate(given):
        where = f"results[{place}]"
        if not isinstance(one, Mapping) or not isinstance(one.get("success"), bool):
            problems.add(where, "a result with `success` true or false is expected")
        else:
            results.append((where, one))
    problems.check()
    columns = list(dict.fromkeys(_column(one) for _, one in results))
    metrics = dict.fromkeys(
        metric for _, one in results for metric in (*_metrics(one), *_named_scores(one))
    )
    unknown = next((one for one in layout.result if one not in (_OVERALL, *metrics)), None)
    if unknown is not None:
        known = ", ".join((_OVERALL, *metrics))
        raise problems.refuse("", f"no assertion has the metric `{unknown}`; there are {known}")
    criteria = layout.choose((_OVERALL, *metrics), (_OVERALL,))
    rows = [
        row
        for where, one in results
        for row in _rows(where, one, criteria, layout, problems, several=len(columns) > 1)
    ]
    problems.check()
    return Outcomes(
        rows=tuple(rows),
        name=_name(document) or name,
        source=problems.path,
        format="promptfoo",
        passing="promptfoo's own assertions",
        factors={"provider": columns[0][0], "prompt": columns[0][1]} if len(columns) == 1 else {},
        notes=tuple(_notes([one for _, one in results], columns)),
    )


def _find_results(document: Any) -> list[Any] | None:
    """The results, wherever a version puts them."""
    for _ in range(2):
        if not isinstance(document, Mapping):
            return None
        document = document.get("results")
        if isinstance(document, list):
            return document
    return None


def _name(document: Any) -> str:
    config = document.get("config") if isinstance(document, Mapping) else None
    return text_of(config.get("description")) if isinstance(config, Mapping) else ""


def _column(result: Mapping[str, Any]) -> tuple[str, str]:
    """Provider and prompt: what promptfoo compares side by side."""
    provider = result.get("provider")
    if isinstance(provider, Mapping):
        provider = provider.get("label") or provider.get("id")
    prompt = result.get("prompt")
    label = ""
    if isinstance(prompt, Mapping):
        label = text_of(prompt.get("label") or prompt.get("display"))
        # Version 2 may give the rendered prompt, which is another one for every test case.
        label = "" if label == text_of(prompt.get("raw")) else label
    label = label or f"prompt {result.get('promptIdx', '')}".strip()
    return text_of(provider) or "provider", input_id_of(label)


def _input(result: Mapping[str, Any]) -> str:
    case = result.get("testCase")
    described = text_of(case.get("description")) if isinstance(case, Mapping) else ""
    given = result.get("vars")
    variables = {
        name: value
        for name, value in (given.items() if isinstance(given, Mapping) else ())
        if not str(name).startswith("_")
    }
    shown: Any = variables
    if len(variables) == 1 and isinstance(only := next(iter(variables.values())), str):
        shown = only
    text = input_id_of(shown) if variables else ""
    return input_id_of(": ".join(part for part in (described, text) if part)) or "(no variables)"


def _metrics(result: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """The graded assertions by the metric they count towards."""
    grading = result.get("gradingResult")
    parts = grading.get("componentResults") if isinstance(grading, Mapping) else None
    found: dict[str, list[Mapping[str, Any]]] = {}
    for part in parts if isinstance(parts, list) else ():
        assertion = part.get("assertion") if isinstance(part, Mapping) else None
        metric = text_of(assertion.get("metric")) if isinstance(assertion, Mapping) else ""
        if metric:
            found.setdefault(metric, []).append(part)
    return found


def _rows(
    where: str,
    result: Mapping[str, Any],
    criteria: Sequence[str],
    layout: Layout,
    problems: Problems,
    *,
    several: bool,
) -> Iterator[OutcomeRow]:
    column = " · ".join(_column(result)) if several else ""
    shared = _read_shared_fields(result) | {"where": where, "group": column}
    prompt = result.get("prompt")
    if not several and isinstance(prompt, Mapping):
        # With several prompts, one input is asked in different words.
        shared["asked"] = text_of(prompt.get("raw"))
    for name in criteria:
        try:
            fields = _overall(result) if name == _OVERALL else _by_metric(result, name, layout)
        except Unread as problem:
            problems.add(where, f"{name}: {problem}")
            continue
        if _is_broken(result):
            error = text_of(result.get("error"))
            fields = {
                "passed": False,
                "reason": FailReason.NO_VALUE,
                "error_class": error_class_of(error, layout),
                "error": error,
                "explanation": error or "the call failed",
            }
        yield OutcomeRow(criterion=f"{name} @ {column}" if column else name, **shared, **fields)


def _overall(result: Mapping[str, Any]) -> dict[str, Any]:
    if result["success"]:
        return {"passed": True}
    grading = result.get("gradingResult")
    reason = text_of(grading.get("reason")) if isinstance(grading, Mapping) else ""
    explanation = reason or text_of(result.get("error")) or "an assertion failed"
    return {"passed": False, "explanation": explanation, "evidence": _reply(result)}


def _named_scores(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the named scores of a result, from its grading or from the result itself."""
    grading = result.get("gradingResult")
    for given in (grading, result):
        found = given.get("namedScores") if isinstance(given, Mapping) else None
        if isinstance(found, Mapping) and found:
            return found
    return {}


def _by_metric(result: Mapping[str, Any], metric: str, layout: Layout) -> dict[str, Any]:
    parts = _metrics(result).get(metric, [])
    failed = next((part for part in parts if part.get("pass") is not True), None)
    if parts and failed is None:
        return {"passed": True}
    if failed is None and metric in _named_scores(result):
        score = _named_scores(result)[metric]
        if read_mark(score, layout).passed:
            return {"passed": True}
        return {"passed": False, "explanation": f"scored {score}", "evidence": _reply(result)}
    if failed is None:
        reason = "no assertion of this metric was graded"
        return {"passed": False, "reason": FailReason.NO_VALUE, "explanation": reason}
    explanation = text_of(failed.get("reason")) or "an assertion failed"
    return {"passed": False, "explanation": explanation, "evidence": _reply(result)}


def _is_broken(result: Mapping[str, Any]) -> bool:
    """Whether the call failed: an assertion that did not hold also leaves an `error`."""
    if result["success"]:
        return False
    if "failureReason" in result:
        return bool(result["failureReason"] == _ERROR)
    return bool(result.get("error")) and not isinstance(result.get("gradingResult"), Mapping)


def _read_shared_fields(result: Mapping[str, Any]) -> dict[str, Any]:
    usage = result.get("tokenUsage")
    if not isinstance(usage, Mapping):
        response = result.get("response")
        usage = response.get("tokenUsage") if isinstance(response, Mapping) else None
    parts = usage if isinstance(usage, Mapping) else {}
    tokens = [count(parts.get(name)) for name in ("prompt", "completion")] if parts else []
    known = [one for one in tokens if one is not None]
    latency_ms = amount(result.get("latencyMs"))
    return {
        "input_id": _input(result),
        "latency_s": None if latency_ms is None else latency_ms / 1000,
        "cost_usd": amount(result.get("cost")),
        "usage": Usage(input_tokens=known[0], output_tokens=known[1]) if known[1:] else None,
    }


def _reply(result: Mapping[str, Any]) -> str:
    response = result.get("response")
    output = response.get("output") if isinstance(response, Mapping) else None
    return output if isinstance(output, str) else ("" if output is None else input_id_of(output))


def _notes(
    results: Sequence[Mapping[str, Any]], columns: Sequence[tuple[str, str]]
) -> Iterator[str]:
    if len(columns) > 1:
        yield f"{len(columns)} prompts and providers are decided apart, each over its own trials."
    broken = sum(map(_is_broken, results))
    if broken:
        yield f"Broken and counted as failures: {as_count(broken, 'call')}."
    cached = sum(_is_cached(one) for one in results)
    if cached:
        yield (
            f"From promptfoo's cache: {as_count(cached, 'result')}. A cached reply repeats an "
            "earlier one and is not a trial of its own; evaluate with --no-cache."
        )


def _is_cached(result: Mapping[str, Any]) -> bool:
    response = result.get("response")
    return isinstance(response, Mapping) and response.get("cached") is True


def _read(path: Path, *, problems: Problems, **arguments: Any) -> Outcomes:
    document, _ = parse_document(decode_text(read_content(path), str(path)), problems)
    if not is_promptfoo_results(document):
        raise problems.refuse("", "a results file of promptfoo is expected, and this file is none")
    return read_promptfoo(document, problems=problems, **arguments)


FORMAT = ResultFormat(
    name="promptfoo", read=_read, recognises=is_promptfoo_results, read_json=read_promptfoo
)
