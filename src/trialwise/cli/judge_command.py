"""`trialwise judge`: how often a judge is wrong, and what its rates are worth."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.options import (
    RATE,
    SUCCESSES,
    criterion_option,
    json_option,
    refusal,
    selection,
    suite_option,
)

if TYPE_CHECKING:
    from trialwise.judges import Calibration, Judge, Pairwise
    from trialwise.runtime.selecting import Selection
    from trialwise.suite import Suite, SuiteContract


@click.group("judge", no_args_is_help=True)
def command() -> None:
    """Measure how often a judge is wrong, and correct what it says.

    A judge whose errors nobody has measured can only advise. A gold set of outputs that people
    labelled changes that.

    \b
    Examples:
      trialwise judge draw gold/polite.jsonl
      trialwise judge calibrate
      trialwise judge correct gold/polite.calibration.json --judged 87/100 --at-least 80%
      trialwise judge plan gold/polite.calibration.json --at-least 80% --expect 88%
    """


@command.command()
@selection
@criterion_option
@click.option("--concurrency", type=click.IntRange(1), default=8, help="Questions side by side.")
@click.option("--seed", type=int, default=0, help="Of the order in which jurors see things.")
@json_option
def calibrate(selected: Selection, **given: Any) -> int:
    """Put its gold set to every judge of a suite, and write down how often it is wrong.

    Asks the jurors about every labelled output, which costs what they cost. The calibration is a
    file to be kept in git, beside the gold set. Exits 0 where every judge may decide, 1 where one
    agrees with people too little, 3 where that is open or something else keeps it from deciding,
    and 4 where one gave no verdict at all.

    \b
    Examples:
      trialwise judge calibrate
      trialwise judge calibrate support-agent --criterion polite --json
    """
    from trialwise.cli.printing import say_json, say_page
    from trialwise.pages.judge_facts import build_calibration_page

    suites, criteria = selected.load(), selected.changes.criteria
    where = " and ".join(str(suite.path) for suite in suites)
    chosen = [one for _, one in selected.choose(suites)]
    found: list[tuple[str, Judge | Pairwise]] = list(_judges(chosen, criteria))
    if not selected.names:
        found += _list_preferences(suites, criteria)
    if not found:
        raise click.UsageError(f"no criterion of {where} that was asked for has a judge")
    with_gold = [(name, judge) for name, judge in found if judge.files is not None]
    for name, judge in found:
        if judge.files is None:
            click.echo(f"{name}: no `gold` set: its judge can only advise", err=True)
    if not with_gold:
        raise click.UsageError(f"no judge of {where} that was asked for has a `gold` set")
    _check_files(with_gold)
    codes = [ExitCode.INCONCLUSIVE] * (len(found) - len(with_gold))
    reports = []
    for name, judge in with_gold:
        code, facts = _calibrate_judge(name, judge, given)
        codes.append(code)
        if facts is not None:
            reports.append(facts)
            if not given["as_json"]:
                say_page(build_calibration_page(facts))
    if given["as_json"]:
        say_json({"calibrations": reports})
    return next(code for code in _WORST_FIRST if code in codes)


_WORST_FIRST = (ExitCode.ERROR, ExitCode.FAIL, ExitCode.INCONCLUSIVE, ExitCode.PASS)


@command.command()
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
@suite_option
@click.option("--run", "run_name", default="latest", metavar="RUN", help="A run, or a contract.")
@click.option("--criterion", metavar="NAME", help="Whose judge; needed where there are several.")
@click.option("--units", type=click.IntRange(1), default=100, show_default=True, help="How many.")
@click.option("--seed", type=int, default=0, help="Of the draw.")
def draw(
    output: Path, file: Path | None, run_name: str, criterion: str | None, **given: Any
) -> int:
    """Draw outputs of a stored run into a gold set, for people to label.

    Every trial is as likely as any other, as the rectifier needs it, and what the judge said is not
    shown. Writes JSON lines in which each `label` is still null: fill in "pass" or "fail", and say
    in the first line who labelled and by which rule.

    \b
    Example:
      trialwise judge draw gold/polite.jsonl --units 150
    """
    from trialwise.cli.printing import say
    from trialwise.judges import draw_unlabelled
    from trialwise.runtime.chosen_runs import RunChooser
    from trialwise.runtime.selecting import load

    suite = load(file)
    record = RunChooser().find(run_name).record()
    contract = next((one for one in suite.contracts if one.name == record.plan.contract), None)
    if contract is None:
        raise click.UsageError(f"{suite.path} has no contract {record.plan.contract!r}")
    experiment = _experiment(contract, criterion)
    lines = draw_unlabelled(
        record, contract.contract.samplings[experiment], experiment=experiment, **given
    )
    texts = [json.dumps(one, ensure_ascii=False) for one in lines]
    try:
        with output.open("x", encoding="utf-8", errors="replace") as written:
            written.write("\n".join(texts) + "\n")
    except FileExistsError:
        raise click.UsageError(f"{output} exists, and may hold labels: name another file") from None
    except OSError as error:
        raise click.UsageError(f"{output} cannot be written: {error.strerror}") from None
    say(f"{output}: {len(texts) - 1} outputs of {record.run_id}, to be labelled")
    return ExitCode.PASS


def _experiment(contract: SuiteContract, criterion: str | None) -> str:
    """Return the sampling that a judge's criterion runs over."""
    judged = {name.removeprefix(f"{contract.name}: ") for name, _ in _judges([contract], ())}
    several = [
        one
        for one in contract.contract.criteria
        if one.name in judged and criterion in (None, one.name)
    ]
    found = {contract.contract.experiment_of(one) for one in several}
    if len(found) != 1:
        known = ", ".join(sorted(judged)) or "none has one"
        raise click.UsageError(f"name one criterion with a judge by --criterion: {known}")
    return found.pop()


