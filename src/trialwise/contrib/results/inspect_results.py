"""Outcomes as Inspect AI logs: `.eval` archives and `.json` documents.

An archive holds `header.json` (status, task, model, configuration) and `summaries.json`, one entry
a sample and epoch, beside the full samples. A log that was cut off has `_journal/start.json` and
`_journal/summaries/*.json` instead. A `.json` log holds the same with `samples` in full:

    {"version": 2, "status": "success",
     "eval": {"task": "sums", "model": "openai/gpt-4o", "dataset": {"samples": 3},
              "config": {"epochs": 3}},
     "samples": [{"id": 1, "epoch": 1, "scores": {"match": {"value": "C"}},
                  "total_time": 0.8, "model_usage": {...}}]}

- A sample is an input, an epoch one trial of it, a scorer a criterion (`many/a` where a scorer
  gives several values by name).
- "C" and 1 pass, "I", "N" and 0 fail; "P" (half) fails unless `pass_at` is at most 0.5, and other
  numbers need a `pass_at`.
- A sample that ended with an error and without scores fails every criterion, as infrastructure;
  one stopped by a time limit without scores as a timeout. A score that Inspect leaves out of its
  metrics (NaN) is a failure without a value.
- The log says how many trials were to be made; one that was cancelled is an unfinished run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trialwise.contrib.results.field_records import Unread, error_class_of, read_mark
from trialwise.contrib.results.json_lines import parse_document
from trialwise.contrib.results.zip_archives import Archive
from trialwise.documents.numbers import as_count
from trialwise.model.reply import Usage
from trialwise.model.trial import ErrorClass, FailReason
from trialwise.outcomes.outcome_reading import Layout, ResultFormat
from trialwise.outcomes.outcome_rows import (
    OutcomeRow,
    Outcomes,
    Problems,
    amount,
    count,
    decode_text,
    input_id_of,
    moment,
    read_content,
    read_head,
    text_of,
)

__all__ = ["FORMAT", "is_inspect_log", "read_inspect_archive", "read_inspect_log"]

_MARKS = {"c": 1.0, "p": 0.5, "i": 0.0, "n": 0.0}
_TIME_LIMITS = frozenset({"time", "working"})
_JOURNAL = re.compile(r"_journal/summaries/([0-9]{1,9})\.json")
_NEEDED = (
    *("id", "epoch", "scores", "score", "error", "limit", "error_retries"),
    *("started_at", "working_time", "total_time", "model_usage"),
)
_SAMPLE = re.compile(r"samples/.+_epoch_[0-9]+\.json", re.DOTALL)


def is_inspect_log(document: Any) -> bool:
    """Whether a JSON document is a log of Inspect AI."""
    return isinstance(document, Mapping) and isinstance(document.get("eval"), Mapping)


def read_inspect_archive(path: Path, *, name: str, layout: Layout, problems: Problems) -> Outcomes:
    """Read the outcomes of an `.eval` log."""
    with Archive(path) as archive:
        names = set(archive.names)
        start = "header.json" if "header.json" in names else "_journal/start.json"
        if start not in names:
            raise problems.refuse(
                "", "an Inspect AI log with a header.json or a _journal/start.json is expected"
            )
        header = archive.json(start)
        if not is_inspect_log(header):
            raise problems.refuse(start, "an object with the evaluation (`eval`) is expected")
        samples = list(_read_samples(archive, names, problems))
    return _outcomes(header, samples, name=name, layout=layout, problems=problems)


def read_inspect_log(
    document: Mapping[str, Any], *, name: str, layout: Layout, problems: Problems
) -> Outcomes:
    """Read the outcomes of a `.json` log."""
    given = document.get("samples")
    if not isinstance(given, list):
        raise problems.refuse("samples", "a list of samples is expected; was the log written so?")
    samples = [(f"samples[{place}]", one) for place, one in enumerate(given)]
    return _outcomes(document, samples, name=name, layout=layout, problems=problems)


def _read_samples(
    archive: Archive, names: set[str], problems: Problems
) -> Iterator[tuple[str, Any]]:
    """The samples of an archive, by their summaries where there are any: they are small."""
    if "summaries.json" in names:
        members = ["summaries.json"]
    else:
        numbered = [(int(found[1]), one) for one in names if (found := _JOURNAL.fullmatch(one))]
        members = [one for _, one in sorted(numbered)]
    if not members:
        for member in sorted(one for one in names if _SAMPLE.fullmatch(one)):
            sample = archive.json(member)
            # A sample holds its whole transcript, and there may be thousands of them.
            if isinstance(sample, Mapping):
                sample = {name: sample[name] for name in _NEEDED if name in sample}
            yield member, sample
        return
    for member in members:
        found = archive.json(member)
        if not isinstance(found, list):
            raise problems.refuse(member, "a list of samples is expected")
        yield from ((f"{member}[{place}]", one) for place, one in enumerate(found))


def _outcomes(
    header: Mapping[str, Any],
    given: Sequence[tuple[str, Any]],
    *,
    name: str,
    layout: Layout,
    problems: Problems,
) -> Outcomes:
    samples = _latest(given, problems)
    if not samples:
        raise problems.refuse("", "the log holds no samples")
    reader = _Reader(layout, problems, _criteria(samples.values(), layout, problems))
    rows = [row for where, sample in samples.values() for row in reader.rows(where, sample)]
    problems.check()
    evaluation = header["eval"]
    status = header.get("status", "started")
    planned = _count_planned_trials(header, len(samples))
    return Outcomes(
        rows=tuple(rows),
        name=text_of(evaluation.get("task")).rpartition("/")[2] or name,
        source=problems.path,
        format="inspect",
        passing=layout.passing or "C",
        pass_at=layout.pass_at,
        factors=_factors(evaluation),
        planned=planned,
        notes=(*_notes(header, status, planned, len(samples)), *reader.notes()),
    )


def _latest(
    given: Sequence[tuple[str, Any]], problems: Problems
) -> dict[tuple[str, str], tuple[str, Mapping[str, Any]]]:
    """One entry a sample and epoch: a later one of a journal stands for a sample run again."""
    samples: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
    for where, one in given:
        if not isinstance(one, Mapping) or not isinstance(one.get("id"), str | int):
            problems.add(where, "a sample with an `id` is expected")
            continue
        identifier, epoch = input_id_of(one["id"]), input_id_of(one.get("epoch", 1))
        if not identifier:
            problems.add(where, "a sample with an `id` is expected")
            continue
        samples.pop((identifier, epoch), None)
        samples[identifier, epoch] = where, one
    problems.check()
    return samples


def _criteria(
    samples: Iterable[tuple[str, Mapping[str, Any]]], layout: Layout, problems: Problems
) -> tuple[str, ...]:
    """Every scorer that scored a sample, or those asked for."""
    known = dict.fromkeys(name for _, sample in samples for name in _values(sample))
    if not known:
        raise problems.refuse(
            "",
            "no sample has a score; score the log first (inspect score), or run it without "
            "--no-score",
        )
    unknown = next((name for name in layout.result if name not in known), None)
    if unknown is not None:
        raise problems.refuse("", f"no scorer is called `{unknown}`; there are {', '.join(known)}")
    return layout.choose(known, known)


def _values(sample: Mapping[str, Any]) -> dict[str, tuple[Any, Mapping[str, Any]]]:
    """The values of a sample by criterion, each with the score it is part of."""
    scores = sample.get("scores")
    if not isinstance(scores, Mapping):
        # Logs of the first version have one score and do not name it.
        scores = {"score": sample["score"]} if isinstance(sample.get("score"), Mapping) else {}
    found: dict[str, tuple[Any, Mapping[str, Any]]] = {}
    for name, score in scores.items():
        if not isinstance(score, Mapping) or "value" not in score:
            continue
        value = score["value"]
        if isinstance(value, Mapping):
            found |= {f"{name}/{part}": (one, score) for part, one in value.items()}
        else:
            found[str(name)] = value, score
    return found


class _Reader:
    """Turns samples into rows, and remembers what a reader should know of them."""

    def __init__(self, layout: Layout, problems: Problems, criteria: tuple[str, ...]) -> None:
        self._layout = layout
        self._problems = problems
        self._criteria = criteria
        self._partial = self._unscored = self._broken = 0

    def rows(self, where: str, sample: Mapping[str, Any]) -> Iterator[OutcomeRow]:
        """The outcomes of one sample."""
        values = _values(sample)
        error = _error(sample)
        missing = self._missing(sample, error)
        self._broken += missing["error_class"] is not ErrorClass.NONE and not values
        shared = _read_shared_fields(sample)
        for criterion in self._criteria:
            if criterion not in values:
                yield OutcomeRow(criterion=criterion, where=where, **shared, **missing)
                continue
            value, score = values[criterion]
            fields = self._read_score(where, criterion, value, score)
            if fields is not None:
                yield OutcomeRow(criterion=criterion, where=where, **shared, **fields)

    def notes(self) -> Iterator[str]:
        """What was decided about scores that are neither right nor wrong."""
        if self._broken:
            yield f"Ended without a score, counted as failures: {as_count(self._broken, 'sample')}."
        if self._unscored:
            yield (
                f"Not scored (NaN), counted as failures without a value although Inspect leaves "
                f"them out of its metrics: {as_count(self._unscored, 'score')}."
            )
        if self._partial:
            yield (
                f'Half right ("P"), counted as failures: {as_count(self._partial, "score")}. With '
                "pass_at=0.5 they pass."
            )

    def _missing(self, sample: Mapping[str, Any], error: str) -> dict[str, Any]:
        """What a criterion says of a sample that it did not score."""
        limit = sample.get("limit")
        kind = text_of(limit.get("type")) if isinstance(limit, Mapping) else text_of(limit)
        if error:
            error_class = error_class_of(error, self._layout)
        else:
            error_class = ErrorClass.TIMEOUT if kind in _TIME_LIMITS else ErrorClass.NONE
        explanation = error or (
            f"stopped by its {kind} limit" if kind else "the sample has no score"
        )
        return {
            "passed": False,
            "reason": FailReason.NO_VALUE,
            "error_class": error_class,
            "error": error or (explanation if kind else ""),
            "explanation": explanation,
        }

    def _read_score(
        self, where: str, criterion: str, value: Any, score: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        try:
            mark = read_mark(self._plain(value), self._layout)
        except Unread as problem:
            self._problems.add(where, f"{criterion}: {problem}")
            return None
        explanation = text_of(score.get("explanation"))
        if mark.passed:
            return {"passed": True, "score": mark.score}
        if mark.passed is None:
            self._unscored += 1
            reason = text_of(score.get("reason")) or explanation or "no reason is given"
            fields = {"reason": FailReason.NO_VALUE, "explanation": f"not scored: {reason}"}
        else:
            self._partial += value == "P"
            fields = {"explanation": explanation or f"scored {value!r}"}
        evidence = text_of(score.get("answer"))
        return {"passed": False, "evidence": evidence, "score": mark.score, **fields}

    def _plain(self, value: Any) -> Any:
        """A letter as the number that Inspect's metrics take it for."""
        known = _MARKS.get(value.casefold()) if isinstance(value, str) else None
        if known is None or self._layout.passes is not None:
            return value
        return bool(known == 1.0) if self._layout.pass_at is None else known


