"""The verdict, first thing on the page: what was decided, what that claims and what it does not."""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision
from trialwise.reporters.attention import attention
from trialwise.reporters.html.parts import (
    Outline,
    Tone,
    details,
    facts,
    glyph,
    listed,
    table,
    tone,
)
from trialwise.reporters.html.words import (
    claims,
    disclaimers,
    error_rates,
    headline,
    is_measured,
    is_soft,
    meaning,
)
from trialwise.reporters.page.markup import Markup, element
from trialwise.reporters.plan.figures import duration, kept, level, money, probability
from trialwise.reporters.wording import counted

__all__ = ["banner"]

#: Notes that stand open; the others take a click.
MOST_NOTES = 4


def _tone(record: RunRecord) -> Tone:
    """The class that colours the whole run."""
    return "none" if is_measured(record) else tone(record.verdict.decision)


def banner(record: RunRecord, outline: Outline) -> Markup:
    """Decision, meaning and key figures; below them claims, disclaimers and error rates."""
    kind, word = _tone(record), headline(record)
    smoke = is_soft(record)
    hollow = " hollow" if kind == "pass" and (smoke or word != Decision.PASS) else ""
    identity = outline.claim("verdict")
    below = outline.below
    top = element(
        "div",
        glyph(kind),
        element(
            "div",
            outline.heading(
                element("span", "Verdict: ", class_="heard"),
                word,
                element("span", " smoke run", class_="intent") if smoke else None,
                id=f"{identity}-h",
            ),
            element("p", meaning(record), class_="meaning"),
            class_="say",
        ),
        class_=f"decision {kind}{hollow}",
    )
    notes = [] if is_measured(record) else attention(record.verdict)
    more = notes[MOST_NOTES:]
    columns = [
        element("div", below.heading("What it says"), listed(claims(record))),
        element("div", below.heading("What it does not say"), listed(disclaimers(record))),
    ]
    return element(
        "section",
        top,
        facts(_figures(record), class_="figures"),
        element(
            "div",
            below.heading("Needs attention"),
            listed(notes[:MOST_NOTES]),
            details(counted(len(more), "more note"), listed(more)) if more else None,
            class_="attention",
        )
        if notes
        else None,
        element("div", *columns, class_="columns"),
        _errors(record, below),
        class_="banner",
        id=identity,
        aria_labelledby=outline.landmark(identity),
    )


def _figures(record: RunRecord) -> Iterator[tuple[str, object]]:
    """The run in a few numbers."""
    verdict, spent = record.verdict, record.verdict.spending
    decisions = [one.decision for one in verdict.findings]
    decisions += [one.decision for one in verdict.latency]
    gates = [one.decision for one in verdict.gates if one.decision is not None]
    if not is_measured(record):
        yield "criteria passed", f"{decisions.count(Decision.PASS)} of {len(decisions)}"
    if gates:
        yield "gates passed", f"{gates.count(Decision.PASS)} of {len(gates)}"
    yield "trials", f"{len(record.trials):,}"
    if verdict.experiments:
        yield "inputs", f"{sum(one.inputs for one in verdict.experiments):,}"
    if spent.seconds:
        yield "time", duration(spent.seconds)
    if spent.usd is not None:
        yield "cost", money(spent.usd)
    if spent.tokens:
        yield "tokens", f"{spent.tokens:,}"


def _errors(record: RunRecord, outline: Outline) -> Markup:
    rates = list(error_rates(record))
    if not rates:
        return Markup("")
    rows = []
    for one in rates:
        exact = "–" if one.exact is None else probability(one.exact)
        above = one.exact is not None and not kept(one.exact, one.nominal)
        held = element("b", f"{exact}, more than allowed", class_="alarm") if above else exact
        rows.append((element("bdi", one.criterion), one.event, level(one.nominal), held))
    columns = ("criterion", "error", "allowed", "actual")
    caption = "How often the rules err"
    return element(
        "div",
        outline.heading(caption),
        table(caption, columns, rows, words=(0, 1), wide=True, hide_caption=True, class_="compact"),
        _envelopes(record),
        class_="errors",
    )


def _envelopes(record: RunRecord) -> Markup:
    """The same over all criteria together, where there are several of a kind."""
    verdict = record.verdict
    bounds = (
        ("some PASS although its rate is not above the required one", "false_compliance_envelope"),
        ("some FAIL although nothing has degraded", "false_degradation_envelope"),
        ("some FAIL although every rate is as required", "false_rejection_envelope"),
        ("some PASS although its rate is the margin or more below", "false_acceptance_envelope"),
    )
    said = [
        f"{event}: at most {level(value)}"
        for event, name in bounds
        if (value := getattr(verdict, name)) is not None
    ]
    streams = sum(max(1, len(one.by_input)) for one in verdict.findings if one.alpha is not None)
    if streams < 2 or not said:
        return Markup("")
    together = f"For the {counted(streams, 'decision')} together: {'; '.join(said)}."
    return element("p", together, class_="note")