@command.command()
@click.argument("calibration", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--judged", type=SUCCESSES, required=True, help="What it passed, of how many: 87/100."
)
@click.option("--at-least", "required", type=RATE, help="The rate that is asked for.")
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.90,
    show_default=True,
    help="Confidence of the intervals. With 0.90 each side has an error of 5 %, as in a run.",
)
@click.option(
    "--correction",
    type=click.Choice(["rectifier", "rogan-gladen", "pooled"]),
    default="rectifier",
    show_default=True,
    help="The rate that decides: for labels drawn like the trials, collected by class, or drawn "
    "from this very service, so that they count as trials.",
)
@click.option(
    "--method",
    type=click.Choice(["exact", "boxes", "cells", "score"]),
    default="exact",
    show_default=True,
    help="Exact tests, exact or Wilson's cells (wider), or an approximation.",
)
@json_option
def correct(
    calibration: Path, judged: tuple[int, int], required: float | None, **given: Any
) -> int:
    """Correct a judged rate for the judge's errors, and say what a decision still needs.

    By the rectifier, for labels drawn as the judged trials were, and by Rogan and Gladen, for
    labels collected by class; with --correction pooled also with the labels as trials. With
    --at-least the one of --correction decides: exits 0, 1 or 3.

    \b
    Example:
      trialwise judge correct gold/polite.calibration.json --judged 87/100 --at-least 80%
    """
    from trialwise.cli.printing import say_json, say_page
    from trialwise.judges import read_calibration
    from trialwise.pages.judge_facts import build_correction_page, describe_correction
    from trialwise.stats import decide_judged, pooled_rate, rectified_rate, rogan_gladen_rate

    passed, trials = judged
    if required is not None and not 0 < required < 1:
        raise refusal("--at-least", f"{required:g}", "be a rate between 0 and 1, such as 80%")
    measured = read_calibration(calibration)
    options = {"confidence": given["confidence"], "method": given["method"]}
    counts, correction = measured.confusion, given["correction"]
    answer = None
    if required is not None:
        answer = decide_judged(passed, trials, counts, required, correction=correction, **options)
    pooled = None
    if correction == "pooled":
        if given["method"] != "exact":
            raise refusal("--method", given["method"], "be exact with --correction pooled")
        pooled = pooled_rate(passed, trials, counts, confidence=given["confidence"])
    facts = describe_correction(
        rectified_rate(passed, trials, counts, **options),
        rogan_gladen_rate(passed, trials, counts, **options),
        pooled,
        answer,
        correction=correction,
        advisory=measured.marks(judge=measured.judge),
    )
    if given["as_json"]:
        say_json(facts)
    else:
        say_page(build_correction_page(facts))
    return ExitCode.PASS if answer is None else ExitCode[answer.decision.value]


