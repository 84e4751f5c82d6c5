"""What was measured of a judge, and what its errors leave of a rate, on every page.

The rate of a judged criterion is what the judge said. Beside it stand the rates corrected for the
judge's errors, the labels these rest on, and what is missing where they leave it open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from trialwise.documents.blocks import Document, Prose, build_table, list_rows
from trialwise.documents.numbers import as_computed, as_count, as_ends, as_observed, as_percent
from trialwise.documents.printable import make_visible, near
from trialwise.model.verdict import Decision, Finding, Verdict
from trialwise.pages.finding_facts import read_fields
from trialwise.stats.result_types import Interval, Undefined

if TYPE_CHECKING:
    from trialwise.judges import Calibration, Judge, Pairwise
    from trialwise.stats import CorrectedRate, ExpectedJudge, JudgedDecision, LabelPlan
    from trialwise.stats.agreement import Confusion

CORRECTION_NAMES = {
    "rectifier": "rectifier",
    "rogan-gladen": "Rogan–Gladen",
    "pooled": "with the labels as trials",
}
"""How reports call the corrections."""


def list_corrections(finding: Finding) -> Iterator[JudgedDecision]:
    """List what was decided by each correction that was made, the rectifier's first."""
    # Both corrections are shown because they rest on different assumptions: where they agree, the
    # decision does not depend on which of them holds.
    made = [one for one in (finding.judged, finding.evidence.judged_otherwise) if one is not None]
    return iter(sorted(made, key=lambda one: one.correction != "rectifier"))


def find_labels(finding: Finding) -> Confusion | None:
    """Find the judge's verdicts beside the labels of people, where its errors were measured."""
    for one in list_corrections(finding):
        if not isinstance(one.corrected, Undefined):
            return one.corrected.confusion
    return None


def describe_labels(labels: Confusion) -> str:
    """Describe how many labels there are, and how often the judge differs from them."""
    return (
        f"{labels.labels:,}: of {labels.good:,} that people pass the judge fails "
        f"{labels.false_fail:,}, of {labels.bad:,} that people fail it passes {labels.false_pass:,}"
    )


def _as_corrected(judged: JudgedDecision, *, is_exact: bool = False) -> str:
    """Write a corrected rate with its interval, or why there is none."""
    found = judged.corrected
    if isinstance(found, Undefined):
        return found.reason
    if is_exact:
        low, high = map(as_computed, found.interval)
        return f"{as_computed(found.rate)} [{low}, {high}]"
    return f"{as_observed(found.rate)} {as_ends(found.interval)}"


def describe_corrections(finding: Finding) -> Iterator[str]:
    """Describe what a judge's errors leave of the rate, and what is missing to say more."""
    labels = find_labels(finding)
    if labels is None:
        return
    made = list_corrections(finding)
    rates = [f"{_as_corrected(one)} ({CORRECTION_NAMES[one.correction]})" for one in made]
    # The number of labels comes with the rates, as no correction is better than its labels.
    yield f"corrected by {as_count(labels.labels, 'label')}: {' and '.join(rates)}"
    if missing := name_missing(finding):
        yield f"missing: {missing}"


def name_missing(finding: Finding) -> str:
    """Name what would close a decision that the judge's errors leave open: labels or trials."""
    judged = finding.judged
    if judged is None or judged.decision is not Decision.INCONCLUSIVE:
        return ""
    match judged.open_because:
        case "trials":
            needed = judged.trials_needed
            if isinstance(needed, Undefined):
                return "more trials"
            return f"about {as_count(needed, 'trial')} in all"
        case "labels":
            most = judged.labels_needed
            if isinstance(most, Undefined):
                return "neither labels nor trials would do: the rate is too close to the required"
            return f"about {as_count(most, 'label')} in all: trials alone would not do"
        case _:
            return "labels drawn as the trials were: the two corrections contradict each other"


def explain_advisory_run(verdict: Verdict) -> str:
    """Explain why a run shows nothing, where all that was asked of it only advises."""
    gates = [one for one in verdict.gates if one.decision is not None]
    advising = [one for one in verdict.findings if one.advisory]
    # One limit on latency or one gate that decides is enough for a verdict.
    if not advising or len(advising) < len(verdict.findings) or verdict.latency or gates:
        return ""
    reported = count_reported(verdict)
    return f"No verdict: {describe_left_out(len(advising) - reported, reported)}."


