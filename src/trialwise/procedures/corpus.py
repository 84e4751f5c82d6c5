"""Corpus: is the required rate met in this corpus, or among the trials of this run alone?"""

from __future__ import annotations

from trialwise.procedures.base import Procedure

__all__ = ["PROCEDURE", "Corpus"]


class Corpus(Procedure):
    """A required rate of an enumerated corpus, or of the trials alone; no population is sampled."""

    name = "CORPUS"
    question = "Is the required rate met in this corpus?"
    error_family = "false-compliance"


PROCEDURE = Corpus()
