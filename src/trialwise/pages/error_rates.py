"""How often the rules of a run err: what each was allowed, and what it really does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trialwise.documents.blocks import Block, Cell, Name, Prose, Section, Value
from trialwise.documents.numbers import (
    as_count,
    as_level,
    as_probability,
    is_within,
)
from trialwise.documents.tables import build_table
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Finding
from trialwise.pages.suite_totals import bound_suite_errors
from trialwise.procedures.base import RuleError
from trialwise.procedures.registry import procedure_of

__all__ = ["ErrorRate", "list_error_blocks", "list_error_rates"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRate:
    """One way in which a rule can be wrong: how often it may be, and how often it is."""

    finding: Finding
    error: RuleError

    @property
    def criterion(self) -> str:
        """The name of the criterion, and whether it decides each input on its own."""
        name = self.finding.criterion
        return f"{name}, each input" if self.finding.by_input else name

    @property
    def is_corrected(self) -> bool:
        """Whether a rate corrected for a judge's errors decides instead of the observed one."""
        parts = (self.finding, *self.finding.by_input)
        return any(part.judged is not None for part in parts)


def list_error_rates(record: RunRecord) -> Iterator[ErrorRate]:
    """The error rates of every criterion's rule, nominal and exact."""
    for finding in record.verdict.findings:
        if finding.alpha is not None and finding.decision is not None:
            first = finding.by_input[0] if finding.by_input else finding
            for error in procedure_of(finding).list_errors(first.design):
                yield ErrorRate(finding=finding, error=error)


def list_error_blocks(record: RunRecord) -> Iterator[Block]:
    """The error rates as a table, and over all criteria together; nothing where no rule has one."""
    rates = list(list_error_rates(record))
    if not rates:
        return
    heading = "How often the rules err"
    table = build_table(
        heading,
        rates,
        ("criterion", lambda one: Name(one.criterion)),
        ("error", lambda one: one.error.event),
        ("allowed", lambda one: as_level(one.error.allowed)),
        ("actual", _write_exact),
        words=(0, 1),
        is_headed=False,
    )
    together = _write_envelopes(record)
    notes = (Prose(paragraphs=(together,), tone="quiet"),) if together else ()
    yield Section(heading=heading, blocks=(table, *notes))


def _write_exact(one: ErrorRate) -> Cell:
    """How often a rule errs: exactly, or what is known of it where the corrected rate decides."""
    if one.is_corrected:
        return "no more, by the corrected rate"
    if one.error.actual is None:
        return "–"
    exact = as_probability(one.error.actual)
    if is_within(one.error.actual, one.error.allowed):
        return exact
    return Value(text=f"{exact}, more than allowed", tone="broken")


def _write_envelopes(record: RunRecord) -> str:
    """The same over all criteria together, where there are several of a kind."""
    findings = [one for one in record.verdict.findings if one.alpha is not None]
    streams = sum(max(1, len(one.by_input)) for one in findings)
    bounds = bound_suite_errors([record.verdict])
    if streams < 2 or not bounds:
        return ""
    said = [f"{one.meaning}: at most {as_level(one.capped)}" for one in bounds]
    return f"For the {as_count(streams, 'decision')} together: {'; '.join(said)}."
