"""One trial to read: what failed and why, what came back, what was done and in which order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from trialwise.documents import blocks
from trialwise.documents.charts import Axis
from trialwise.documents.numbers import as_count, as_duration, as_money, as_seconds
from trialwise.documents.printable import compare_texts, cut_middle
from trialwise.model.run import RunTexts
from trialwise.model.trace import ToolCall
from trialwise.model.trial import MODEL, ErrorClass, Outcome, Trial
from trialwise.pages.finding_facts import REASONS

#: Characters of arguments, of a result and of an error that are seen at once, and of a name.
_GLANCE, _NAME = 160, 80


#: Characters of one text that can be unfolded.
_UNFOLDED = 2000


#: Sessions that have an axis, in seconds: from a nanosecond to some thousand years.
_SHORTEST_S, _LONGEST_S = 1e-9, 1e11


#: The keys of a call that a tool call is read from; what is under others is shown as it is.
_KNOWN = {*ToolCall.__dataclass_fields__, "arguments", "latency_s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much of a page one timeline may take."""

    first: int
    """How many messages and calls are shown from the beginning."""
    last: int
    """How many are shown from the end."""
    unfolded: int
    """How many characters of long texts can be unfolded, over all of them together."""


BRIEF = Extent(first=4, last=2, unfolded=0)
"""Where the page has little room."""


SHORT = Extent(first=14, last=6, unfolded=4000)
"""Of a trial among many."""


PLAIN = Extent(first=30, last=10, unfolded=0)
"""In a terminal, which unfolds nothing."""


FULL = Extent(first=40, last=20, unfolded=12_000)
"""Of the one that is worth reading whole."""


def build_timeline(trial: Trial, extent: Extent = SHORT) -> blocks.Timeline | None:
    """Build the messages and tool calls of a trial in order; None for a trial without a trace.

    Args:
        trial: The trial whose session is shown.
        extent: How much of it is shown.
    """
    if not (trial.tool_calls or trial.messages or trial.shape is not None):
        return None
    calls = [_read_call(call) for call in trial.tool_calls]
    builder = _StepBuilder(trial, calls, extent)
    heading = "; ".join(_list_headings(calls, trial))
    # The scale above the bars; the rows say their times themselves.
    axis = Axis(low=0, high=builder.end_s or 1, label="", unit="seconds")
    ticks = axis.list_ticks() if builder.end_s else ()
    heading, steps = f"{heading[:1].upper()}{heading[1:]}.", tuple(builder.build_all())
    marks = tuple((axis.place(value), text) for value, text in ticks)
    return blocks.Timeline(heading=heading, steps=steps, ticks=marks)


def _read_call(given: Mapping[str, Any]) -> ToolCall:
    call = ToolCall.from_dict(given)
    # A trace may hold any number. An axis of a thousand years would hide every other call.
    if max(call.started_s or 0.0, call.duration_s or 0.0) <= _LONGEST_S:
        return call
    return replace(call, started_s=None, duration_s=None)


def _list_headings(calls: Sequence[ToolCall], trial: Trial) -> Iterator[str]:
    """List how many messages and calls there were, how many failed, and how long they took."""
    said = sum(bool(text.strip()) for _, text in trial.messages)
    if said:
        yield as_count(said, "message")
    if not calls:
        made = 0 if trial.shape is None else trial.shape.total_calls
        kept = f"{as_count(made, 'tool call')}, none of which the record holds"
        yield kept if made else "no tool call"
        return
    failed = sum(call.failed is True for call in calls)
    yield as_count(len(calls), "tool call") + (f", {failed:,} failed" if failed else "")
    # Many traces do not record how a call ended; silence must not read as success.
    if all(call.failed is None for call in calls):
        yield f"how {'any of them' if len(calls) > 1 else 'it'} ended is not known"
    took, whole = [call.duration_s for call in calls if call.duration_s is not None], ""
    if len(took) == len(calls):
        busy_s = _measure_busy(calls)
        # A trace whose calls add up to more than the session counts overlaps that it does not tell.
        if trial.latency_s and busy_s <= trial.latency_s:
            whole = f" of the session's {as_duration(trial.latency_s)}"
        yield f"under way for {as_duration(busy_s)}{whole}"
    elif not took:
        yield "times are not known"
    if trial.setup_s:
        yield f"setup took {as_duration(trial.setup_s)} before, and is part of no bar"
    if not knows_turns(trial):
        yield "the trace does not say which messages the calls came between"