@command.command()
@click.argument(
    "calibration", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option("--at-least", "required", type=RATE, required=True, help="The required rate.")
@click.option(
    "--expect", type=RATE, required=True, help="The rate that the service is expected to have."
)
@click.option("--sensitivity", type=RATE, help="Share of good replies that the judge passes.")
@click.option("--specificity", type=RATE, help="Share of bad replies that the judge fails.")
@click.option("--power", type=RATE, default="80%", show_default=True, help="Chance of a PASS.")
@click.option("--label-cost", type=click.FloatRange(0), default=1.0, show_default=True)
@click.option(
    "--trial-cost",
    type=click.FloatRange(0),
    default=0.05,
    show_default=True,
    help="Cost of one trial with its judge, in the same money as --label-cost.",
)
@click.option(
    "--runs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of runs that use the labels. Labels are paid once, trials in every run.",
)
@click.option(
    "--labels-count-as-trials", is_flag=True, help="Plan for labels of the service as it is now."
)
@json_option
def plan(calibration: Path | None, required: float, expect: float, **given: Any) -> int:
    """Say how many labels and trials a judged criterion takes, and which mix costs least.

    The judge's accuracies come from a calibration, or from --sensitivity and --specificity while
    the judge has not been measured. Numbers of trials are approximate.

    \b
    Examples:
      trialwise judge plan --at-least 75% --expect 85% --sensitivity 98% --specificity 90%
      trialwise judge plan gold.calibration.json --at-least 75% --expect 85% --runs 50
    """
    from trialwise.cli.printing import say_json, say_page
    from trialwise.pages.judge_facts import build_labels_page, describe_plans
    from trialwise.stats import ExpectedJudge, Undefined, plan_labels

    if not 0 < required < expect < 1:
        raise refusal("--expect", f"{expect:g}", "be above --at-least and below 100%")
    sensitivity, specificity = _accuracies(calibration, given)
    judge = ExpectedJudge(rate=expect, sensitivity=sensitivity, specificity=specificity)
    plans = plan_labels(
        judge,
        required,
        power=given["power"],
        label_cost=given["label_cost"],
        trial_cost=given["trial_cost"],
        runs=given["runs"],
        labels_count_as_trials=given["labels_count_as_trials"],
    )
    if isinstance(plans, Undefined):
        raise click.UsageError(f"no plan: {plans.reason}")
    facts = describe_plans(judge, required, plans)
    if given["as_json"]:
        say_json(facts)
    else:
        say_page(build_labels_page(facts))
    return ExitCode.PASS


def _accuracies(calibration: Path | None, given: dict[str, Any]) -> tuple[float, float]:
    """Return sensitivity and specificity, as the options say or else as they were measured."""
    from trialwise.judges import read_calibration
    from trialwise.stats import Undefined

    found = [given["sensitivity"], given["specificity"]]
    if calibration is not None:
        accuracy = read_calibration(calibration).accuracy()
        measured = (accuracy.sensitivity, accuracy.specificity)
        found = [
            (None if isinstance(seen, Undefined) else seen) if said is None else said
            for said, seen in zip(found, measured, strict=True)
        ]
    if None in found:
        raise click.UsageError(
            "name a calibration with labels of both kinds, or --sensitivity and --specificity"
        )
    return found[0], found[1]


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


def _list_preferences(
    suites: Sequence[Suite], criteria: tuple[str, ...]
) -> list[tuple[str, Judge | Pairwise]]:
    """Return the judges that prefer one of two replies in the comparisons of suites."""
    judges = [one.compare.preference for one in suites if one.compare.preference is not None]
    return [(f"compare: {one.name}", one) for one in judges if not criteria or one.name in criteria]


def _check_files(judges: Sequence[tuple[str, Judge | Pairwise]]) -> None:
    """Two judges cannot keep what was measured of them in one file."""
    taken: dict[Path, tuple[str, str]] = {}
    for name, judge in judges:
        assert judge.files is not None
        path = judge.files.calibration
        other, identity = taken.setdefault(path, (name, judge.identity))
        if identity != judge.identity:
            message = (
                f"{other} and {name} are two judges, and both would be written to {path}; give one "
                "of them a `calibration` of its own"
            )
            raise click.UsageError(message)


def _calibrate_judge(
    name: str, judge: Judge | Pairwise, given: dict[str, Any]
) -> tuple[ExitCode, dict[str, Any] | None]:
    """Ask, count, write; how it ended, and what a report needs of it."""
    from anyio import run

    from trialwise.engine.ports import ServiceError
    from trialwise.judges import GoldSetError, NothingJudged, write_calibration
    from trialwise.pages.judge_facts import describe_calibration

    assert judge.files is not None
    ask = _prepare_questions(name, judge, given)
    try:
        found = run(ask)
    except GoldSetError as error:
        raise GoldSetError(f"{judge.files.gold}: {error}") from None
    except (NothingJudged, ServiceError) as error:
        said = str(error).removesuffix(".")
        click.echo(f"trialwise: {name}: {said}; nothing was written", err=True)
        return ExitCode.ERROR, None
    write_calibration(judge.files.calibration, found)
    facts = describe_calibration(name, judge, found)
    return _code(found, facts["advisory"]), facts


def _prepare_questions(
    name: str, judge: Judge | Pairwise, given: dict[str, Any]
) -> Callable[[], Awaitable[Calibration]]:
    """Return what asks the judge about its gold set, once it is said how much that is."""
    from trialwise.judges import Pairwise, calibrate_pairwise, read_gold, read_pair_gold
    from trialwise.judges import calibrate as measure

    assert judge.files is not None
    options = {
        "measured_at": datetime.now(UTC),
        "seed": given["seed"],
        "concurrency": given["concurrency"],
    }
    if isinstance(judge, Pairwise):
        pairs = read_pair_gold(judge.files.gold)
        click.echo(f"{name}: asking about {len(pairs.units)} labelled pairs, twice each", err=True)
        return lambda: calibrate_pairwise(judge, pairs, **options)
    gold = read_gold(judge.files.gold)
    votes = "" if judge.votes == 1 else f", {judge.votes} votes on each"
    click.echo(f"{name}: asking about {len(gold.units)} labelled outputs{votes}", err=True)
    return lambda: measure(judge, gold, **options)


def _code(found: Calibration, advisory: list[str]) -> ExitCode:
    from trialwise.stats import Certification

    if found.certification is Certification.FAIL:
        return ExitCode.FAIL
    return ExitCode.INCONCLUSIVE if advisory else ExitCode.PASS
