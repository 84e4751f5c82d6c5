"""Driving one trial on its own: a trial of an earlier run again, for a person who looks into it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from trialwise.engine.attempt import Caller
from trialwise.engine.check_watch import find_mistake
from trialwise.engine.excerpts import Excerpts, TextKeeper
from trialwise.engine.ports import Service, SystemClock
from trialwise.engine.reply_checking import ReplyChecker
from trialwise.engine.run_state import TrialStart
from trialwise.engine.trial_runner import make_hook
from trialwise.model.contract import Contract
from trialwise.model.kept_texts import RunTexts
from trialwise.model.options import RunOptions
from trialwise.model.sampling import Input
from trialwise.model.trial import Trial
from trialwise.redaction import redact_with


class SingleTrial(NamedTuple):
    """A trial that was run on its own."""

    trial: Trial
    texts: RunTexts
    """Its input, and where the service raised."""
    checks: Sequence[tuple[str, Sequence[str]]]
    """The postconditions of each criterion."""


async def run_single_trial(
    contract: Contract,
    service: Service,
    *,
    experiment: str,
    given: Input,
    index: int,
    seed: int,
    options: RunOptions,
    redact: Callable[[str], str] | None = None,
) -> SingleTrial:
    """Run one trial and close the service; nothing is counted and nothing is kept.

    Args:
        contract: Holds the criteria.
        service: What is under test.
        experiment: The sampling that the trial belongs to.
        given: Its input.
        index: Its place in the order of inputs.
        seed: Its own.
        options: Time limit and retries.
        redact: Takes secrets out of every text that is shown.

    Raises:
        ServiceError: One that would have ended the run.
        BrokenCheck: A check is broken whatever the reply says.
    """
    start = TrialStart(0, index, 0, seed)
    clock, excerpts = SystemClock(), Excerpts(reply_limit=4000, redact=redact)
    keeper = TextKeeper(excerpts)
    criteria = [one for one in contract.criteria if contract.experiment_of(one) == experiment]
    checker = ReplyChecker(
        experiment,
        criteria,
        activity=contract.activity,
        excerpts=excerpts,
        note_raised=keeper.note_raised,
    )
    caller = Caller(
        service,
        timeout_s=options.timeout_s,
        retries=options.retries,
        clock=clock,
        excerpts=excerpts,
        note_raised=keeper.note_raised,
        before=make_hook(contract.before_each, in_thread=False),
    )
    with redact_with(redact):
        try:
            response = await caller.respond(index, given.value, seed)
            examined = None
            if checker.asks:
                examined = await checker.ask(response, given=given, seed=seed)
            trial = checker.trial(start, given, response, 0.0, examined)
        finally:
            await checker.aclose()
            await service.aclose()
    keeper.keep(trial, given)
    if (broken := find_mistake(trial)) is not None:
        raise broken.to_error(keeper.texts)
    return SingleTrial(trial, keeper.texts, checker.check_names)
