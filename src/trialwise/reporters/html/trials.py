"""Trials to read: every failing one with its evidence as far as there is room, some passing ones.

A page stays small whatever the run's size. Where there are more failures than room, every kind of
failure and every input gets its turn before any gets a second one, and the rest is counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from trialwise.model.outcome import ErrorClass, Outcome
from trialwise.model.run import RunRecord
from trialwise.model.trial import Trial
from trialwise.reporters.html.parts import Outline, details, facts, glyph, listed
from trialwise.reporters.html.words import REASONS
from trialwise.reporters.page.markup import Markup, element, joined, shortened, verbatim
from trialwise.reporters.plan.figures import duration, money
from trialwise.reporters.wording import counted, seconds

__all__ = ["trials_section"]

#: Passing trials shown beside the failing ones, spread over the run.
PASSING = 6
#: How much of each text is kept.
_REPLY, _EVIDENCE, _EXPLANATION, _ARGUMENTS, _NAME = 1200, 500, 400, 240, 80
_CALLS, _ATTEMPTS = 20, 5


def trials_section(record: RunRecord, outline: Outline, most: int, size: int) -> Markup:
    """The failing trials with a filter and a sample of the passing ones, or nothing.

    Args:
        record: The run.
        outline: Where the section stands.
        most: How many failing trials may be shown.
        size: How many bytes they may take.
    """
    if not record.trials:
        return Markup("")
    failing = [trial for trial in record.trials if not trial.passed]
    cards = _fitting(_in_turn(failing), record, most, size)
    shown = sorted(cards, key=lambda pair: (pair[0].experiment, pair[0].index))
    criteria = [one.criterion for one in record.plan.criteria]
    content = [
        _filter(criteria, [trial for trial, _ in shown]),
        element("div", *(card for _, card in shown), class_="trials", data_trials=True),
        _left_out(len(failing), len(shown)),
        _passing(record),
    ]
    if not failing:
        content = [element("p", "No trial failed."), _passing(record)]
    note = f"{len(failing):,} of {counted(len(record.trials), 'trial')} failed a criterion or more."
    return outline.section("Failing trials", *content, note=note)


def _in_turn(failing: Iterable[Trial]) -> Iterator[Trial]:
    """Failures in an order in which every kind and input has its turn."""
    kinds: dict[tuple[object, ...], list[Trial]] = {}
    for trial in failing:
        first = next(outcome for outcome in trial.outcomes if not outcome.passed)
        kind = (trial.input_id, first.criterion, first.result.reason, first.postcondition)
        kinds.setdefault(kind, []).append(trial)
    for turn in zip_longest(*kinds.values()):
        yield from (trial for trial in turn if trial is not None)


def _fitting(
    trials: Iterable[Trial], record: RunRecord, most: int, size: int
) -> list[tuple[Trial, Markup]]:
    order = {one.criterion: place for place, one in enumerate(record.plan.criteria)}
    several = len(record.plan.experiments) > 1
    cards: list[tuple[Trial, Markup]] = []
    left = size
    for trial in trials:
        card = _card(trial, order, several=several)
        left -= len(card.encode())
        if left < 0 or len(cards) == most:
            break
        cards.append((trial, card))
    return cards


def _left_out(failing: int, shown: int) -> Markup:
    if shown == failing:
        return Markup("")
    said = (
        f"{shown:,} of {failing:,} failing trials are shown, chosen so that every input and every "
        "kind of failure has its turn; the run's journal holds them all."
    )
    return element("p", said, class_="note")


def _filter(criteria: Sequence[str], shown: Sequence[Trial]) -> Markup:
    """Two choices that a script makes work; without one they stay hidden and all is shown."""
    failed = {o.criterion for trial in shown for o in trial.outcomes if not o.passed}
    reasons = {str(o.result.reason) for trial in shown for o in trial.outcomes if not o.passed}
    if len(failed) < 2 and len(reasons) < 2:
        return Markup("")
    by_criterion = [
        element("option", shortened(name, _NAME), value=place)
        for place, name in enumerate(criteria)
        if name in failed
    ]
    by_reason = [
        element("option", said, value=reason)
        for reason, said in REASONS.items()
        if reason in reasons
    ]
    return element(
        "form",
        element("label", "Criterion ", _choice("criterion", "all criteria", by_criterion)),
        element("label", "Reason ", _choice("reason", "all reasons", by_reason)),
        element("output", f"{counted(len(shown), 'trial')} shown", aria_live="polite"),
        class_="filter",
        hidden=True,
        data_filter=True,
    )


def _choice(name: str, everything: str, options: Sequence[Markup]) -> Markup:
    return element("select", element("option", everything, value=""), *options, name=name)


def _card(trial: Trial, order: Mapping[str, int], *, several: bool) -> Markup:
    failed = [outcome for outcome in trial.outcomes if not outcome.passed]
    reasons = dict.fromkeys(str(outcome.result.reason) for outcome in failed)
    first = failed[0].result.explanation or trial.error or REASONS[next(iter(reasons))]
    chips = [element("span", element("bdi", _short(o.criterion)), class_="chip") for o in failed]
    where = f"{trial.experiment} " if several else ""
    summary = joined(
        [
            element("span", f"{where}#{trial.index + 1}", class_="index"),
            element("span", element("bdi", _short(trial.input_id)), class_="input"),
            element("span", *chips, class_="chips"),
            element("span", shortened(first, _EXPLANATION), class_="why", dir="auto"),
        ]
    )
    return details(
        summary,
        element("div", *_body(trial, failed), class_="inside"),
        class_="trial",
        data_criteria=" ".join(str(order[outcome.criterion]) for outcome in failed),
        data_reasons=" ".join(reasons),
    )


def _body(trial: Trial, failed: Sequence[Outcome]) -> Iterator[Markup]:
    for outcome in failed:
        result = outcome.result
        yield element(
            "div",
            element(
                "p",
                glyph("fail"),
                element("b", element("bdi", _short(outcome.criterion))),
                f" · {REASONS[str(result.reason)]}",
                f" · {_short(outcome.postcondition)}" if outcome.postcondition else None,
            ),
            element("p", shortened(result.explanation, _EXPLANATION), dir="auto"),
            _quoted("Evidence", result.evidence, _EVIDENCE),
            class_="failure",
        )
    if trial.reply is not None:
        yield _quoted("Reply", trial.reply, _REPLY)
    if trial.tool_calls:
        yield _calls(trial.tool_calls)
    yield facts(_about(trial), "facts meta")


def _about(trial: Trial) -> Iterator[tuple[str, object]]:
    if trial.error_class is not ErrorClass.NONE or trial.error:
        yield "error", f"{trial.error_class}: {shortened(trial.error, _EXPLANATION)}"
    if trial.attempts > 1 or trial.attempt_errors:
        before = [shortened(error, _EXPLANATION) for error in trial.attempt_errors[:_ATTEMPTS]]
        yield "attempts", joined([f"{trial.attempts}", listed(before)])
    yield "seed", str(trial.seed)
    yield "started", f"{duration(trial.started_s)} into the run"
    if trial.latency_s is not None:
        yield "latency", seconds(round(trial.latency_s, 6))
    if trial.usage is not None:
        used = trial.usage
        yield "tokens", f"{used.input_tokens:,} in, {used.output_tokens:,} out"
    if trial.cost_usd is not None:
        yield "cost", money(trial.cost_usd)
    if trial.exit_code is not None:
        yield "exit code", str(trial.exit_code)


def _quoted(name: str, text: str, limit: int) -> Markup:
    if not text:
        return Markup("")
    quote = element("pre", verbatim(shortened(text, limit)), dir="auto")
    return element("div", element("p", name, class_="label"), quote, class_="quoted")


def _calls(calls: Sequence[Mapping[str, Any]]) -> Markup:
    entries = [_call(call) for call in calls[:_CALLS]]
    if len(calls) > _CALLS:
        entries.append(element("li", f"{counted(len(calls) - _CALLS, 'further call')}"))
    heading = element("p", counted(len(calls), "tool call"), class_="label")
    return element("div", heading, element("ol", *entries, class_="calls"), class_="quoted")


def _call(call: Mapping[str, Any]) -> Markup:
    name, server = call.get("name"), call.get("server")
    given = call.get("args", call.get("arguments"))
    took = call.get("latency_s")
    told = {"name", "server", "args", "arguments", "latency_s"}
    rest = {key: value for key, value in call.items() if key not in told}
    return element(
        "li",
        element("b", element("bdi", _short(str(name)) if name is not None else "unnamed call")),
        f" on {_short(str(server))}" if server is not None else None,
        f" · {seconds(took)}" if isinstance(took, int | float) and took >= 0 else None,
        element("code", verbatim(shortened(_plain(given), _ARGUMENTS)), dir="auto")
        if given
        else None,
        element("code", verbatim(shortened(_plain(rest), _ARGUMENTS)), dir="auto")
        if rest
        else None,
    )


def _plain(value: object) -> str:
    """A value as JSON where it is, else as Python shows it."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _short(name: str) -> str:
    return shortened(name, _NAME)


def _passing(record: RunRecord) -> Markup:
    passing = [trial for trial in record.trials if trial.passed and trial.reply is not None]
    if not passing:
        return Markup("")
    count = min(PASSING, len(passing))
    chosen = [passing[k * len(passing) // count] for k in range(count)]
    cards = [
        details(
            joined(
                [
                    element("span", f"#{trial.index + 1}", class_="index"),
                    element("span", element("bdi", _short(trial.input_id)), class_="input"),
                ]
            ),
            element(
                "div",
                _quoted("Reply", trial.reply or "", _REPLY),
                _calls(trial.tool_calls) if trial.tool_calls else None,
                facts(_about(trial), "facts meta"),
                class_="inside",
            ),
            class_="trial",
        )
        for trial in chosen
    ]
    said = f"{count:,} of {len(passing):,} passing trials, for comparison"
    return details(said, *cards, class_="passing")
