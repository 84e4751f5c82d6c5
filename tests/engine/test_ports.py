"""The engine's ports: errors travel between processes."""

from __future__ import annotations

import pickle

from trialwise.engine.ports import ServiceError
from trialwise.model.outcome import ErrorClass


def test_a_service_error_survives_pickling() -> None:
    """A distributed executor sends it back as it was."""
    error = pickle.loads(pickle.dumps(ServiceError("gone", ErrorClass.INFRASTRUCTURE)))

    assert ("gone", ErrorClass.INFRASTRUCTURE) == (str(error), error.error_class)
