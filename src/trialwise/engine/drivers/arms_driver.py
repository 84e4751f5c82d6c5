"""Driving the arms of a comparison on an event loop: one pool of workers for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from trialwise.engine.arms_state import ArmsState, ArmStart, RoundSchedule
from trialwise.engine.drivers.run_drivers import AsyncRun, close_service
from trialwise.engine.ports import Interrupt, Service, SystemClock
from trialwise.engine.run_parts import DriverSettings, RunParts
from trialwise.engine.run_state import Pacer, RunOutcome, StartLimit, TrialStart
from trialwise.engine.spending_meter import Meter
from trialwise.model.contract import Contract
from trialwise.model.plan import Plan
from trialwise.model.trial import Trial
from trialwise.redaction import redact_with

if TYPE_CHECKING:
    from trialwise.engine.ports import Timer


Watch: TypeAlias = Callable[[int, Trial, Meter], None]
"""Told of a trial: the place of its arm, the trial, and what all arms have taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrivenArm:
    """One arm of a comparison, ready to run."""

    plan: Plan
    contract: Contract
    service: Service
    settings: DriverSettings
    """See `DriverSettings`; the clock and the redaction are those of the first arm."""


async def run_arms(
    arms: Sequence[DrivenArm],
    schedule: RoundSchedule | None = None,
    *,
    interrupted: Interrupt | None = None,
    start_limit: StartLimit | None = None,
    watch: Watch | None = None,
) -> list[RunOutcome]:
    """Run the plans of several arms in step, round by round, and close their services.

    A cancellation from outside is treated as in `run_plan`.

    Args:
        arms: With one seed and the same inputs.
        schedule: Which arms are still asked; None asks all of them in every round.
        interrupted: Says from outside that all runs must end early.
        start_limit: A further limit on trials of all arms together.
        watch: Told of every trial that counts; must be quick, and must not raise.

    Raises:
        InvalidArgument: Trials or a contract do not belong to a plan; nothing was run.
    """
    with redact_with(arms[0].settings.get("redact")):
        services = {id(one.service): one.service for one in arms}
        troubles: dict[int, str] = {}
        try:
            parts = _ArmsParts(arms, schedule, start_limit)
            await _ArmsRun(parts, watch).go(interrupted)
        finally:
            # Arms may share a service, which is closed once.
            for name, service in services.items():
                troubles[name] = await close_service(service)
        parts.state.finish()
        return [
            part.finish(troubles[id(arm.service)])
            for part, arm in zip(parts.arms, arms, strict=True)
        ]


class _ArmsParts:
    """The parts of all arms, as far as the driver treats them as one.

    Args:
        arms: Ready to run.
        schedule: Which of them are still asked.
        start_limit: A further limit on trials of all arms together.
    """

    def __init__(
        self,
        arms: Sequence[DrivenArm],
        schedule: RoundSchedule | None,
        start_limit: StartLimit | None,
    ) -> None:
        self.clock: Timer = arms[0].settings.get("clock") or SystemClock()
        options = arms[0].plan.options
        # One meter for all arms: a budget is what the comparison may cost, not each arm.
        self.meter = Meter(options.budget, self.clock, options.cost_per_trial_usd)
        self.arms = [self._open(one) for one in arms]
        # Arms of one service share its rate.
        pacers: dict[int, Pacer | None] = {}
        for one, part in zip(arms, self.arms, strict=True):
            pacers.setdefault(id(one.service), part.state.pacer)
        self.state = ArmsState(
            [one.state for one in self.arms],
            [one.plan for one in arms],
            meter=self.meter,
            pacers=[pacers[id(one.service)] for one in arms],
            schedule=schedule,
            start_limit=start_limit,
        )

    def _open(self, arm: DrivenArm) -> RunParts:
        settings: DriverSettings = {
            **arm.settings,
            "clock": self.clock,
            "whole_meter": self.meter,
        }
        return RunParts(arm.plan, arm.contract, arm.service, **settings)


class _ArmsRun(AsyncRun[ArmsState]):
    """One comparison on an event loop."""

    def __init__(self, parts: _ArmsParts, watch: Watch | None) -> None:
        super().__init__(parts.state, parts.arms)
        self._watch = watch

    def _find_trial(self, step: ArmStart) -> tuple[RunParts, TrialStart]:
        return self._arms[step.arm], step.start

    def _note(self, step: ArmStart, trial: Trial | None) -> None:
        if trial is None:
            self._state.look_at(step.arm)
            return
        self._state.note(step.arm, trial)
        if self._watch is not None:
            self._watch(step.arm, trial, self._state.meter)