def count_reported(verdict: Verdict) -> int:
    """Count the criteria that are measured and shown on purpose, and decide nothing."""
    return sum(one.plan.standing.reported_at is not None for one in verdict.findings)


def describe_left_out(advising: int, reported: int, *, kind: str = "") -> str:
    """Describe how many criteria have no part in the verdict.

    Args:
        advising: Criteria that rest on a judge whose errors are not known well enough.
        reported: Criteria that are only reported.
        kind: A word before the noun, such as "further".

    >>> describe_left_out(1, 2)
    '1 criterion only advises, 2 criteria are only reported'
    """
    nouns = f"{kind} criterion".strip(), f"{kind} criteria".strip()
    said = []
    if advising:
        said.append(f"{as_count(advising, *nouns)} only advise{'s'[advising > 1 :]}")
    if reported:
        verb = "is" if reported == 1 else "are"
        said.append(f"{as_count(reported, *nouns)} {verb} only reported")
    return ", ".join(said)


def collect_judge_facts(finding: Finding) -> dict[str, str | int | float | bool | None]:
    """Collect the numbers of the correction that decides, by their names in JSON."""
    judged = finding.judged
    # An impossible correction has neither a rate nor an interval.
    corrected = getattr(judged, "corrected", None)
    ends = {f"corrected_{one}": one for one in ("low", "high", "confidence")}
    return {
        "advisory_because": "; ".join(finding.advisory) or None,
        **read_fields(judged, "correction"),
        **read_fields(corrected, corrected_rate="rate"),
        **read_fields(getattr(corrected, "interval", None), **ends),
        **read_fields(find_labels(finding), "labels"),
        **read_fields(judged, "open_because", "labels_needed", "trials_needed"),
    }


def list_judge_rows(finding: Finding) -> Iterator[tuple[str, str]]:
    """List the labels, what the judge said, what each correction leaves of it, and what is missing.

    The decision is that of the corrected rates, where they agree. The criterion's own rate and its
    path are about what the judge says.
    """
    labels, judged = find_labels(finding), finding.judged
    assert labels is not None  # the callers ask for rows of a measured judge only
    # How many labels there are comes first: a correction is never better than they are.
    yield "Labels", describe_labels(labels)
    if finding.tally.rate is not None:
        of = as_count(finding.tally.trials, "trial")
        yield "Judged", f"{as_observed(finding.tally.rate)} of {of}"
    for one in list_corrections(finding):
        said = _as_corrected(one, is_exact=True)
        if not isinstance(one.corrected, Undefined):
            confidence = one.corrected.interval.confidence
            level = "" if confidence is None else f" at {as_percent(confidence)}"
            said = f"{said}{level}: {one.decision} at {as_percent(one.required_rate)}"
        yield f"Corrected, {CORRECTION_NAMES[one.correction]}", said
    if judged is not None and judged.decision is Decision.INCONCLUSIVE:
        yield "Open because of", judged.open_because
        yield "Missing", name_missing(finding)


# What was measured of a judge, what that leaves of its rates, and what a decision still takes.
#
# The same facts as plain values for programs and as pages for people.

_ESTIMATES = {
    "Krippendorff's alpha": "alpha",
    "Cohen's kappa": "kappa",
    **{one: one for one in ("sensitivity", "specificity")},
    "to add to its rates": "rectifier",
}
_SHOWN_UNITS = 10
_SHOWN_PLANS = 6


def describe_calibration(name: str, judge: Judge | Pairwise, found: Calibration) -> dict[str, Any]:
    """Return what a calibration came to."""
    # Few runs are judged, and every report comes by this module.
    from trialwise.stats import rectifier

    assert judge.files is not None
    # Agreement says whether the judge may decide; sensitivity, specificity and the rectifier say
    # what its errors do to a rate.
    accuracy, delta = found.accuracy(), rectifier(found.confusion)
    counts, spent = found.confusion, judge.expenses
    return {
        "judge": name,
        "labels": counts.labels,
        "missing": found.missing,
        "confusion": read_fields(counts, "true_pass", "false_pass", "true_fail", "false_fail"),
        "alpha": _estimate(found.alpha, found.alpha_interval, found.alpha_shown),
        "kappa": _estimate(found.kappa, found.kappa_interval),
        "sensitivity": _estimate(accuracy.sensitivity, accuracy.sensitivity_interval),
        "specificity": _estimate(accuracy.specificity, accuracy.specificity_interval),
        "rectifier": _estimate(delta.value, delta.interval),
        "certification": found.certification.value,
        "advisory": list(found.marks(judge=judge.identity)),
        "wrong": list(found.wrong),
        "asked": spent.asked,
        "cached": spent.cached,
        "tokens": spent.input_tokens + spent.output_tokens,
        "usd": spent.usd,
        "file": near(judge.files.calibration),
    }


