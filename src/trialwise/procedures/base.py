"""What a procedure is: one kind of question about a criterion, from its plan to its explanation.

Each procedure is one object in a module of its own, found by its name in `registry`. Whoever plans,
runs, decides or reports asks the object; nobody asks which procedure it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trialwise.documents.blocks import Section
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

    long_run: str = ""
    """How often the rule errs, as the rest of a sentence that starts "In the long run,"."""

    def explain(self, finding: Finding) -> tuple[Section, ...]:
        """Explain the numbers behind a finding, as blocks of the full analysis.

        Args:
            finding: A finding of this procedure.
        """
        from trialwise.procedures.explaining.analysis_sections import explain_hypotheses

        return (explain_hypotheses(finding),)