def _read_shared_fields(sample: Mapping[str, Any]) -> dict[str, Any]:
    """What all outcomes of a sample have in common."""
    usage, cost = _usage(sample.get("model_usage"))
    # Waiting for a rate limit or a slot is not the service's time.
    working, total = amount(sample.get("working_time")), amount(sample.get("total_time"))
    errors = sample.get("error_retries")
    retries = count(sample.get("retries")) or (len(errors) if isinstance(errors, list) else 0)
    return {
        "input_id": input_id_of(sample["id"]),
        "trial": input_id_of(sample.get("epoch", 1)),
        "order": moment(sample.get("started_at")),
        "latency_s": total if working is None else working,
        "usage": usage,
        "cost_usd": cost,
        "attempts": 1 + retries,
        "asked": _join_texts(sample.get("input")),
        "expected": _join_texts(sample.get("target")) or None,
    }


def _join_texts(given: Any) -> str:
    """A text, or the texts of messages or of several right answers; others are left out."""
    if isinstance(given, str):
        # The text itself is elsewhere in the log.
        return "" if given.startswith("attachment://") else given
    if isinstance(given, Mapping):
        said = _join_texts(given.get("content") or given.get("text"))
        return f"{given['role']}: {said}" if said and "role" in given else said
    parts = map(_join_texts, given) if isinstance(given, list) else ()
    return "\n".join(part for part in parts if part)