def build_calibration_page(facts: dict[str, Any]) -> Document:
    """Build the facts of a calibration as a page."""
    labels = facts["labels"]
    title = f"{facts['judge']}: {labels - len(facts['wrong'])} of {labels} labels agree"
    rows = list_rows((f"  {name}", said) for name, said in _list_calibration(facts))
    return Document(kind="Calibration", title=title, blocks=(rows,))


def _list_calibration(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    wrong, counts = facts["wrong"], facts["confusion"]
    if facts["missing"]:
        yield "no verdict on", f"{facts['missing']} units"
    fails, passes = counts["false_fail"], counts["false_pass"]
    yield "people pass", f"{counts['true_pass'] + fails}, of which the judge fails {fails}"
    yield "people fail", f"{counts['true_fail'] + passes}, of which the judge passes {passes}"
    for label, name in _ESTIMATES.items():
        yield label, _word_estimate(facts[name])
    if wrong:
        more = f" and {len(wrong) - _SHOWN_UNITS} more" if len(wrong) > _SHOWN_UNITS else ""
        yield "it differs on", f"{', '.join(map(make_visible, wrong[:_SHOWN_UNITS]))}{more}"
    cost = "" if facts["usd"] is None else f", ${facts['usd']:.4f}"
    cached = f", {facts['cached']} answers from the cache" if facts["cached"] else ""
    yield "it took", f"{facts['asked']} questions, {facts['tokens']:,} tokens{cost}{cached}"
    for reason in facts["advisory"]:
        yield "it only advises", reason
    if not facts["advisory"]:
        yield "its verdict", "may decide"
    yield "written to", facts["file"]


def describe_correction(
    rectified: CorrectedRate,
    other: CorrectedRate | Undefined,
    pooled: CorrectedRate | None,
    answer: JudgedDecision | None,
    *,
    correction: str,
    advisory: tuple[str, ...],
) -> dict[str, Any]:
    """Return what is left of a judged rate."""
    facts: dict[str, Any] = {
        "judged": {"value": rectified.judged_rate, "trials": rectified.trials},
        "rectified": _estimate(rectified.rate, rectified.interval),
        "rogan_gladen": {"undefined": other.reason}
        if isinstance(other, Undefined)
        else _estimate(other.rate, other.interval),
        "labels": rectified.confusion.labels,
        "advisory": list(advisory),
        "notes": list(_warn_unlike(rectified, correction)),
    }
    if pooled is not None:
        facts["pooled"] = _estimate(pooled.rate, pooled.interval)
    if answer is not None:
        facts |= {
            "correction": correction,
            "required": answer.required_rate,
            **read_fields(answer, "decision", "open_because", "labels_needed", "trials_needed"),
            "sentence": _word_answer(answer),
        }
    return facts


def build_correction_page(facts: dict[str, Any]) -> Document:
    """Build the facts of a correction as a page."""
    judged = facts["judged"]
    rows = [
        ("judged", f"{judged['value']:.3f} of {judged['trials']} trials"),
        ("rectified", _word_estimate(facts["rectified"])),
        ("Rogan–Gladen", _word_estimate(facts["rogan_gladen"])),
    ]
    rows += [("pooled", _word_estimate(facts["pooled"]))] if "pooled" in facts else []
    said = [facts["sentence"]] if "sentence" in facts else []
    said += [f"it only advises: {reason}" for reason in facts["advisory"]]
    notes = Prose(paragraphs=(*said, *facts["notes"]))
    return Document(kind="Correction", title="", blocks=(list_rows(rows), notes))


def describe_plans(
    judge: ExpectedJudge, required: float, plans: Sequence[LabelPlan]
) -> dict[str, Any]:
    """Return the plans for labels and trials, as plain values."""
    from trialwise.stats import find_cheapest

    return {
        "required": required,
        "expected": judge.rate,
        **read_fields(judge, "sensitivity", "specificity"),
        "plans": [asdict(one) for one in plans],
        "cheapest": asdict(find_cheapest(plans)),
    }


def build_labels_page(facts: dict[str, Any]) -> Document:
    """Build the plans for labels and trials as a page."""
    cheapest, shown = facts["cheapest"], facts["plans"][:_SHOWN_PLANS]
    table = build_table(
        "",
        shown if cheapest in shown else [*shown, cheapest],
        ("labels", lambda one: f"{one['labels']:,}"),
        ("trials", lambda one: f"{one['trials']:,}"),
        ("PASS", lambda one: f"{round(100 * one['power'])} %"),
        ("cost", lambda one: f"{one['cost']:,.2f}"),
        ("", lambda one: "cheapest" if one == cheapest else ""),
        notes=("Fewer labels would not certify the judge. Trials and chances are approximate.",),
        tone=lambda one: "chosen" if one == cheapest else "plain",
    )
    rates = f"{as_percent(facts['required'])} where {as_percent(facts['expected'])} is true"
    judge = f"sensitivity {facts['sensitivity']:.3f} and specificity {facts['specificity']:.3f}"
    lead = f"At least {rates}, with a judge of {judge}:"
    return Document(kind="Plan", title="", lead=lead, blocks=(table,))


def _warn_unlike(rectified: CorrectedRate, correction: str) -> Iterator[str]:
    """Yield a word of warning where the labels cannot have been drawn as the judged trials were."""
    from trialwise.stats.judged_tests import UNLIKE, compare_labels

    passed = round(rectified.judged_rate * rectified.trials)
    p_value = compare_labels(passed, rectified.trials, rectified.confusion)
    # The rectifier carries the errors on labelled outputs over to these trials. That fails where
    # labels were picked, for example only the doubtful ones; Rogan and Gladen (1978) ask only that
    # the judge errs at the same rates within good and bad outputs.
    if p_value < UNLIKE:
        way_out = "" if correction == "rogan-gladen" else "; decide by --correction rogan-gladen"
        there, here = rectified.confusion.judged_rate, rectified.judged_rate
        yield (
            f"The judge passes {as_observed(there)} of the labelled outputs and "
            f"{as_observed(here)} of these trials (p = {p_value:.2g}): the labels were not drawn "
            f"in the same way as the trials, so do not trust the rectified rate{way_out}."
        )


def _word_answer(answer: JudgedDecision) -> str:
    asked = f"{answer.decision}: at least {answer.required_rate:g} is asked for"
    if answer.open_because == "trials":
        return f"{asked}; about {answer.trials_needed:,} trials in all would decide it"
    if answer.open_because == "labels":
        if isinstance(answer.labels_needed, int):
            return f"{asked}; about {answer.labels_needed:,} labels in all would, trials would not"
        return f"{asked}; neither labels nor trials would decide it: {answer.labels_needed.reason}"
    return asked


def _estimate(
    value: float | Undefined, interval: Interval | Undefined, shown: float | Undefined | None = None
) -> dict[str, Any]:
    if isinstance(value, Undefined):
        return {"undefined": value.reason}
    # What the labels show is a lower bound: alpha itself may look good by chance on few of them.
    bound = {"shown": shown} if isinstance(shown, float) else {}
    if isinstance(interval, Undefined):
        return {"value": value, **bound, "interval_undefined": interval.reason}
    return {"value": value, **bound, "low": interval.low, "high": interval.high}


def _word_estimate(estimate: dict[str, Any]) -> str:
    if "value" not in estimate:
        return f"undefined: {estimate['undefined']}"
    bound = f"; the labels show at least {estimate['shown']:.3f}" if "shown" in estimate else ""
    if "low" not in estimate:
        return f"{estimate['value']:.3f} (no interval: {estimate['interval_undefined']}){bound}"
    return f"{estimate['value']:.3f} [{estimate['low']:.3f}, {estimate['high']:.3f}]{bound}"
