"""The verdict, first thing on the page: what was decided, what that claims and what it does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trialwise.documents.numbers import (
    as_count,
    as_duration,
    as_level,
    as_money,
    as_probability,
    is_within,
)
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
    EACH_INPUT,
    ErrorRate,
    claims,
    disclaimers,
    error_rates,
    headline,
    is_measured,
    is_soft,
    meaning,
)
from trialwise.reporters.judged import nothing_decides, only_advise
from trialwise.reporters.page.markup import Markup, element

__all__ = ["banner"]

#: Notes that stand open; the others take a click.
MOST_NOTES = 4


def _tone(record: RunRecord) -> Tone:
    """The class that colours the whole run."""
    return "none" if is_measured(record) else tone(record.verdict.decision)


def banner(record: RunRecord, outline: Outline) -> Markup:
    """Decision, meaning and key figures; below them claims, disclaimers and error rates."""
    kind, word = _tone(record), headline(_deciding(record))
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
            element("p", _meaning(record), class_="meaning"),
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
            details(as_count(len(more), "more note"), listed(more)) if more else None,
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


def _deciding(record: RunRecord) -> RunRecord:
    """The run without the criteria that only advise: they take no part in its verdict."""
    verdict = record.verdict
    counting = tuple(one for one in verdict.findings if not one.advisory)
    if len(counting) == len(verdict.findings):
        return record
    return replace(record, verdict=replace(verdict, findings=counting))


def _meaning(record: RunRecord) -> str:
    """What the verdict means, and how many criteria have no part in it."""
    if is_measured(record):
        return meaning(record)
    if nothing := nothing_decides(record.verdict):
        return f"{nothing} This is neither a PASS nor a FAIL."
    counting = _deciding(record)
    left_out = len(record.verdict.findings) - len(counting.verdict.findings)
    if not left_out:
        return meaning(record)
    if counting.verdict.findings or record.verdict.decision is not Decision.PASS:
        said = meaning(counting)
    else:
        said = "All that counts passed."  # latencies or gates: there is no criterion to speak of
    return f"{said} {left_out} further {only_advise(left_out)}."


def _figures(record: RunRecord) -> Iterator[tuple[str, object]]:
    """The run in a few numbers."""
    verdict, spent = record.verdict, record.verdict.spending
    advising = [one for one in verdict.findings if one.advisory]
    decisions = [one.decision for one in verdict.findings if not one.advisory]
    decisions += [one.decision for one in verdict.latency]
    gates = [one.decision for one in verdict.gates if one.decision is not None]
    if decisions and not is_measured(record):
        yield "criteria passed", f"{decisions.count(Decision.PASS)} of {len(decisions)}"
    if advising and not is_measured(record):
        passing = sum(one.decision is Decision.PASS for one in advising)
        yield "advisory, passed", f"{passing} of {len(advising)}"
    if gates:
        yield "gates passed", f"{gates.count(Decision.PASS)} of {len(gates)}"
    yield "trials", f"{len(record.trials):,}"
    if verdict.experiments:
        yield "inputs", f"{sum(one.inputs for one in verdict.experiments):,}"
    if spent.seconds:
        yield "time", as_duration(spent.seconds)
    if spent.usd is not None:
        yield "cost", as_money(spent.usd)
    if spent.tokens:
        yield "tokens", f"{spent.tokens:,}"


def _errors(record: RunRecord, outline: Outline) -> Markup:
    rates = list(error_rates(_deciding(record)))
    if not rates:
        return Markup("")
    rows = [
        (element("bdi", one.criterion), one.event, as_level(one.nominal), _actual(one, record))
        for one in rates
    ]
    columns = ("criterion", "error", "allowed", "actual")
    caption = "How often the rules err"
    return element(
        "div",
        outline.heading(caption),
        table(caption, columns, rows, words=(0, 1), wide=True, hide_caption=True, class_="compact"),
        _envelopes(record),
        class_="errors",
    )


def _actual(one: ErrorRate, record: RunRecord) -> object:
    """How often a rule errs: exactly, or what is known of it where the corrected rate decides."""
    judged = {
        finding.criterion
        for finding in record.verdict.findings
        if any(part.judged is not None for part in (finding, *finding.by_input))
    }
    if one.criterion.removesuffix(EACH_INPUT) in judged:
        return "no more, by the corrected rate"
    exact = "–" if one.exact is None else as_probability(one.exact)
    above = one.exact is not None and not is_within(one.exact, one.nominal)
    return element("b", f"{exact}, more than allowed", class_="alarm") if above else exact


def _envelopes(record: RunRecord) -> Markup:
    """The same over all criteria together, where there are several of a kind."""
    verdict = _deciding(record).verdict
    bounds = (
        ("some PASS although its rate is not above the required one", "false_compliance_envelope"),
        ("some FAIL although nothing has degraded", "false_degradation_envelope"),
        ("some FAIL although every rate is as required", "false_rejection_envelope"),
        ("some PASS although its rate is the margin or more below", "false_acceptance_envelope"),
    )
    said = [
        f"{event}: at most {as_level(value)}"
        for event, name in bounds
        if (value := getattr(verdict, name)) is not None
    ]
    streams = sum(max(1, len(one.by_input)) for one in verdict.findings if one.alpha is not None)
    if streams < 2 or not said:
        return Markup("")
    together = f"For the {as_count(streams, 'decision')} together: {'; '.join(said)}."
    return element("p", together, class_="note")
