"""What was measured of a judge, what that leaves of its rates, and what a decision still takes.

The same facts as plain values for programs and as pages for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from trialwise.documents.blocks import Document, Prose, Row, Table, build_table
from trialwise.documents.numbers import as_observed, as_percent
from trialwise.documents.printable import make_visible, near
from trialwise.stats import find_cheapest, rectifier
from trialwise.stats.judged_tests import UNLIKE, compare_labels
from trialwise.stats.result_types import Interval, Undefined

if TYPE_CHECKING:
    from trialwise.judges import Calibration, Judge, Pairwise
    from trialwise.stats import CorrectedRate, ExpectedJudge, JudgedDecision, LabelPlan


_SHOWN_UNITS = 10
_SHOWN_PLANS = 6


def describe_calibration(name: str, judge: Judge | Pairwise, found: Calibration) -> dict[str, Any]:
    """Return what a calibration came to."""
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


def build_calibration_page(facts: dict[str, Any]) -> Document:
    """Build the facts of a calibration as a page."""
    labels = facts["labels"]
    return Document(
        kind="Calibration",
        title=f"{facts['judge']}: {labels - len(facts['wrong'])} of {labels} labels agree",
        blocks=(_tabulate_facts((f"  {name}", said) for name, said in _list_calibration(facts)),),
    )


def _list_calibration(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    wrong, counts = facts["wrong"], facts["confusion"]
    if facts["missing"]:
        yield "no verdict on", f"{facts['missing']} units"
    good, bad = (
        counts["true_pass"] + counts["false_fail"],
        counts["true_fail"] + counts["false_pass"],
    )
    yield "people pass", f"{good}, of which the judge fails {counts['false_fail']}"
    yield "people fail", f"{bad}, of which the judge passes {counts['false_pass']}"
    yield "Krippendorff's alpha", _word_estimate(facts["alpha"])
    yield "Cohen's kappa", _word_estimate(facts["kappa"])
    yield "sensitivity", _word_estimate(facts["sensitivity"])
    yield "specificity", _word_estimate(facts["specificity"])
    yield "to add to its rates", _word_estimate(facts["rectifier"])
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


def _tabulate_facts(rows: Iterable[tuple[str, str]]) -> Table:
    found = tuple(Row(cells=cells) for cells in rows)
    return Table(heading="", columns=("", ""), rows=found, words=(0, 1))


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
            "decision": answer.decision.value,
            "open_because": answer.open_because,
            "labels_needed": _number(answer.labels_needed),
            "trials_needed": _number(answer.trials_needed),
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
    return Document(
        kind="Correction",
        title="",
        blocks=(_tabulate_facts(rows), Prose(paragraphs=(*said, *facts["notes"]))),
    )


def describe_plans(
    judge: ExpectedJudge, required: float, plans: Sequence[LabelPlan]
) -> dict[str, Any]:
    """Return the plans for labels and trials, as plain values."""
    return {
        "required": required,
        "expected": judge.rate,
        "sensitivity": judge.sensitivity,
        "specificity": judge.specificity,
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
    return Document(
        kind="Plan",
        title="",
        lead=(
            f"At least {as_percent(facts['required'])} where {as_percent(facts['expected'])} is "
            f"true, with a judge of sensitivity {facts['sensitivity']:.3f} and specificity "
            f"{facts['specificity']:.3f}:"
        ),
        blocks=(table,),
    )


def _warn_unlike(rectified: CorrectedRate, correction: str) -> Iterator[str]:
    """Yield a word of warning where the labels cannot have been drawn as the judged trials were."""
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
