"""What happens once for every trial: it is made, and the text of its journal line is written.

Nearly every trial of a quick service passes and has only a reply, and takes a short way here.
"""

from __future__ import annotations

import math
from json.encoder import encode_basestring_ascii as _quote

from trialwise.model.lines import encode_record
from trialwise.model.trial import ErrorClass, Outcome, Trial


def make_plain_trial(  # noqa: PLR0917 - by position, since names take time
    experiment: str,
    index: int,
    input_id: str,
    seed: int,
    outcomes: tuple[Outcome, ...],
    latency_s: float,
    started_s: float,
    reply: str | None,
) -> Trial:
    """Make a trial that has only a reply: every other field is as it is by default.

    Calling the class, which takes its arguments by name, takes twice as long.
    """
    trial: Trial = object.__new__(Trial)
    trial.experiment, trial.index = experiment, index
    trial.input_id, trial.seed = input_id, seed
    trial.outcomes, trial.reply = outcomes, reply
    trial.latency_s, trial.started_s = latency_s, started_s
    trial.error_class, trial.attempts = ErrorClass.NONE, 1
    trial.error = trial.traceback = ""
    trial.attempt_errors = trial.tool_calls = trial.messages = ()
    trial.usage = trial.setup_usage = trial.judging_usage = None
    trial.cost_usd = trial.setup_s = trial.setup_cost_usd = trial.judging_cost_usd = None
    trial.shape = trial.ended = trial.exit_code = None
    return trial


def spell_trial(trial: Trial) -> str:
    """Return the JSON of a trial with the name of its experiment.

    It is `Trial.to_dict` in JSON. A trial that passed and has only a reply is spelled here without
    it, in a quarter of the time.

    >>> trial = Trial(experiment="inputs", index=0, input_id="1", seed=7, outcomes=())
    >>> spell_trial(trial)
    '{"i":0,"in":"1","seed":7,"ok":"","x":"inputs"}'
    """
    latency_s, started_s, reply = trial.latency_s, trial.started_s, trial.reply
    if (
        type(latency_s) is float
        and type(started_s) is float
        and 0.0 <= latency_s < math.inf
        and 0.0 < started_s < math.inf
        and reply is not None
        and _is_plain_pass(trial)
    ):
        passed = "1" * len(trial.outcomes)
        return (
            f'{{"i":{trial.index},"in":{_quote(trial.input_id)},"seed":{trial.seed},"ok":"{passed}"'
            f',"latency_s":{latency_s!r},"at":{started_s!r},"reply":{_quote(reply)}'
            f',"x":{_quote(trial.experiment)}}}'
        )
    record = trial.to_dict()
    record["x"] = trial.experiment
    return encode_record(record)


def _is_plain_pass(trial: Trial) -> bool:
    """Return whether a trial passed at the first attempt, and tells of nothing but its reply."""
    for one in trial.outcomes:
        if not one.result.passed or one.result.score is not None:
            return False
    # `has_expenses` and `has_session` spelled out: this runs for every trial.
    return (
        trial.error_class is ErrorClass.NONE
        and trial.attempts == 1
        and trial.usage is None
        and trial.cost_usd is None
        and trial.setup_s is None
        and trial.judging_usage is None
        and trial.judging_cost_usd is None
        and trial.shape is None
        and trial.ended is None
        and trial.exit_code is None
        and not (trial.error or trial.traceback or trial.tool_calls or trial.messages)
    )
