"""`trialwise judge`: how often a judge is wrong, and what its rates are worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.selecting import choose, load, selection

if TYPE_CHECKING:
    from trialwise.front import SuiteContract
    from trialwise.judges import Calibration, Judge
    from trialwise.stats import Interval, JudgedDecision, Undefined

__all__ = ["command"]

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
_SHOWN_UNITS = 10


@click.group("judge", no_args_is_help=True)
def command() -> None:
    """Measure how often a judge is wrong, and correct what it says.

    A judge whose errors nobody has measured can only advise. A gold set of outputs that people
    labelled changes that.

    \b
    Examples:
      trialwise judge calibrate
      trialwise judge correct gold/polite.calibration.json --judged 87/100 --at-least 80%
    """


@command.command()
@selection
@click.option("--criterion", "criteria", multiple=True, metavar="NAME", help="Only this one's.")
@click.option("--concurrency", type=click.IntRange(1), default=8, help="Questions side by side.")
@click.option("--seed", type=int, default=0, help="Of the order in which jurors see things.")
@_json
def calibrate(
    names: tuple[str, ...],
    file: Path | None,
    tags: tuple[str, ...],
    criteria: tuple[str, ...],
    **given: Any,
) -> int:
    """Put its gold set to every judge of a suite, and write down how often it is wrong.

    Asks the jurors about every labelled output, which costs what they cost. The calibration is a
    file to be kept in git, beside the gold set. Exits 0 where every judge may decide, 1 where one
    agrees with people too little, 3 where that is open or something else keeps it from deciding.

    \b
    Examples:
      trialwise judge calibrate
      trialwise judge calibrate support-agent --criterion polite --json
    """
    from trialwise.engine.ports import ServiceError
    from trialwise.judges import NothingJudged

    suite = load(file)
    found = list(_judges(choose(suite, names, tags), criteria))
    if not found:
        raise click.UsageError(f"no criterion of {suite.path} that was asked for has a judge")
    with_gold = [one for one in found if one[1].files is not None]
    for name, _ in found:
        if name not in [known for known, _ in with_gold]:
            click.echo(f"{name}: no `gold` set: its judge can only advise", err=True)
    if not with_gold:
        raise click.UsageError(f"no judge of {suite.path} that was asked for has a `gold` set")
    try:
        reports = [_calibrated(name, judge, given) for name, judge in with_gold]
    except (NothingJudged, ServiceError) as error:
        click.echo(f"trialwise: {error}", err=True)
        return ExitCode.ERROR
    _print(reports, as_json=given["as_json"])
    codes = [one["code"] for one in reports] + [ExitCode.INCONCLUSIVE] * (
        len(found) - len(with_gold)
    )
    return next(
        code for code in (ExitCode.FAIL, ExitCode.INCONCLUSIVE, ExitCode.PASS) if code in codes
    )


@command.command()
@click.argument("calibration", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--judged", required=True, metavar="K/N", help="What the judge passed, of how many.")
@click.option("--at-least", "required", metavar="RATE", help="The rate that is asked for.")
@click.option("--confidence", type=float, default=0.95, show_default=True)
@click.option(
    "--method",
    type=click.Choice(["exact", "cells", "score"]),
    default="exact",
    show_default=True,
    help="Guaranteed, by Wilson cells, or narrower and near.",
)
@_json
def correct(calibration: Path, judged: str, required: str | None, **given: Any) -> int:
    """Correct a judged rate for the judge's errors, and say what a decision still needs.

    By the rectifier, for labels drawn as the judged trials were, and by Rogan and Gladen, for
    labels collected by class. With --at-least the rectified rate decides: exits 0, 1 or 3.

    \b
    Example:
      trialwise judge correct gold/polite.calibration.json --judged 87/100 --at-least 80%
    """
    from trialwise.judges import read_calibration
    from trialwise.stats import decide_judged, rectified_rate, rogan_gladen_rate

    passed, trials = _counts(judged)
    confusion = read_calibration(calibration).confusion
    options = {"confidence": given["confidence"], "method": given["method"]}
    rectified = rectified_rate(passed, trials, confusion, **options)
    other = rogan_gladen_rate(passed, trials, confusion, **options)
    answer = None
    if required is not None:
        answer = decide_judged(passed, trials, confusion, _rate(required), **options)
    _print_corrected(rectified, other, answer, as_json=given["as_json"])
    if answer is None:
        return ExitCode.PASS
    return ExitCode[answer.decision.value]


def _judges(
    contracts: Sequence[SuiteContract], criteria: tuple[str, ...]
) -> Iterator[tuple[str, Judge]]:
    from trialwise.judges import Judge

    for one in contracts:
        for criterion in one.contract.criteria:
            if criteria and criterion.name not in criteria:
                continue
            for check in criterion.checks:
                inner = getattr(check, "condition", check)
                if isinstance(inner, Judge):
                    yield f"{one.name}: {criterion.name}", inner


def _calibrated(name: str, judge: Judge, given: dict[str, Any]) -> dict[str, Any]:
    """Ask, count, write; what a report needs of it."""
    from anyio import run

    from trialwise.judges import calibrate as measure
    from trialwise.judges import read_gold, write_calibration

    assert judge.files is not None
    gold = read_gold(judge.files.gold)

    async def ask() -> Calibration:
        return await measure(
            judge,
            gold,
            measured_at=datetime.now(UTC),
            seed=given["seed"],
            concurrency=given["concurrency"],
        )

    found = run(ask)
    write_calibration(judge.files.calibration, found)
    return _report(name, judge, found)


def _report(name: str, judge: Judge, found: Calibration) -> dict[str, Any]:
    from trialwise.cli.printing import near
    from trialwise.stats import Certification, rectifier

    assert judge.files is not None
    accuracy, delta = found.accuracy(), rectifier(found.confusion)
    marks = found.marks(judge=judge.identity)
    code = ExitCode.PASS if not marks else ExitCode.INCONCLUSIVE
    if found.certification is Certification.FAIL:
        code = ExitCode.FAIL
    counts = found.confusion
    return {
        "judge": name,
        "labels": counts.labels,
        "missing": found.missing,
        "confusion": {
            one: getattr(counts, one)
            for one in ("true_pass", "false_pass", "true_fail", "false_fail")
        },
        "alpha": _estimate(found.alpha, found.alpha_interval),
        "kappa": _estimate(found.kappa, found.kappa_interval),
        "sensitivity": _estimate(accuracy.sensitivity, accuracy.sensitivity_interval),
        "specificity": _estimate(accuracy.specificity, accuracy.specificity_interval),
        "rectifier": _estimate(delta.value, delta.interval),
        "certification": found.certification.value,
        "advisory": list(marks),
        "wrong": list(found.wrong),
        "asked": judge.expenses.asked,
        "cached": judge.expenses.cached,
        "tokens": judge.expenses.input_tokens + judge.expenses.output_tokens,
        "usd": judge.expenses.usd,
        "file": near(judge.files.calibration),
        "code": code,
    }


def _estimate(value: float | Undefined, interval: Interval | Undefined) -> dict[str, Any]:
    from trialwise.stats.values import Undefined

    found: dict[str, Any] = {}
    if isinstance(value, Undefined):
        return {"undefined": value.reason}
    found["value"] = value
    if isinstance(interval, Undefined):
        return found | {"interval_undefined": interval.reason}
    return found | {"low": interval.low, "high": interval.high}


def _print(reports: list[dict[str, Any]], *, as_json: bool) -> None:
    from trialwise.cli.printing import say, say_json

    if as_json:
        plain = [{key: one[key] for key in one if key != "code"} for one in reports]
        say_json({"calibrations": plain})
        return
    for one in reports:
        say("\n".join(_lines(one)))


def _lines(one: dict[str, Any]) -> Iterator[str]:
    from trialwise.reporters.layout import visible

    wrong = one["wrong"]
    yield f"{visible(one['judge'])}: {one['labels'] - len(wrong)} of {one['labels']} labels agree"
    if one["missing"]:
        yield f"  no verdict on {one['missing']} units"
    for name, title in (
        ("alpha", "Krippendorff's alpha"),
        ("kappa", "Cohen's kappa"),
        ("sensitivity", "sensitivity"),
        ("specificity", "specificity"),
        ("rectifier", "to add to its rates"),
    ):
        yield f"  {title:<21} {_shown(one[name])}"
    if wrong:
        more = f" and {len(wrong) - _SHOWN_UNITS} more" if len(wrong) > _SHOWN_UNITS else ""
        yield f"  it differs on         {', '.join(map(visible, wrong[:_SHOWN_UNITS]))}{more}"
    cost = "" if one["usd"] is None else f", ${one['usd']:.4f}"
    yield f"  it took               {one['asked']} questions, {one['tokens']:,} tokens{cost}"
    for reason in one["advisory"]:
        yield f"  it only advises: {reason}"
    if not one["advisory"]:
        yield "  its verdict may decide"
    yield f"  written to {one['file']}"


def _shown(estimate: dict[str, Any]) -> str:
    if "value" not in estimate:
        return f"undefined: {estimate['undefined']}"
    if "low" not in estimate:
        return f"{estimate['value']:.3f} (no interval: {estimate['interval_undefined']})"
    return f"{estimate['value']:.3f} [{estimate['low']:.3f}, {estimate['high']:.3f}]"


def _print_corrected(
    rectified: Any, other: Any, answer: JudgedDecision | None, *, as_json: bool
) -> None:
    from trialwise.cli.printing import say, say_json
    from trialwise.stats.values import Undefined

    rates = {
        "judged": {"value": rectified.judged_rate, "trials": rectified.trials},
        "rectified": _estimate(rectified.rate, rectified.interval),
        "rogan_gladen": {"undefined": other.reason}
        if isinstance(other, Undefined)
        else _estimate(other.rate, other.interval),
        "labels": rectified.confusion.labels,
    }
    if answer is not None:
        rates |= {
            "required": answer.required_rate,
            "decision": answer.decision.value,
            "open_because": answer.open_because,
            "labels_needed": _number(answer.labels_needed),
            "trials_needed": _number(answer.trials_needed),
        }
    if as_json:
        say_json(rates)
        return
    say(f"judged         {rectified.judged_rate:.3f} of {rectified.trials} trials")
    say(f"rectified      {_shown(rates['rectified'])}")
    say(f"Rogan–Gladen   {_shown(rates['rogan_gladen'])}")
    if answer is not None:
        say(_sentence(answer))


def _sentence(answer: JudgedDecision) -> str:
    asked = f"{answer.decision}: at least {answer.required_rate:g} is asked for"
    if answer.open_because == "trials":
        return f"{asked}; about {answer.trials_needed:,} trials in all would decide it"
    if answer.open_because == "labels":
        if isinstance(answer.labels_needed, int):
            return f"{asked}; about {answer.labels_needed:,} labels in all would, trials would not"
        return f"{asked}; neither labels nor trials would decide it: {answer.labels_needed.reason}"
    return asked


def _number(value: int | Undefined) -> int | None:
    return value if isinstance(value, int) else None


def _counts(text: str) -> tuple[int, int]:
    first, slash, second = text.partition("/")
    if not slash or not first.strip().isdigit() or not second.strip().isdigit():
        raise click.BadParameter(f"{text!r} is not counts such as 87/100", param_hint="--judged")
    return int(first), int(second)


def _rate(text: str) -> float:
    from trialwise.front.values import rate

    found = rate(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is no rate; write 80% or 0.8", param_hint="--at-least")
    return found
