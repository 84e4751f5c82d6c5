"""What `trialwise judge` prints: the same facts as plain values and as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trialwise.judges import Calibration, Judge, Pairwise
    from trialwise.stats import (
        CorrectedRate,
        ExpectedJudge,
        Interval,
        JudgedDecision,
        LabelPlan,
        Undefined,
    )


_SHOWN_UNITS = 10
_SHOWN_PLANS = 6


def calibration_facts(name: str, judge: Judge | Pairwise, found: Calibration) -> dict[str, Any]:
    """Return what a calibration came to."""
    from trialwise.documents.printable import near
    from trialwise.stats import rectifier

    assert judge.files is not None
    accuracy, delta = found.accuracy(), rectifier(found.confusion)
    counts, spent = found.confusion, judge.expenses
    return {
        "judge": name,
        "labels": counts.labels,
        "missing": found.missing,
        "confusion": {
            one: getattr(counts, one)
            for one in ("true_pass", "false_pass", "true_fail", "false_fail")
        },
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


def calibration_lines(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the facts of a calibration, for people."""
    from trialwise.documents.printable import make_visible

    wrong, counts = facts["wrong"], facts["confusion"]
    labels = facts["labels"]
    yield f"{make_visible(facts['judge'])}: {labels - len(wrong)} of {labels} labels agree"
    if facts["missing"]:
        yield f"  no verdict on {facts['missing']} units"
    yield (
        f"  people pass           {counts['true_pass'] + counts['false_fail']}, of which the "
        f"judge fails {counts['false_fail']}"
    )
    yield (
        f"  people fail           {counts['true_fail'] + counts['false_pass']}, of which the "
        f"judge passes {counts['false_pass']}"
    )
    for name, title in (
        ("alpha", "Krippendorff's alpha"),
        ("kappa", "Cohen's kappa"),
        ("sensitivity", "sensitivity"),
        ("specificity", "specificity"),
        ("rectifier", "to add to its rates"),
    ):
        yield f"  {title:<21} {_word_estimate(facts[name])}"
    if wrong:
        more = f" and {len(wrong) - _SHOWN_UNITS} more" if len(wrong) > _SHOWN_UNITS else ""
        yield f"  it differs on         {', '.join(map(make_visible, wrong[:_SHOWN_UNITS]))}{more}"
    cost = "" if facts["usd"] is None else f", ${facts['usd']:.4f}"
    cached = f", {facts['cached']} answers from the cache" if facts["cached"] else ""
    asked = f"{facts['asked']} questions, {facts['tokens']:,} tokens{cost}{cached}"
    yield f"  it took               {asked}"
    for reason in facts["advisory"]:
        yield f"  it only advises: {reason}"
    if not facts["advisory"]:
        yield "  its verdict may decide"
    yield f"  written to {facts['file']}"


def correction_facts(
    rectified: CorrectedRate,
    other: CorrectedRate | Undefined,
    pooled: CorrectedRate | None,
    answer: JudgedDecision | None,
    *,
    correction: str,
    advisory: tuple[str, ...],
) -> dict[str, Any]:
    """Return what is left of a judged rate."""
    from trialwise.stats.result_types import Undefined

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
            "decision": answer.decision.value,
            "open_because": answer.open_because,
            "labels_needed": _number(answer.labels_needed),
            "trials_needed": _number(answer.trials_needed),
            "sentence": _word_answer(answer),
        }
    return facts


def correction_lines(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the facts of a correction, for people."""
    judged = facts["judged"]
    yield f"judged         {judged['value']:.3f} of {judged['trials']} trials"
    yield f"rectified      {_word_estimate(facts['rectified'])}"
    yield f"Rogan–Gladen   {_word_estimate(facts['rogan_gladen'])}"
    if "pooled" in facts:
        yield f"pooled         {_word_estimate(facts['pooled'])}"
    if "sentence" in facts:
        yield facts["sentence"]
    for reason in facts["advisory"]:
        yield f"it only advises: {reason}"
    yield from facts["notes"]


def plan_facts(judge: ExpectedJudge, required: float, plans: Sequence[LabelPlan]) -> dict[str, Any]:
    """Return the plans for labels and trials, as plain values."""
    from dataclasses import asdict

    from trialwise.stats import find_cheapest

    return {
        "required": required,
        "expected": judge.rate,
        "sensitivity": judge.sensitivity,
        "specificity": judge.specificity,
        "plans": [asdict(one) for one in plans],
        "cheapest": asdict(find_cheapest(plans)),
    }


def plan_lines(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the plans for labels and trials, for people."""
    from trialwise.documents.numbers import as_percent

    yield (
        f"At least {as_percent(facts['required'])} where {as_percent(facts['expected'])} is true, "
        f"with a judge of sensitivity {facts['sensitivity']:.3f} and specificity "
        f"{facts['specificity']:.3f}:"
    )
    yield f"{'labels':>8}{'trials':>9}{'PASS':>9}{'cost':>12}"
    cheapest = facts["cheapest"]
    shown = facts["plans"][:_SHOWN_PLANS]
    for one in shown if cheapest in shown else [*shown, cheapest]:
        mark = "  cheapest" if one == cheapest else ""
        yield (
            f"{one['labels']:>8,}{one['trials']:>9,}{round(100 * one['power']):>7} %"
            f"{one['cost']:>12,.2f}{mark}"
        )
    yield "Fewer labels would not certify the judge. Trials and chances are approximate."


def _warn_unlike(rectified: CorrectedRate, correction: str) -> Iterator[str]:
    """Yield a word of warning where the labels cannot have been drawn as the judged trials were."""
    from trialwise.documents.numbers import as_observed
    from trialwise.stats.judged_tests import UNLIKE, compare_labels

    passed = round(rectified.judged_rate * rectified.trials)
    p_value = compare_labels(passed, rectified.trials, rectified.confusion)
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
    value: float | Undefined,
    interval: Interval | Undefined,
    shown: float | Undefined | None = None,
) -> dict[str, Any]:
    from trialwise.stats.result_types import Undefined

    if isinstance(value, Undefined):
        return {"undefined": value.reason}
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


def _number(value: int | Undefined) -> int | None:
    return value if isinstance(value, int) else None
