"""Two runs in turn: pair by pair, so that whatever changes with time hits both services alike.

The engine runs each plan as it runs any other. In front of each service stands a gate: the two
trials of a pair start next to each other, which of them first is the seed's choice, and no pair
starts before the one ahead of it has. Waiting at the gate is no part of a trial's latency or of its
time limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from trialwise.engine.ports import Interrupt, Service, ServiceError, TrialContext
from trialwise.engine.trial_inputs import trial_seeds
from trialwise.model.contract import Contract
from trialwise.model.plan import Plan
from trialwise.model.reply import Reply
from trialwise.model.trial import ErrorClass
from trialwise.runtime.looping import run_to_end

if TYPE_CHECKING:
    import anyio

    from trialwise.engine.run_state import RunOutcome
    from trialwise.engine.trial_hooks import BeforeEach


@dataclass(frozen=True, slots=True, kw_only=True)
class SidePlan:
    """One of the two runs."""

    plan: Plan
    contract: Contract
    service: Service
    arguments: dict[str, Any]
    """Further keyword arguments of `run_plan`."""


def drive_in_turn(sides: tuple[SidePlan, SidePlan]) -> tuple[RunOutcome, RunOutcome]:
    """Run two plans of one order in turn; inside a running event loop, in a thread of its own.

    Args:
        sides: The control and the candidate, with the same inputs, sizes and seed.
    """
    return run_to_end(lambda interrupted: adrive_in_turn(sides, interrupted))


async def adrive_in_turn(
    sides: tuple[SidePlan, SidePlan], interrupted: Interrupt | None = None
) -> tuple[RunOutcome, RunOutcome]:
    """Return the same in the running event loop.

    Args:
        sides: The control and the candidate.
        interrupted: Says when somebody wants both runs to end early.
    """
    # Loaded with the event loop only.
    from anyio import get_cancelled_exc_class

    from trialwise.engine.async_calls import gather
    from trialwise.engine.drivers.async_driver import run_plan
    from trialwise.engine.trial_hooks import make_hook

    gate = _Gate(sides[0].plan)
    shared = sides[0].service is sides[1].service

    outcomes: dict[int, RunOutcome] = {}

    async def run(place: int, side: SidePlan) -> None:
        limit = side.plan.options.timeout_s
        # Behind the gate as well: the other's trial must not come in between.
        hook = make_hook(side.contract.before_each, in_thread=side.plan.options.concurrency > 1)
        guarded = _Gated(side.service, gate, place, timeout_s=limit, shared=shared, before=hook)
        # Behind the gate the limit is kept, before it a trial only waits for its turn.
        plan = replace(side.plan, options=replace(side.plan.options, timeout_s=None))
        contract = replace(side.contract, before_each=None)
        outcomes[place] = await run_plan(
            plan, contract, guarded, interrupted=interrupted, **side.arguments
        )

    try:
        await gather([partial(run, place, side) for place, side in enumerate(sides)])
    except get_cancelled_exc_class():
        # Both runs ended and are complete in themselves; who cancelled hears of it once they are
        # written down.
        if len(outcomes) < len(sides):
            raise
    return outcomes[0], outcomes[1]


class _PartnerEnded(ServiceError):
    """The other run is over, and a trial without a partner compares nothing."""

    stops_run: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(
            "the other run of the comparison ended, and a trial without a partner compares nothing",
            ErrorClass.INFRASTRUCTURE,
        )


class _Gate:
    """Lets the trials of two runs start in one order, at most so many at a time."""

    def __init__(self, plan: Plan) -> None:
        self._turns = dict(_turns(plan))
        self._room = plan.options.concurrency
        self._next = 0
        self._running = 0
        self._over: set[int] = set()
        self._change: anyio.Event | None = None

    async def enter(self, side: int, seed: int) -> None:
        """Wait for one's turn; a further attempt at a trial waits for room only.

        Raises:
            ServiceError: The other run is over, and the partner will never start.
        """
        turn = self._turns[side, seed]
        while True:
            if self.is_over(1 - side) and turn ^ 1 >= self._next:
                raise _PartnerEnded
            if turn <= self._next and self._running < self._room:
                break
            await self._wait()
        self._next = max(self._next, turn + 1)
        self._running += 1
        self._tell()

    def leave(self) -> None:
        """Make room for another."""
        self._running -= 1
        self._tell()

    def close(self, side: int) -> None:
        """Note that a run is over, whatever it left undone."""
        self._over.add(side)
        self._tell()

    def is_over(self, side: int) -> bool:
        """Return whether a run is."""
        return side in self._over

    async def _wait(self) -> None:
        from anyio import Event

        if self._change is None:
            self._change = Event()
        await self._change.wait()

    def _tell(self) -> None:
        if self._change is not None:
            self._change.set()
            self._change = None


def _turns(plan: Plan) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield whose turn comes when: (side, seed) and its place, partners next to each other.

    A pair is known by its seed, which both runs derive from the same run seed and index; its last
    bit says who goes first.
    """
    pair = 0
    for experiment in plan.experiments:
        seed_of = trial_seeds(plan.seed, experiment.name)
        for index in range(experiment.trials):
            seed = seed_of(index)
            for side in (0, 1):
                yield (side, seed), 2 * pair + (side ^ seed & 1)
            pair += 1


class _Gated:
    """A service behind the gate."""

    def __init__(
        self,
        service: Service,
        gate: _Gate,
        side: int,
        *,
        timeout_s: float | None,
        shared: bool,
        before: BeforeEach | None,
    ) -> None:
        self._before = before
        self._service = service
        self._gate = gate
        self._side = side
        self._timeout_s = timeout_s
        self._shared = shared

    async def call(self, trial: TrialContext) -> Reply:
        """One reply, once it is this trial's turn."""
        from trialwise.engine.attempt import call_in_time

        await self._gate.enter(self._side, trial.seed)
        try:
            if self._before is not None:
                await self._before(trial)
            return await call_in_time(self._service, trial, self._timeout_s)
        finally:
            self._gate.leave()

    async def aclose(self) -> None:
        """Close the service, unless the other run still uses the same."""
        self._gate.close(self._side)
        if not self._shared or self._gate.is_over(1 - self._side):
            await self._service.aclose()
