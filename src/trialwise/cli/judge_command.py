"""`trialwise judge`: how often a judge is wrong, and what its rates are worth."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import click

from trialwise import judges, stats
from trialwise.cli import options
from trialwise.cli.options import RATE, SUCCESSES, opt, refusal
from trialwise.cli.process import ExitCode, say, say_facts, say_json, say_page
from trialwise.pages import judge_facts
from trialwise.runtime.chosen_runs import RunChooser
from trialwise.runtime.selecting import Selection, load
from trialwise.suite import SuiteContract

#: A judge, or one that prefers one of two replies, and the criterion or comparison that it is of.
_Named: TypeAlias = "tuple[str, judges.Judge | judges.Pairwise]"
_Correct: TypeAlias = Literal["rectifier", "rogan-gladen", "pooled"]
_Method: TypeAlias = Literal["exact", "boxes", "cells", "score"]
_OPEN = click.FloatRange(0, 1, min_open=True, max_open=True)
_READ = click.Path(path_type=Path, exists=True, dir_okay=False)


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
@options.selection
@options.criterion_option
@click.option("--concurrency", type=click.IntRange(1), default=8, help="Questions side by side.")
@click.option("--seed", type=int, default=0, help="Of the order in which jurors see things.")
@options.json_option
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
    suites, criteria = selected.load(), selected.changes.criteria
    where = " and ".join(str(suite.path) for suite in suites)
    found = list(_list_judges([one for _, one in selected.choose(suites)], criteria))
    if not selected.names:
        # The judges that prefer one of two replies in the comparisons.
        preferences = filter(None, (one.compare.preference for one in suites))
        found += [
            (f"compare: {one.name}", one)
            for one in preferences
            if not criteria or one.name in criteria
        ]
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
                say_page(judge_facts.build_calibration_page(facts))
    if given["as_json"]:
        say_json({"calibrations": reports})
    # One code for all judges: a build must not go on because the last of them is fine.
    worst_first = (ExitCode.ERROR, ExitCode.FAIL, ExitCode.INCONCLUSIVE, ExitCode.PASS)
    return next(code for code in worst_first if code in codes)


@command.command()
@click.argument("output", type=options.FILE)
@options.suite_option
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
    suite = load(file)
    record = RunChooser().find(run_name).record()
    contract = next((one for one in suite.contracts if one.name == record.plan.contract), None)
    if contract is None:
        raise click.UsageError(f"{suite.path} has no contract {record.plan.contract!r}")
    experiment = _find_experiment(contract, criterion)
    sampling = contract.contract.samplings[experiment]
    lines = judges.draw_unlabelled(record, sampling, experiment=experiment, **given)
    texts = [json.dumps(one, ensure_ascii=False) for one in lines]
    try:
        # "x": labels are work of hours, and must not be overwritten by a second draw.
        with output.open("x", encoding="utf-8", errors="replace") as written:
            written.write("\n".join(texts) + "\n")
    except FileExistsError:
        raise click.UsageError(f"{output} exists, and may hold labels: name another file") from None
    except OSError as error:
        raise click.UsageError(f"{output} cannot be written: {error.strerror}") from None
    say(f"{output}: {len(texts) - 1} outputs of {record.run_id}, to be labelled")
    return ExitCode.PASS


def _find_experiment(contract: SuiteContract, criterion: str | None) -> str:
    """Return the sampling that a judge's criterion runs over."""
    whole = contract.contract
    judged = {name.removeprefix(f"{contract.name}: ") for name, _ in _list_judges([contract], ())}
    wanted = judged if criterion is None else judged & {criterion}
    found = {whole.experiment_of(one) for one in whole.criteria if one.name in wanted}
    if len(found) != 1:
        known = ", ".join(sorted(judged)) or "none has one"
        raise click.UsageError(f"name one criterion with a judge by --criterion: {known}")
    return found.pop()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Correction:
    """How a judged rate is corrected.

    Args:
        judged: What it passed, of how many: 87/100.
        required: The rate that is asked for.
        confidence: Confidence of the intervals. With 0.90 each side has an error of 5 %, as in a
            run.
        correction: The rate that decides: for labels drawn like the trials, collected by class, or
            drawn from this very service, so that they count as trials.
        method: Exact tests, exact or Wilson's cells (wider), or an approximation.
    """

    judged: Annotated[tuple[int, int], opt(type=SUCCESSES, multiple=False)]
    required: Annotated[float | None, opt("--at-least", type=RATE)] = None
    confidence: Annotated[float, opt(type=_OPEN, show_default=True)] = 0.90
    correction: Annotated[_Correct, opt(show_default=True)] = "rectifier"
    method: Annotated[_Method, opt(show_default=True)] = "exact"
    as_json: bool


