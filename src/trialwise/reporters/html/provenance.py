"""Where the numbers come from and what qualifies them: guards, inputs, baselines, settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields

from trialwise.documents.numbers import as_count, as_duration, as_money, as_observed
from trialwise.documents.phrases import STOPS
from trialwise.model.baseline import BaselineReference
from trialwise.model.evidence import Diagnostics, ExperimentSummary
from trialwise.model.options import Budget
from trialwise.model.run import RunRecord
from trialwise.reporters.html.parts import Outline, details, facts, listed, table
from trialwise.reporters.page.markup import Markup, element, verbatim

__all__ = ["provenance_section", "qualifications_section", "reproducibility_section"]


def qualifications_section(record: RunRecord, outline: Outline) -> Markup:
    """Guards, caveats and diagnostics; nothing where there are none of them."""
    verdict = record.verdict
    told = {guard.message for guard in verdict.guards}
    caveats = [caveat for caveat in verdict.caveats if caveat not in told]
    parts = [_guards(record), listed(caveats), _diagnostics(record)]
    if not any(parts):
        return Markup("")
    note = "What qualifies the verdict without changing it, and whether the trials look alike."
    return outline.section("Caveats and diagnostics", *parts, note=note)


def _guards(record: RunRecord) -> Markup:
    rows = [
        (
            guard.code,
            guard.severity.replace("-", " "),
            element("bdi", guard.criterion) if guard.criterion is not None else "the run",
            guard.message,
            "admitted by override" if guard.overridden else "",
        )
        for guard in record.verdict.guards
    ]
    if not rows:
        return Markup("")
    columns = ("guardrail", "severity", "concerns", "why", "admitted")
    return table("Violated guardrails", columns, rows, words=range(5), wide=True)


def _diagnostics(record: RunRecord) -> Markup:
    rows = [
        (element("bdi", finding.criterion), *_signs(finding.diagnostics))
        for finding in record.verdict.findings
        if finding.diagnostics is not None and finding.tally.trials
    ]
    if not any(cell != "–" for row in rows for cell in row[1:]):
        return Markup("")
    columns = (
        "criterion",
        "autocorrelation",
        "p",
        "first half",
        "second half",
        "drift p",
        "untestable",
    )
    return table("Independence and drift", columns, rows, wide=True)


def _signs(found: Diagnostics) -> Iterator[str]:
    def spelled(value: float | None, form: str) -> str:
        return "–" if value is None else format(value, form)

    def rate(value: float | None) -> str:
        return "–" if value is None else as_observed(value)

    yield spelled(found.autocorrelation, "+.2f").replace("-", "−")
    yield spelled(found.autocorrelation_p, ".2g")
    yield rate(found.first_half_rate)
    yield rate(found.second_half_rate)
    yield spelled(found.drift_p, ".2g")
    yield rate(found.untestable_share)


def provenance_section(record: RunRecord, outline: Outline) -> Markup:
    """What was run, on which inputs, against which baseline, under which conditions."""
    below, verdict = outline.below, record.verdict
    blocks = [
        ("", _identity(record)),
        *((f"Sampling {one.identifier}", _sampling(one)) for one in verdict.experiments),
        *(
            (f"Baseline of {finding.criterion}", _baseline(finding.threshold.baseline))
            for finding in verdict.findings
            if finding.threshold is not None and finding.threshold.baseline is not None
        ),
        ("Covariates", verdict.covariates.items()),
        ("Factors", verdict.factors.items()),
        ("Settings", _settings(record)),
    ]
    content = [_block(title, pairs, below) for title, pairs in blocks]
    return outline.section(
        "Provenance",
        *content,
        note="Enough for a stranger to find the same inputs, baseline and conditions again.",
    )


def _block(title: str, pairs: Iterable[tuple[object, object]], outline: Outline) -> Markup:
    listed_facts = facts(
        ((element("bdi", k), element("bdi", v)) for k, v in pairs if v), "facts two"
    )
    if not listed_facts:
        return Markup("")
    heading = outline.heading(element("bdi", title)) if title else None
    return element("div", heading, listed_facts)


def _identity(record: RunRecord) -> Iterator[tuple[str, object]]:
    verdict, plan = record.verdict, record.plan
    yield "contract", verdict.contract or plan.contract
    yield "run", record.run_id
    if verdict.started_at is not None:
        yield "started", verdict.started_at.isoformat(sep=" ", timespec="seconds")
    yield "seed", str(plan.seed)
    yield "plan hash", verdict.reproducibility.plan_hash
    yield "purpose", plan.purpose
    yield "claim", f"{plan.claim.population}, {plan.claim.estimand}"
    for name, fingerprint in plan.structure.items():
        yield f"postconditions of {name}", fingerprint


def _sampling(one: ExperimentSummary) -> Iterator[tuple[str, object]]:
    yield "version", one.version
    yield "role", one.role
    yield "inputs", f"{one.inputs:,}"
    yield "trials", f"{one.trials:,} of at most {one.planned:,}"
    yield "drawn", f"{one.draw}, {one.sampling_mode}"
    times = [f"{count} inputs {times} ×" for times, count in one.repetitions.items()]
    yield "tried", ", ".join(times) if len(times) <= 6 else f"{times[0]} … {times[-1]}"
    yield "ended", STOPS[one.stop]
    yield "fingerprint", one.fingerprint
    yield "description", one.description


def _baseline(one: BaselineReference) -> Iterator[tuple[str, object]]:
    yield "identifier", one.identifier
    yield "counts", f"{one.passed:,} of {one.trials:,} passed"
    yield "created", one.created_at.isoformat(sep=" ", timespec="seconds")
    if one.expires_at is not None:
        yield "expires", one.expires_at.isoformat(sep=" ", timespec="seconds")
    yield "covariates", ", ".join(f"{key} {value}" for key, value in one.covariates.items())
    yield "match", one.covariate_match
    yield "factors", ", ".join(f"{key} {value}" for key, value in one.factors.items())
    yield "epoch", str(one.epoch)
    yield "file", one.file


def _settings(record: RunRecord) -> Iterator[tuple[str, object]]:
    plan, options = record.plan, record.plan.options
    yield "intent", plan.intent.lower()
    yield "rule set", plan.rule
    yield "analysis", plan.analysis
    yield "concurrency", str(options.concurrency)
    if options.rate_per_s is not None:
        yield "pace", f"at most {options.rate_per_s:g} trials a second"
    if options.timeout_s is not None:
        yield "timeout", as_duration(options.timeout_s)
    yield "retries", str(options.retries)
    yield "budget", _budget(options.budget)
    yield "stops early", "yes" if options.curtail else "no"
    yield "overrides", ", ".join(options.overrides)
    if options.horizon is not None:
        yield "horizon", f"{options.horizon:,} runs"


def _budget(budget: Budget) -> str:
    parts = [f"{budget.trials:,} trials"] if budget.trials is not None else []
    parts += [as_duration(budget.seconds)] if budget.seconds is not None else []
    parts += [f"{budget.tokens:,} tokens"] if budget.tokens is not None else []
    parts += [as_money(budget.usd)] if budget.usd is not None else []
    return ", ".join(parts) or "none"


def reproducibility_section(record: RunRecord, report: str, outline: Outline) -> Markup:
    """The numerical ingredients, and the whole analysis as text."""
    found = record.verdict.reproducibility
    pairs = [
        (one.name.replace("_", " "), _plain(getattr(found, one.name))) for one in fields(found)
    ]
    whole = element(
        "pre",
        verbatim(report),
        class_="report",
        tabindex="0",
        role="group",
        aria_label="Full analysis",
    )
    lines = as_count(report.count("\n"), "line")
    return outline.section(
        "Reproducibility",
        facts(pairs, "facts two"),
        details(f"The full statistical analysis, {lines} of text", whole, class_="whole"),
        note="The numerical ingredients, and every step of the reasoning to check by hand.",
    )


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)
