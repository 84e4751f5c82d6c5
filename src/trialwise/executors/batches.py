"""What the driver of a run sends to a worker, and what the worker sends back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from trialwise.engine.run_state import TrialStart
from trialwise.model.reply import Reply
from trialwise.model.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Trials that one worker runs one after another."""

    starts: tuple[TrialStart, ...]
    began_s: float = 0.0
    """When it was sent, in seconds since the run began."""
    seconds_left: float | None = None
    """How long the run may still take; None for no limit."""
    has_answered: bool = False
    """Whether anything came back from the service so far, be it an error."""
    has_worked: bool = False
    """Whether the service has replied so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """What came of a batch; trials that it does not hold were not run."""

    trials: tuple[Trial, ...]
    tracebacks: dict[str, str] = field(default_factory=dict)
    """Where the service raised, by the hash that trials name."""
    abandoned: tuple[Reply, ...] = ()
    """What calls took that came to nothing; their values are left out."""
    run_s: float = 0.0
    """How long the batch took in the worker."""
    has_answered: bool = False
    has_worked: bool = False
    stop: str = ""
    """Why the run cannot continue."""
    out_of_time: str = ""
    """What the last attempt said where the time limit allows no further one."""
    fault: str = ""
    """What went wrong in the worker itself, with its traceback; no trial of the batch counts."""


class EndedBatch(NamedTuple):
    """A batch that a pool hands back."""

    number: int
    result: BatchResult | None
    """None where the worker died or the batch got lost."""
    problem: str = ""
    """What happened to the worker."""
    is_death: bool = True
    """Whether the worker died, which one of the trials may have caused; no broken connection."""
