"""Violations that are known and are being repaired; the list is to be empty."""

from __future__ import annotations

from collections.abc import Iterable

from tests.meetings.features import Feature
from tests.meetings.invariants import Violation

#: A part of what is said of a violation, and why it is there.
KNOWN: dict[str, str] = {
    "must never fail, failed": "`never_fails` with its own `trials` overlooks later failures",
    'array("d", passes)': "scores of trials without a reply are read wrongly",
    "trials of first are": "scores of trials without a reply are read wrongly",
    "replay": "the class of an error is not recorded",
    "needs a number of runs that is fixed": "gates do not see `--trials`",
    "Horizon.__format__": "a page cannot show a horizon of gates or days",
}
#: Features with which any violation is known, and why.
KNOWN_WITH: dict[str, str] = {
    "two samplings": "with concurrency a decision cancels trials of the other sampling",
}


def is_known(violation: Violation, features: Iterable[Feature]) -> bool:
    """Return whether a violation of a suite is on the list."""
    values = {one.value for one in features if one.place == "inputs"}
    return bool(values & KNOWN_WITH.keys()) or any(text in str(violation) for text in KNOWN)