@command.command()
@click.argument("calibration", type=_READ)
@options.declared(_Correction)
def correct(calibration: Path, how: _Correction) -> int:
    """Correct a judged rate for the judge's errors, and say what a decision still needs.

    By the rectifier, for labels drawn as the judged trials were, and by Rogan and Gladen, for
    labels collected by class; with --correction pooled also with the labels as trials. With
    --at-least the one of --correction decides: exits 0, 1 or 3.

    \b
    Example:
      trialwise judge correct gold/polite.calibration.json --judged 87/100 --at-least 80%
    """
    required, correction, confidence = how.required, how.correction, how.confidence
    if required is not None and not 0 < required < 1:
        raise refusal("--at-least", f"{required:g}", "be a rate between 0 and 1, such as 80%")
    if correction == "pooled" and how.method != "exact":
        raise refusal("--method", how.method, "be exact with --correction pooled")
    measured = judges.read_calibration(calibration)
    counts = (*how.judged, measured.confusion)
    by: dict[str, Any] = {"confidence": confidence, "method": how.method}
    answer = pooled = None
    if required is not None:
        answer = stats.decide_judged(*counts, required, correction=correction, **by)
    if correction == "pooled":
        pooled = stats.pooled_rate(*counts, confidence=confidence)
    facts = judge_facts.describe_correction(
        stats.rectified_rate(*counts, **by),
        stats.rogan_gladen_rate(*counts, **by),
        pooled,
        answer,
        correction=correction,
        advisory=measured.marks(judge=measured.judge),
    )
    say_facts(facts, judge_facts.build_correction_page, as_json=how.as_json)
    return ExitCode.PASS if answer is None else ExitCode[answer.decision.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Labels:
    """What labels are planned for.

    Args:
        required: The required rate.
        expect: The rate that the service is expected to have.
        sensitivity: Share of good replies that the judge passes.
        specificity: Share of bad replies that the judge fails.
        power: Chance of a PASS.
        trial_cost: Cost of one trial with its judge, in the same money as --label-cost.
        runs: Number of runs that use the labels. Labels are paid once, trials in every run.
        labels_count_as_trials: Plan for labels of the service as it is now.
    """

    required: Annotated[float, opt("--at-least", type=RATE)]
    expect: Annotated[float, opt(type=RATE)]
    sensitivity: Annotated[float | None, opt(type=RATE)] = None
    specificity: Annotated[float | None, opt(type=RATE)] = None
    power: Annotated[float, opt(type=RATE, default="80%", show_default=True)] = 0.8
    label_cost: Annotated[float, opt(type=click.FloatRange(0), show_default=True)] = 1.0
    trial_cost: Annotated[float, opt(type=click.FloatRange(0), show_default=True)] = 0.05
    runs: Annotated[int, opt(type=click.IntRange(1), show_default=True)] = 1
    labels_count_as_trials: bool = False
    as_json: bool


@command.command()
@click.argument("calibration", required=False, type=_READ)
@options.declared(_Labels)
def plan(calibration: Path | None, how: _Labels) -> int:
    """Say how many labels and trials a judged criterion takes, and which mix costs least.

    The judge's accuracies come from a calibration, or from --sensitivity and --specificity while
    the judge has not been measured. Numbers of trials are approximate.

    \b
    Examples:
      trialwise judge plan --at-least 75% --expect 85% --sensitivity 98% --specificity 90%
      trialwise judge plan gold.calibration.json --at-least 75% --expect 85% --runs 50
    """
    if not 0 < how.required < how.expect < 1:
        raise refusal("--expect", f"{how.expect:g}", "be above --at-least and below 100%")
    sensitivity, specificity = _accuracies(calibration, how)
    judge = stats.ExpectedJudge(rate=how.expect, sensitivity=sensitivity, specificity=specificity)
    names = ("power", "label_cost", "trial_cost", "runs", "labels_count_as_trials")
    plans = stats.plan_labels(judge, how.required, **{name: getattr(how, name) for name in names})
    if isinstance(plans, stats.Undefined):
        raise click.UsageError(f"no plan: {plans.reason}")
    facts = judge_facts.describe_plans(judge, how.required, plans)
    say_facts(facts, judge_facts.build_labels_page, as_json=how.as_json)
    return ExitCode.PASS


def _accuracies(calibration: Path | None, how: _Labels) -> tuple[float, float]:
    """Return sensitivity and specificity, as the options say or else as they were measured."""
    seen = None if calibration is None else judges.read_calibration(calibration).accuracy()
    found: list[Any] = []
    for name in ("sensitivity", "specificity"):
        said = getattr(how, name)
        found.append(getattr(seen, name, None) if said is None else said)
    if None in found or any(isinstance(one, stats.Undefined) for one in found):
        message = "name a calibration with labels of both kinds, or --sensitivity and --specificity"
        raise click.UsageError(message)
    return found[0], found[1]


def _list_judges(contracts: Sequence[SuiteContract], criteria: tuple[str, ...]) -> Iterator[_Named]:
    """List the judges of some criteria, or of all, also those in a `when`."""
    for one in contracts:
        for criterion in one.contract.criteria:
            for check in criterion.checks:
                inner = getattr(check, "condition", check)
                if isinstance(inner, judges.Judge) and (not criteria or criterion.name in criteria):
                    yield f"{one.name}: {criterion.name}", inner


def _check_files(named: Sequence[_Named]) -> None:
    """Two judges cannot keep what was measured of them in one file."""
    taken: dict[Path, tuple[str, str]] = {}
    for name, judge in named:
        assert judge.files is not None
        path = judge.files.calibration
        other, identity = taken.setdefault(path, (name, judge.identity))
        if identity != judge.identity:
            raise click.UsageError(
                f"{other} and {name} are two judges, and both would be written to {path}; give one "
                "of them a `calibration` of its own"
            )


def _calibrate_judge(
    name: str, judge: judges.Judge | judges.Pairwise, given: dict[str, Any]
) -> tuple[ExitCode, dict[str, Any] | None]:
    """Ask, count, write; how it ended, and what a report needs of it."""
    from anyio import run

    from trialwise.engine.ports import ServiceError

    assert judge.files is not None
    ask = _prepare_questions(name, judge, given)
    try:
        found = run(ask)
    except judges.GoldSetError as error:
        raise judges.GoldSetError(f"{judge.files.gold}: {error}") from None
    except (judges.NothingJudged, ServiceError) as error:
        said = str(error).removesuffix(".")
        click.echo(f"trialwise: {name}: {said}; nothing was written", err=True)
        return ExitCode.ERROR, None
    judges.write_calibration(judge.files.calibration, found)
    facts = judge_facts.describe_calibration(name, judge, found)
    if found.certification is stats.Certification.FAIL:
        return ExitCode.FAIL, facts
    # What only advises leaves the verdict to somebody else.
    return ExitCode.INCONCLUSIVE if facts["advisory"] else ExitCode.PASS, facts


def _prepare_questions(
    name: str, judge: judges.Judge | judges.Pairwise, given: dict[str, Any]
) -> Callable[[], Awaitable[judges.Calibration]]:
    """Return what asks the judge about its gold set, once it is said how much that is."""
    assert judge.files is not None
    how = {name: given[name] for name in ("seed", "concurrency")}
    how["measured_at"] = datetime.now(UTC)
    if isinstance(judge, judges.Pairwise):
        pairs = judges.read_pair_gold(judge.files.gold)
        click.echo(f"{name}: asking about {len(pairs.units)} labelled pairs, twice each", err=True)
        return lambda: judges.calibrate_pairwise(judge, pairs, **how)
    gold = judges.read_gold(judge.files.gold)
    votes = "" if judge.votes == 1 else f", {judge.votes} votes on each"
    click.echo(f"{name}: asking about {len(gold.units)} labelled outputs{votes}", err=True)
    return lambda: judges.calibrate(judge, gold, **how)
