"""The marker `slow` names parameter sets that exist."""

from __future__ import annotations

import pytest
from tests.conftest import UNKNOWN_SLOW


def test_every_slow_parameter_set_exists(pytestconfig: pytest.Config) -> None:
    """A set that was renamed would run in `make test` again without anybody noticing."""
    assert set() == pytestconfig.stash[UNKNOWN_SLOW]
