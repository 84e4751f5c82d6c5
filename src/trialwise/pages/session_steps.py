"""The order in which messages and tool calls of a session are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from trialwise.documents.numbers import as_count
from trialwise.model.trial import MODEL, Trial

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
    spoken = sum(role == MODEL for role, _ in trial.messages)
    return spoken < 2 or all(_read_turn(call) for call in trial.tool_calls)


def _place_calls(trial: Trial) -> list[int]:
    """For each call, how many messages come before it."""
    spoken = [place for place, (role, _) in enumerate(trial.messages) if role == MODEL]
    places: list[int] = []
    for call in trial.tool_calls:
        turn, before = _read_turn(call), places[-1] if places else 0
        if turn:
            # Turns beyond those that are kept come last.
            place = spoken[turn - 1] + 1 if turn <= len(spoken) else len(trial.messages)
        elif places:
            place = before
        else:
            place = spoken[-1] if spoken else len(trial.messages)
        places.append(max(before, place))
    return places


def _read_turn(call: Mapping[str, Any]) -> int:
    """Return which message of the model asked for a call, from 1; 0 where it is unknown."""
    turn = call.get("turn")
    return turn if type(turn) is int and turn > 0 else 0
