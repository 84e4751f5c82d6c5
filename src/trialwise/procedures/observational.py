"""Observational: was any failure observed? (companion §1.4.5)"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trialwise.model.tally import Tally
from trialwise.model.verdict import Caution, Decision, Finding, Intent, Procedure
from trialwise.procedures.base import Procedure as ProcedureBase
from trialwise.stats.rate_intervals import rule_of_three

if TYPE_CHECKING:
    from trialwise.documents.blocks import Section

__all__ = ["PROCEDURE", "Observational", "decide_observational"]


def decide_observational(
    criterion: str, tally: Tally, *, intent: Intent = Intent.VERIFICATION
) -> Finding:
    """Report whether any failure was observed: exact on the run, silent about the population.

    >>> finding = decide_observational("no-pii", Tally(trials=200, passed=200))
    >>> finding.decision
    <Decision.PASS: 'PASS'>
    """
    if tally.trials == 0:
        decision, caution = Decision.INCONCLUSIVE, Caution.ZERO_EVALUABLE
    else:
        decision, caution = (Decision.FAIL if tally.failed else Decision.PASS), None
    return Finding(
        criterion=criterion,
        procedure=Procedure.OBSERVATIONAL,
        rule=None,
        decision_rule=None,
        decision=decision,
        tally=tally,
        intent=intent,
        caution=caution,
        statement=_statement(tally),
    )


def _statement(tally: Tally) -> str:
    n = tally.trials
    if n == 0:
        return "No observation was available in the run."
    if tally.failed:
        return f"{tally.failed} of {n} trials failed."
    return (
        f"No failure was observed in {n} trials. This makes no claim about the population; for "
        f"context only, under an i.i.d. model it corresponds to a 95 % upper bound of about "
        f"{rule_of_three(n):.2g} on the failure probability."
    )


class Observational(ProcedureBase):
    """No failure among the trials; nothing is said about a rate."""

    name = "OBSERVATIONAL"
    question = "Was any failure observed?"
    error_family = None
    claims_rate = False

    def explain(self, finding: Finding) -> tuple[Section, ...]:
        """Explain a finding; the words are loaded for those who ask."""
        from trialwise.procedures.explaining.observations import explain_observation

        return explain_observation(finding)


PROCEDURE = Observational()
