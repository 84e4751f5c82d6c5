"""Several runs in turn: the arms of a comparison on the same inputs, round by round.

`engine/arms_state.py` says which arm is asked when. Every arm's run is journalled as any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trialwise.runtime.looping import run_to_end

if TYPE_CHECKING:
    from trialwise.engine.arms_state import RoundSchedule
    from trialwise.engine.drivers.arms_driver import DrivenArm, Watch
    from trialwise.engine.ports import Interrupt
    from trialwise.engine.run_state import RunOutcome, StartLimit


def drive_in_turn(
    arms: Sequence[DrivenArm],
    schedule: RoundSchedule | None = None,
    *,
    start_limit: StartLimit | None = None,
    watch: Watch | None = None,
) -> list[RunOutcome]:
    """Run the plans of several arms in turn; inside a running event loop, in a thread of its own.

    Args:
        arms: The control first; with the same inputs, sizes and seed.
        schedule: Which arms are asked in each round, and when everything is decided; None asks all
            of them in every planned round.
        start_limit: A further limit on trials of all arms together.
        watch: Told of every trial that counts.
    """
    return run_to_end(
        lambda interrupted: adrive_in_turn(
            arms, schedule, interrupted, start_limit=start_limit, watch=watch
        )
    )


async def adrive_in_turn(
    arms: Sequence[DrivenArm],
    schedule: RoundSchedule | None = None,
    interrupted: Interrupt | None = None,
    *,
    start_limit: StartLimit | None = None,
    watch: Watch | None = None,
) -> list[RunOutcome]:
    """Return the same in the running event loop.

    Args:
        arms: The control first.
        schedule: Which arms are asked in each round.
        interrupted: Says when somebody wants all runs to end early.
        start_limit: A further limit on trials of all arms together.
        watch: Told of every trial that counts.
    """
    # Loaded with the event loop only.
    from trialwise.engine.drivers.arms_driver import run_arms

    return await run_arms(
        arms, schedule, interrupted=interrupted, start_limit=start_limit, watch=watch
    )
