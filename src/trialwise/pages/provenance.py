"""Where the numbers come from and what qualifies them: guards, inputs, settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from trialwise.documents.blocks import Facts, Section
from trialwise.documents.numbers import as_count, as_duration, list_amounts
from trialwise.model.run import RunRecord
from trialwise.pages.analysis import (
    list_caveat_sections,
    list_closing_sections,
    list_opening_sections,
)


def build_caveats(record: RunRecord) -> Section | None:
    """Violated guardrails and caveats; None where there are none of them."""
    sections = tuple(list_caveat_sections(record.verdict))
    note = "What qualifies the verdict without changing it."
    return Section(heading="Caveats", blocks=sections, note=note) if sections else None


def build_provenance(record: RunRecord) -> Section:
    """Return what was run, on which inputs, under which conditions and settings."""
    settings = Facts(heading="Settings", pairs=tuple(_list_settings(record)))
    return Section(
        heading="Provenance",
        blocks=(*list_opening_sections(record.verdict), settings),
        note="Enough for a stranger to find the same inputs and conditions again.",
    )


def _list_settings(record: RunRecord) -> Iterator[tuple[str, str | None]]:
    plan, options = record.plan, record.plan.options
    yield "purpose", plan.purpose
    yield "intent", plan.intent.lower()
    yield "rule set", plan.rule
    yield "analysis", plan.analysis
    yield "concurrency", str(options.concurrency)
    if options.rate_per_s is not None:
        yield "pace", f"at most {options.rate_per_s:g} trials a second"
    if options.timeout_s is not None:
        yield "timeout", as_duration(options.timeout_s)
    yield "retries", str(options.retries)
    yield "budget", ", ".join(list_amounts(**asdict(options.budget))) or "none"
    yield "stops early", "yes" if options.curtail else "no"
    yield "overrides", ", ".join(options.overrides)
    if options.horizon is not None:
        known = options.horizon
        yield "horizon", as_count(known, "run") if isinstance(known, int) else str(known)
    for name, fingerprint in plan.structure.items():
        yield f"postconditions of {name}", fingerprint


def build_reproducibility(record: RunRecord) -> Section:
    """Return what bounds a series of such runs, and the numerical ingredients of this one."""
    return Section(
        heading="Reproducibility",
        blocks=tuple(list_closing_sections(record.verdict)),
        note="The numerical ingredients, to check every step by hand.",
    )
