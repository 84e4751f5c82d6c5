"""What a procedure is: one kind of question about a criterion, from its plan to its explanation.

Each procedure is one object in a module of its own, found by its name in `registry`. Whoever plans,
runs, decides or reports asks the object; nobody asks which procedure it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trialwise.documents.blocks import Block
    from trialwise.model.verdict import Finding

__all__ = ["Procedure"]


class Procedure:
    """One kind of question, and everything that answering it takes.

    A subclass sets the attributes below and overrides what differs from the usual.
    """

    name: str
    """The word by which plans and records know it."""
    question: str
    """The question in words, such as "Is the required rate met?"."""
    error_family: str | None = None
    """The kind of error whose levels are added up over criteria; None where no level is claimed.

    `false-compliance`, `false-degradation` or `false-rejection`.
    """
    claims_rate: bool = True
    """Whether a verdict says something about a rate, rather than about the trials alone."""

    def explain(self, finding: Finding) -> tuple[Block, ...]:
        """Explain the numbers behind a finding, as blocks of the full analysis.

        Args:
            finding: A finding of this procedure.
        """
        from trialwise.documents.blocks import Facts

        rule = finding.decision_rule or "no failure may be observed"
        return (Facts(pairs=(("Decision rule", rule), ("Result", finding.statement))),)
