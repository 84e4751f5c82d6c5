"""What happens once for every trial: it is made, and the text of its journal line is written.

Nearly every trial of a quick service passes and has only a reply. It is made a `PlainTrial`, which
everybody who looks at trials while they come in can treat shortly.
"""

from __future__ import annotations

from json.encoder import encode_basestring_ascii as _quote
from typing import TYPE_CHECKING, Any, cast

from trialwise.model.lines import encode_record
from trialwise.model.trial import ErrorClass, Outcome, Trial


class PlainTrial(Trial):
    """A trial that passed at the first attempt, and tells of nothing but its reply."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __new__(cls, **fields: Any) -> Trial:
            """Make an ordinary trial for `dataclasses.replace`, which may change any field."""
            return Trial(**fields) if fields else object.__new__(cls)

    def __eq__(self, other: object) -> bool:
        return equal_fields(self, other) if isinstance(other, Trial) else NotImplemented

    __hash__ = Trial.__hash__


def equal_fields(ours: Trial, theirs: Trial) -> bool:
    """Return whether two trials say the same; dataclasses of two classes are never equal."""
    return all(getattr(ours, name) == getattr(theirs, name) for name in Trial.__slots__)


def make_plain_trial(  # noqa: PLR0917 - by position, since names take time
    experiment: str,
    index: int,
    input_id: str,
    seed: int,
    outcomes: tuple[Outcome, ...],
    latency_s: float,
    started_s: float,
    reply: str,
) -> PlainTrial:
    """Make a trial that passed and has only a reply.

    Args:
        experiment: Its experiment.
        index: Its place in the order of inputs.
        input_id: Its input.
        seed: Its own.
        outcomes: All of them passed.
        latency_s: A number of JSON, not negative.
        started_s: A number of JSON, not 0.
        reply: The text that is kept.
    """
    # Calling the class, which takes its arguments by name, takes twice as long.
    trial: PlainTrial = object.__new__(PlainTrial)
    trial.experiment = experiment
    trial.index = index
    trial.input_id = input_id
    trial.seed = seed
    trial.outcomes = outcomes
    trial.latency_s = latency_s
    trial.started_s = started_s
    trial.reply = reply
    trial.error_class = ErrorClass.NONE
    trial.attempts = 1
    trial.error = trial.traceback = ""
    trial.attempt_errors = trial.tool_calls = trial.messages = ()
    trial.usage = trial.setup_usage = trial.judging_usage = None
    trial.cost_usd = trial.setup_s = trial.setup_cost_usd = trial.judging_cost_usd = None
    trial.shape = trial.ended = trial.exit_code = trial.whole = None
    return trial


def spell_trial(trial: Trial) -> str:
    """Return the JSON of a trial with the name of its experiment.

    It is `Trial.to_dict` in JSON. A plain trial is spelled here without it, in a quarter of the
    time.

    >>> trial = Trial(experiment="inputs", index=0, input_id="1", seed=7, outcomes=())
    >>> spell_trial(trial)
    '{"i":0,"in":"1","seed":7,"ok":"","x":"inputs"}'
    """
    if type(trial) is PlainTrial:
        reply = cast("str", trial.reply)
        return (
            f'{{"i":{trial.index},"in":{_quote(trial.input_id)},"seed":{trial.seed}'
            f',"ok":"{"1" * len(trial.outcomes)}","latency_s":{trial.latency_s!r}'
            f',"at":{trial.started_s!r},"reply":{_quote(reply)},"x":{_quote(trial.experiment)}}}'
        )
    record = trial.to_dict()
    record["x"] = trial.experiment
    return encode_record(record)