def _measure_busy(calls: Sequence[ToolCall]) -> float:
    """Seconds in which a call was under way; where starts are known, overlaps count once."""
    if any(call.started_s is None for call in calls):
        return sum(call.duration_s or 0.0 for call in calls)
    busy_s = reached_s = 0.0
    for start_s, took_s in sorted((one.started_s or 0.0, one.duration_s or 0.0) for one in calls):
        busy_s += max(0.0, start_s + took_s - max(start_s, reached_s))
        reached_s = max(reached_s, start_s + took_s)
    return busy_s


def _find_end(calls: Sequence[ToolCall], latency_s: float | None) -> float | None:
    """Return where the time axis ends; None if no call says when it began."""
    # Sessions may go on after their last call, and calls may outlast what was measured.
    ends_s = [one.started_s + (one.duration_s or 0.0) for one in calls if one.started_s is not None]
    end_s = max([*ends_s, latency_s or 0.0]) if ends_s else 0.0
    return end_s if _SHORTEST_S <= end_s <= _LONGEST_S else None


class _StepBuilder:
    """Builds the rows of a timeline, as long as there is room for what they can unfold."""

    def __init__(self, trial: Trial, calls: Sequence[ToolCall], extent: Extent) -> None:
        self._trial, self._calls, self._extent = trial, calls, extent
        self._repeats = _find_repeats(calls)
        self._knows_ends = any(one.failed is not None for one in calls)
        self._left = extent.unfolded
        self.end_s = _find_end(calls, trial.latency_s)

    def build_all(self) -> Iterator[blocks.Call | blocks.Message | str]:
        """Build the first steps and the last, and say how many are left out in between."""
        steps = [*list_steps(self._trial)]
        start = self._extent.first
        end = max(start, len(steps) - self._extent.last)
        yield from map(self._build, steps[:start])
        if end > start:
            yield f"{count_steps(steps[start:end])} left out; the run's journal holds them all."
        yield from map(self._build, steps[end:])

    def _build(self, step: Step) -> blocks.Call | blocks.Message:
        if not isinstance(step, int):
            role, text = step
            speaker = "model" if role == MODEL else cut_middle(role, _NAME) or "without a role"
            return blocks.Message(speaker=speaker, text=self._quote("", text))
        return self._build_call(step, self._calls[step], self._trial.tool_calls[step])

    def _build_call(self, place: int, call: ToolCall, raw: Mapping[str, Any]) -> blocks.Call:
        repeated = self._repeats[place]
        more = {key: value for key, value in raw.items() if key not in _KNOWN}
        # The same call again is the commonest sign of an agent that goes in circles.
        again = "" if repeated == place else f" · the same as {repeated + 1}"
        # The server of the tool, and the turn it was called in where the trace has one.
        server = "" if call.server is None else f" on {cut_middle(call.server, _NAME)}"
        turn = "" if call.turn is None else f" · turn {call.turn}"
        start, width = self._place_bar(call)
        texts = [] if call.args in (None, {}, []) else [self._quote("", _write_plain(call.args))]
        texts += self._list_ends(call)
        texts += [self._quote("also given", _write_plain(more))] if more else []
        name = "a tool without a name" if call.name is None else cut_middle(call.name, _NAME)
        return blocks.Call(
            place=f"{place + 1}.",
            name=name,
            about=f"{server}{turn}{again}",
            when=_write_when(call),
            texts=tuple(texts),
            start=start,
            width=width,
            is_endless=call.duration_s is None,
            tone="fail" if call.failed else "plain",
        )

    def _place_bar(self, call: ToolCall) -> tuple[float | None, float]:
        """Return where the bar begins and how long it is; a call without an end has an open bar."""
        if self.end_s is None or call.started_s is None:
            return None, 0.0
        start = call.started_s / self.end_s
        return start, 1 - start if call.duration_s is None else call.duration_s / self.end_s

    def _list_ends(self, call: ToolCall) -> Iterator[blocks.Excerpt]:
        if call.error is not None:
            yield self._quote("failed", call.error, tone="fail")
        if call.result is not None:
            yield self._quote("returned", call.result)
        if call.failed is None and self._knows_ends:
            yield blocks.Excerpt(label="how it ended is not known", text="")

    def _quote(self, label: str, text: str, *, tone: blocks.Tone = "plain") -> blocks.Excerpt:
        """Quote a text at a glance, and the rest of it on demand as far as there is room."""
        # One line at a glance: a result of a thousand lines would push the next call off the page.
        glance = " ".join(text.split())
        room, rest = min(_UNFOLDED, self._left), None
        if len(glance) > _GLANCE and room > _GLANCE:
            whole = cut_middle(text, room)
            self._left -= len(whole)
            summary = as_count(len(text), "character")
            rest = blocks.Details(summary=summary, blocks=(blocks.Verbatim(text=whole),))
        return blocks.Excerpt(label=label, text=cut_middle(glance, _GLANCE), tone=tone, rest=rest)


