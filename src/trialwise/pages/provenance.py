"""Where the numbers come from and what qualifies them: guards, inputs, baselines, settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from trialwise.documents.blocks import (
    Block,
    Details,
    Facts,
    Items,
    Name,
    Section,
    Table,
    Verbatim,
    build_table,
)
from trialwise.documents.numbers import as_count, as_duration, as_observed
from trialwise.model.baseline import BaselineReference
from trialwise.model.options import Budget
from trialwise.model.run import RunRecord
from trialwise.pages.analysis import list_sampling_facts
from trialwise.pages.suite_totals import write_amounts


def build_qualifications(record: RunRecord) -> Section | None:
    """Guards, caveats and diagnostics; None where there are none of them."""
    verdict = record.verdict
    guarded = {guard.message for guard in verdict.guards}
    caveats = tuple(caveat for caveat in verdict.caveats if caveat not in guarded)
    blocks: list[Block] = [*_list_guards(record)]
    blocks += [Items(items=caveats)] if caveats else []
    blocks += _list_diagnostics(record)
    if not blocks:
        return None
    return Section(
        heading="Caveats and diagnostics",
        blocks=tuple(blocks),
        note="What qualifies the verdict without changing it, and whether the trials look alike.",
    )


def _list_guards(record: RunRecord) -> Iterator[Table]:
    if record.verdict.guards:
        yield build_table(
            "Violated guardrails",
            record.verdict.guards,
            ("guardrail", lambda one: one.code),
            ("severity", lambda one: one.severity.replace("-", " ")),
            ("concerns", lambda one: "the run" if one.criterion is None else Name(one.criterion)),
            ("why", lambda one: one.message),
            ("admitted", lambda one: "admitted by override" if one.overridden else ""),
            words=(0, 1, 2, 3, 4),
        )


def _list_diagnostics(record: RunRecord) -> Iterator[Table]:
    found = [
        (one.criterion, one.diagnostics)
        for one in record.verdict.findings
        if one.diagnostics is not None and one.tally.trials
    ]
    table = build_table(
        "Independence and drift",
        found,
        ("criterion", lambda one: Name(one[0])),
        ("autocorrelation", lambda one: _write_number(one[1].autocorrelation, "+.2f")),
        ("p", lambda one: _write_number(one[1].autocorrelation_p, ".2g")),
        ("first half", lambda one: _write_share(one[1].first_half_rate)),
        ("second half", lambda one: _write_share(one[1].second_half_rate)),
        ("drift p", lambda one: _write_number(one[1].drift_p, ".2g")),
        ("untestable", lambda one: _write_share(one[1].untestable_share)),
    )
    if any(cell != "–" for row in table.rows for cell in row.cells[1:]):
        yield table


def _write_number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form).replace("-", "−")


def _write_share(value: float | None) -> str:
    return "–" if value is None else as_observed(value)


def build_provenance(record: RunRecord) -> Section:
    """What was run, on which inputs, against which baseline, under which conditions."""
    verdict = record.verdict
    baselines = [
        (finding.criterion, finding.threshold.baseline)
        for finding in verdict.findings
        if finding.threshold is not None and finding.threshold.baseline is not None
    ]
    groups = (
        ("", _list_identity(record)),
        *((f"Sampling {one.identifier}", list_sampling_facts(one)) for one in verdict.experiments),
        *((f"Baseline of {name}", _list_baseline(one)) for name, one in baselines),
        ("Covariates", iter(verdict.covariates.items())),
        ("Factors", iter(verdict.factors.items())),
        ("Settings", _list_settings(record)),
    )
    blocks = [
        Facts(heading=heading, pairs=tuple((term, str(value)) for term, value in pairs if value))
        for heading, pairs in groups
    ]
    return Section(
        heading="Provenance",
        blocks=tuple(block for block in blocks if block.pairs),
        note="Enough for a stranger to find the same inputs, baseline and conditions again.",
    )


def _list_identity(record: RunRecord) -> Iterator[tuple[str, str | None]]:
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


def _list_baseline(one: BaselineReference) -> Iterator[tuple[str, str | None]]:
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


def _list_settings(record: RunRecord) -> Iterator[tuple[str, str | None]]:
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
    yield "budget", _write_budget(options.budget)
    yield "stops early", "yes" if options.curtail else "no"
    yield "overrides", ", ".join(options.overrides)
    if options.horizon is not None:
        yield "horizon", f"{options.horizon:,} runs"


def _write_budget(budget: Budget) -> str:
    trials = "" if budget.trials is None else f"{budget.trials:,} trials"
    amounts = write_amounts(budget.seconds, budget.tokens, budget.usd)
    return ", ".join(part for part in (trials, amounts) if part) or "none"


def build_reproducibility(record: RunRecord, analysis: str) -> Section:
    """The numerical ingredients, and the whole analysis as text."""
    found = record.verdict.reproducibility
    pairs = [
        (one.name.replace("_", " "), _write_plain(getattr(found, one.name)))
        for one in fields(found)
    ]
    lines = as_count(analysis.count("\n"), "line")
    return Section(
        heading="Reproducibility",
        blocks=(
            Facts(pairs=tuple(pairs)),
            Details(
                summary=f"The full statistical analysis, {lines} of text",
                blocks=(Verbatim(text=analysis, heading="Full analysis", is_laid_out=True),),
                is_printed=True,
            ),
        ),
        note="The numerical ingredients, and every step of the reasoning to check by hand.",
    )


def _write_plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)
