"""Corpus: is the required rate met in this corpus, or among the trials of this run alone?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trialwise.procedures.base import Procedure

if TYPE_CHECKING:
    from trialwise.documents.blocks import Section
    from trialwise.model.verdict import Finding

__all__ = ["PROCEDURE", "Corpus"]


class Corpus(Procedure):
    """A required rate of an enumerated corpus, or of the trials alone; no population is sampled."""

    name = "CORPUS"
    question = "Is the required rate met in this corpus?"
    error_family = "false-compliance"
    long_run = (
        "if the true rate were at or below the requirement, this rule would declare "
        "compliance with the probability stated as achieved size"
    )

    def explain(self, finding: Finding) -> tuple[Section, ...]:
        """Explain a finding; the words are loaded for those who ask."""
        from trialwise.procedures.explaining.corpus_samples import explain_corpus

        return explain_corpus(finding)


PROCEDURE = Corpus()