def _find_repeats(calls: Sequence[ToolCall]) -> list[int]:
    """For each call the place of the first one with the same tool and arguments.

    A call without a name may be any, and is the same as none.
    """
    seen: dict[tuple[object, ...], int] = {}
    # What tells a call without a name from all others is its place.
    keys = ((one.server, one.name, _write_plain(one.args)) for one in calls)
    told = ((key if key[1] is not None else (place,)) for place, key in enumerate(keys))
    return [seen.setdefault(key, place) for place, key in enumerate(told)]


def _write_when(call: ToolCall) -> str:
    """When it began and how long it took, as far as the trace says."""
    took = "" if call.duration_s is None else as_duration(call.duration_s)
    if call.started_s is None:
        return took
    return f"at {as_duration(call.started_s)}" + (f" for {took}" if took else ", no end known")


def _write_plain(value: object) -> str:
    """Write a value as JSON where it is, else as Python shows it."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    # Whoever wrote the trace may have put anything in: what is not JSON is shown, not refused.
    except (TypeError, ValueError, RecursionError):
        return repr(value)


#: How much of each text is kept, and of a name.
_REPLY, _EVIDENCE, _EXPLANATION, NAME = 1200, 500, 400, 80


#: Errors of earlier attempts that are listed.
_ATTEMPTS = 5


def build_trial_card(
    trial: Trial,
    order: Mapping[str, int],
    texts: RunTexts,
    *,
    several: bool = False,
    extent: Extent = SHORT,
    why: str = "",
) -> blocks.Card:
    """Build a trial, passing or failing; a failing one with what a filter asks for.

    Args:
        trial: What is shown.
        order: The place of each criterion in the contract.
        texts: What the trials of the run asked.
        several: Whether the run has several experiments, so that an index alone is no name.
        extent: How much of its session is shown.
        why: Why it is the worst trace of the run, which is unfolded; empty for the others.
    """
    session = build_timeline(trial, extent)
    # A passing card says nothing of its criteria: there is nothing to look for.
    failed = [outcome for outcome in trial.outcomes if not outcome.passed]
    reasons = dict.fromkeys(str(outcome.result.reason) for outcome in failed)
    badges = [blocks.Badge(word=_shorten(one.criterion), tone="fail") for one in failed]
    if why:
        badges.insert(0, blocks.Badge(word="worst trace", tone="open"))
    text, tags = "", {}
    if failed:
        text = failed[0].result.explanation or trial.error or REASONS[next(iter(reasons))]
        criteria = tuple(str(order[outcome.criterion]) for outcome in failed)
        tags = {"criterion": criteria, "reason": tuple(reasons)}
    return blocks.Card(
        label=f"{trial.experiment} trial {trial.index}" if several else f"trial {trial.index}",
        name=_shorten(trial.input_id),
        badges=tuple(badges),
        text=cut_middle(text, _EXPLANATION),
        blocks=(
            *([blocks.Prose(paragraphs=(why,), tone="quiet")] if why else []),
            *(block for outcome in failed for block in list_failure_blocks(outcome, trial.reply)),
            *_list_exchange(trial, texts, session),
            blocks.Facts(pairs=tuple(_list_facts(trial))),
        ),
        is_open=bool(why),
        tags=tags,
    )


def _list_exchange(
    trial: Trial, texts: RunTexts, session: blocks.Timeline | None
) -> Iterator[blocks.Block]:
    """List what was asked, the session, and what was expected beside what came back.

    A reply that the timeline just above ends with in full is not repeated.
    """
    asked, expected = texts.find_input(trial), None
    if asked is not None:
        yield _quote_text("Input", asked.value)
        if asked.metadata:
            yield _quote_text("Metadata", asked.metadata)
        expected = asked.expected
    # The session comes before the reply that it led to.
    if session is not None:
        yield session
    if expected is not None and trial.reply:
        yield compare_texts(cut_middle(expected, _REPLY), cut_middle(trial.reply, _REPLY))
    elif expected is not None:
        yield _quote_text("Expected", expected)
    elif trial.reply and not shows_last(session, trial.reply):
        yield _quote_text("Reply", trial.reply)
    if raised := texts.find_traceback(trial):
        yield blocks.Verbatim(heading="Traceback", text=raised)


def _quote_text(heading: str, text: str) -> blocks.Verbatim:
    return blocks.Verbatim(heading=heading, text=cut_middle(text, _REPLY))


def shows_last(session: blocks.Timeline | None, reply: str) -> bool:
    """Return whether the last step of a session shows a reply in full."""
    last = session.steps[-1] if session is not None and session.steps else None
    return isinstance(last, blocks.Message) and last.text.text == reply


def list_failure_blocks(outcome: Outcome, reply: str | None) -> Iterator[blocks.Block]:
    """List why a criterion failed, and what in the reply it failed on.

    Args:
        outcome: What the criterion says of a trial.
        reply: What came back, which is shown elsewhere.
    """
    result = outcome.result
    check = f" · {_shorten(outcome.postcondition)}" if outcome.postcondition else ""
    name = blocks.Value(text=_shorten(outcome.criterion), tone="fail", strong=True)
    explanation = cut_middle(result.explanation, _EXPLANATION)
    reason = f" · {REASONS[str(result.reason)]}{check}"
    yield blocks.Prose(paragraphs=((name, reason), explanation), tone="fail")
    # Evidence that is the whole reply would show the same text twice.
    if result.evidence and result.evidence.strip() != (reply or "").strip():
        yield blocks.Verbatim(heading="Evidence", text=cut_middle(result.evidence, _EVIDENCE))
    for check_name, other in outcome.failed_checks[1:]:
        said = f"{_shorten(check_name)}: {cut_middle(other.explanation, _EXPLANATION)}"
        yield blocks.Prose(paragraphs=(said,), tone="fail")


def _list_facts(trial: Trial) -> Iterator[tuple[str, str | None]]:
    if trial.error_class is not ErrorClass.NONE or trial.error:
        yield "error", f"{trial.error_class}: {cut_middle(trial.error, _EXPLANATION)}"
    if trial.attempts > 1 or trial.attempt_errors:
        errors = [cut_middle(error, _EXPLANATION) for error in trial.attempt_errors[:_ATTEMPTS]]
        yield "attempts", f"{trial.attempts}" + (f": {'; '.join(errors)}" if errors else "")
    yield "seed", str(trial.seed)
    yield "started", f"{as_duration(trial.started_s)} into the run"
    if trial.latency_s is not None:
        yield "latency", as_seconds(round(trial.latency_s, 6))
    if trial.setup_s is not None:
        # What was prepared is not part of what the service took to answer.
        yield "setup", f"{as_seconds(round(trial.setup_s, 6))}, not part of the latency"
    if trial.usage is not None:
        used = trial.usage
        yield "tokens", f"{used.input_tokens:,} in, {used.output_tokens:,} out"
    yield "cost", None if trial.cost_usd is None else as_money(trial.cost_usd)
    yield "session ended", None if trial.ended is None else cut_middle(trial.ended, _EXPLANATION)
    yield "exit code", None if trial.exit_code is None else str(trial.exit_code)


def _shorten(name: str) -> str:
    return cut_middle(name, NAME)


# --- The order in which messages and tool calls of a session are shown ----------------------------

Step: TypeAlias = tuple[str, str] | int
"""A message with its role, or the place of a tool call among the calls of its trial."""


def list_steps(trial: Trial) -> Iterator[Step]:
    """List the messages and the tool calls of a trial in one order.

    A call follows the message of the model that asked for it. A trace may not say which message
    that was; such a call stands behind the call before it, and the first one before the last
    message of the model, which is the answer. Messages without a text are left out.

    >>> calls = ({"name": "find", "turn": 1}, {"name": "refund", "turn": 2})
    >>> said = (("user", "Refund it."), ("assistant", ""), ("assistant", "Found."))
    >>> trial = Trial(experiment="x", index=0, input_id="1", seed=1, outcomes=(),
    ...               tool_calls=calls, messages=(*said, ("assistant", "Done.")))
    >>> [*list_steps(trial)]
    [('user', 'Refund it.'), 0, ('assistant', 'Found.'), 1, ('assistant', 'Done.')]
    """
    places, made = _place_calls(trial), 0
    for position, message in enumerate(trial.messages):
        while made < len(places) and places[made] <= position:
            yield made
            made += 1
        if message[1].strip():
            yield message
    yield from range(made, len(places))


def count_steps(steps: Sequence[Step]) -> str:
    """Return how many calls and messages there are, in words.

    >>> count_steps([("user", "Refund it."), 0, 1])
    '2 calls and 1 message'
    """
    calls = sum(isinstance(step, int) for step in steps)
    counts = ((calls, "call"), (len(steps) - calls, "message"))
    return " and ".join(as_count(count, noun) for count, noun in counts if count)


def knows_turns(trial: Trial) -> bool:
    """Return whether the place of every call among the messages is known."""
    # With a single message of the model there is only one place for its calls.
    spoken = sum(role == MODEL for role, _ in trial.messages)
    return spoken < 2 or all(_read_turn(call) for call in trial.tool_calls)


def _place_calls(trial: Trial) -> list[int]:
    """For each call, how many messages come before it."""
    spoken = [place for place, (role, _) in enumerate(trial.messages) if role == MODEL]
    places: list[int] = []
    for call in trial.tool_calls:
        turn, before, last = _read_turn(call), places[-1] if places else 0, len(trial.messages)
        if turn:
            # Turns beyond those that are kept come last.
            place = spoken[turn - 1] + 1 if turn <= len(spoken) else last
        else:
            place = before if places else next(reversed(spoken), last)
        places.append(max(before, place))
    return places


def _read_turn(call: Mapping[str, Any]) -> int:
    """Return which message of the model asked for a call, from 1; 0 where it is unknown."""
    turn = call.get("turn")
    # Asked by its type, since True is an int, and no turn.
    return turn if type(turn) is int and turn > 0 else 0
