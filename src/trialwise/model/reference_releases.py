"""How many of the published reference cases this release of trialwise passes (§10.6).

A test runs the cases wherever they are beside the checkout and compares this table with the result.
"""

from __future__ import annotations

from dataclasses import dataclass

from trialwise.stats.result_types import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRelease:
    """A published set of formula values, and how many of its cases this release matches."""

    version: str
    """The release of the mavai reference data."""
    cases: int
    matched: int

    @property
    def status(self) -> str:
        """What a report says of it."""
        outcome = "passed" if self.matched == self.cases else "failed"
        return f"{outcome} by this release of trialwise ({self.matched} of {self.cases} cases)"


#: By rule set. None is published for `exact`, which is our own.
REFERENCE_RELEASES: dict[Rule, ReferenceRelease] = {
    "wilson": ReferenceRelease(version="mavai-R 0.10.13", cases=80, matched=80),
    "fisher": ReferenceRelease(version="mavai-R 0.12.0", cases=174, matched=174),
}

#: What a report says where no cases are published for the rule set.
NOT_PUBLISHED = "none are published for this rule set"