def _usage(given: Any) -> tuple[Usage | None, float | None]:
    """Tokens and dollars of all models together."""
    models = given.values() if isinstance(given, Mapping) else ()
    each = [one for one in models if isinstance(one, Mapping)]
    if not each:
        return None, None

    def total(name: str) -> int:
        return sum(count(one.get(name)) or 0 for one in each)

    cached = total("input_tokens_cache_read") + total("input_tokens_cache_write")
    usage = Usage(input_tokens=total("input_tokens") + cached, output_tokens=total("output_tokens"))
    costs = [cost for one in each if (cost := amount(one.get("total_cost"))) is not None]
    return usage, math.fsum(costs) if costs else None


def _error(sample: Mapping[str, Any]) -> str:
    """The message of an error: samples hold it in full, summaries as text."""
    error = sample.get("error")
    return text_of(error.get("message")) if isinstance(error, Mapping) else text_of(error)


def _count_planned_trials(header: Mapping[str, Any], found: int) -> int | None:
    """Count the planned trials, if the log shows them."""
    results, evaluation = _part(header, "results"), _part(header, "eval")
    dataset, config = _part(evaluation, "dataset"), _part(evaluation, "config")
    known = count(results.get("total_samples"))
    if known is None and config.get("sample_id") is None:
        inputs = _count_selected(count(dataset.get("samples")), config.get("limit"))
        epochs = count(config.get("epochs", 1))
        known = None if inputs is None or epochs is None else inputs * epochs
    return None if known is None else max(known, found)


