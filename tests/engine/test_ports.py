"""The engine's ports: errors travel between processes."""

from __future__ import annotations

import pickle

import anyio

from trialwise.engine.ports import ServiceError, SystemClock
from trialwise.model.trial import ErrorClass
from trialwise.services import HttpFailure, RecordingError


def test_a_service_error_survives_pickling() -> None:
    """A distributed executor sends it back as it was."""
    error = pickle.loads(pickle.dumps(ServiceError("gone", ErrorClass.INFRASTRUCTURE)))

    assert ("gone", ErrorClass.INFRASTRUCTURE) == (str(error), error.error_class)


def test_only_a_recording_that_is_lost_stops_a_run() -> None:
    """Any other error is one trial's."""
    assert not ServiceError.stops_run
    assert not HttpFailure.stops_run
    assert RecordingError.stops_run


def test_the_machines_clock_can_be_waited_for() -> None:
    """By the clock that is waited for, it is later afterwards."""
    clock = SystemClock()
    before = clock.monotonic()

    anyio.run(clock.sleep, 0.01)

    assert clock.monotonic() > before
    assert clock.now().tzinfo is not None
