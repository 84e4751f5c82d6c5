"""Telling a cancelled trial from a service that cancelled itself.

Both arrive as the same exception. The first must be let through; the second, let through, would
silently end the run although nobody asked for that.
"""

from __future__ import annotations

import math

__all__ = ["is_unasked"]


def is_unasked(error: BaseException) -> bool:
    """Whether an error is a cancellation of the current task that nobody outside asked for."""
    from anyio import current_effective_deadline, get_cancelled_exc_class

    if not isinstance(error, get_cancelled_exc_class()):
        return False
    if current_effective_deadline() == -math.inf:
        return False
    import asyncio

    try:
        task = asyncio.current_task()
    except RuntimeError:  # not asyncio: anyio's scopes are all there is
        return True
    return task is not None and task.cancelling() == 0