def _count_selected(inputs: int | None, limit: Any) -> int | None:
    """Of this many inputs those within a limit: the first few, or from one to before another."""
    if inputs is None or limit is None:
        return inputs
    if isinstance(limit, list) and len(limit) == 2:
        first, last = map(count, limit)
        return None if first is None or last is None else max(0, min(inputs, last) - first)
    most = count(limit)
    return None if most is None else min(inputs, most)


def _part(whole: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = whole.get(name)
    return part if isinstance(part, Mapping) else {}


def _notes(
    header: Mapping[str, Any], status: Any, planned: int | None, found: int
) -> Iterator[str]:
    if status != "success":
        ended = "and the log does not say how many samples were to be run"
        if planned is not None:
            ended = f"with {found} of {planned} samples"
        yield (
            f"The log's status is {text_of(status) or 'unknown'!r}, {ended}: whatever ended it may "
            "have looked at the outcomes."
        )
    if header.get("invalidated") is True:
        yield "Samples of this log were marked invalid by hand; they are counted as they stand."


def _factors(evaluation: Mapping[str, Any]) -> dict[str, str]:
    known = {name: evaluation.get(name) for name in ("model", "task", "task_version", "solver")}
    return {name: text_of(value) for name, value in known.items() if text_of(value)}


def _read(path: Path, *, problems: Problems, **arguments: Any) -> Outcomes:
    if read_head(path, 2) == b"PK":
        return read_inspect_archive(path, problems=problems, **arguments)
    document, _ = parse_document(decode_text(read_content(path), str(path)), problems)
    if not is_inspect_log(document):
        raise problems.refuse("", "a log of Inspect AI is expected, and this file is none")
    return read_inspect_log(document, problems=problems, **arguments)


FORMAT = ResultFormat(
    name="inspect", read=_read, recognises=is_inspect_log, read_json=read_inspect_log
)
