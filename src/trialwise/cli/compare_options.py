"""What is asked of several arms: by the command line, else by the suite's section `compare`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trialwise.cli import options
from trialwise.cli.arm_choice import check_criteria
from trialwise.declarations.amounts import rate
from trialwise.reports.formats import list_answer_endings, match_answer_format
from trialwise.stats.multiplicity import CORRECTIONS
from trialwise.suite.loaded_suite import CompareSection

if TYPE_CHECKING:
    from trialwise.cli.arm_choice import LiveArms, StoredArms

F = TypeVar("F", bound=Callable[..., Any])


def _check_ending(path: Path) -> None:
    match_answer_format(path)
    options.require_folder(path)


def _read_guardrail(text: str) -> tuple[str, float] | None:
    name, _, margin = text.rpartition("=")
    share = rate(margin.strip())
    return None if not name or share is None or not 0 < share < 1 else (name.strip(), float(share))


GUARDRAIL = options.Written(
    "criterion=rate", "be a criterion and a margin: safe=2%", _read_guardrail
)


def compare_options(function: F) -> F:
    """Add the options that say what is asked, how surely, and where the answer goes."""
    for decorate in reversed(_OPTIONS):
        function = decorate(function)
    return function


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--question",
        type=click.Choice((*options.QUESTIONS, "best", "describe")),
        help="What is asked of each candidate, or of all arms: which is best, or to describe them. "
        " [default: different; not-worse with --margin]",
    ),
    click.option("--margin", type=options.RATE, help="The margin m of the question, such as 2%."),
    click.option(
        "--guardrail",
        "guardrails",
        type=GUARDRAIL,
        multiple=True,
        help="A criterion that may not be worse by more, whatever is asked of the others; may be "
        "repeated.",
    ),
    click.option(
        "--expect",
        type=options.ARM_RATES,
        help="The rates you expect of the control and the candidate, to plan the pairs for; with "
        "best the rate of each arm (90%,80%,80%), for --dry-run.",
    ),
    click.option(
        "--trials",
        type=options.TRIALS,
        help="Make exactly N pairs.  [default: stop when the pairs decide; "
        "50 of each arm with describe]",
    ),
    click.option(
        "--max-trials",
        type=options.TRIALS,
        help="Upper limit on pairs where none is fixed; on rounds with best (1000).",
    ),
    click.option(
        "--confidence", type=options.RATE, help="Confidence of all tests together.  [default: 95%]"
    ),
    click.option(
        "--correction",
        type=click.Choice(CORRECTIONS),
        help="How several tests share the level.  [default: holm]",
    ),
    click.option("--all-pairs", is_flag=True, help="Also compare the candidates with one another."),
    click.option(
        "--smallest-difference",
        type=options.RATE,
        help="With best: the smallest difference between two rates that matters.  [default: 10%]",
    ),
    click.option(
        "--break-ties",
        is_flag=True,
        help="With best: choose the last arm at once, also where another may be as good.",
    ),
    click.option(
        "--a-a",
        is_flag=True,
        help="Compare one contract with itself: is a difference found that is not there?",
    ),
    options.build_output_option(_check_ending, list_answer_endings()),
)


_PAIRED = ("margin", "guardrails", "correction", "all_pairs", "a_a")


def read_asked(given: Mapping[str, Any], chosen: LiveArms | StoredArms) -> dict[str, Any]:
    """Return the arguments of `compare`: by the command line, else by the suite, else the usual."""
    if given["question"] in ("best", "describe"):
        return _read_of_all(given)
    section = CompareSection() if chosen.suite is None else chosen.suite.compare
    if given["a_a"]:
        if given["question"] or given["margin"] or given["guardrails"] or given["all_pairs"]:
            message = "--a-a asks whether a difference is found: leave other questions out"
            raise click.UsageError(message)
        section = replace(section, question=None, margin=None, guardrails={}, all_pairs=False)
    # An option without a meaning is refused: it would be taken for one that acts.
    if given["smallest_difference"] is not None or given["break_ties"]:
        raise click.UsageError("--smallest-difference and --break-ties go with --question best")
    question, margin = given["question"], given["margin"]
    if question is None:
        # A margin alone asks whether a candidate is not worse by more.
        question = section.question if margin is None or section.question else None
    # The margin of the suite belongs to the question of the suite.
    if margin is None and question == section.question and question != "different":
        margin = section.margin
    sizes = given["trials"], given["max_trials"]
    if None not in sizes:
        raise click.UsageError("--trials fixes the number of pairs: leave out --max-trials")
    trials, max_trials = sizes if any(sizes) else (section.trials, section.max_trials)
    # Guardrails add up: a command must not drop the ones that a team agreed on.
    guardrails = {**section.guardrails, **dict(given["guardrails"])}
    arm: Any = chosen.arms[0]
    planned = () if hasattr(arm, "contract") else arm.record.plan.criteria
    known = [one.criterion for one in planned] or [one.name for one in arm.contract.criteria]
    check_criteria(guardrails, known)
    expect = given["expect"] or section.expect
    if expect is not None and (len(expect) != 2 or not all(0 < one < 1 for one in expect)):
        raise click.UsageError("--expect must be two rates such as 80%:90% for this question")
    return {
        "question": question,
        "margin": None if margin is None else float(margin),
        "guardrails": guardrails,
        "expect": expect,
        "trials": trials,
        "max_trials": max_trials,
        "confidence": float(given["confidence"] or section.confidence or 0.95),
        "correction": given["correction"] or section.correction or "holm",
        "against": "all" if given["all_pairs"] or section.all_pairs else "control",
    }


def _read_of_all(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is asked of all arms together; the suite's section is about candidates."""
    for name in _PAIRED:
        if given[name]:
            option = name.replace("guardrails", "guardrail").replace("_", "-")
            message = f"--{option} compares candidates with a control: leave it out here"
            raise click.UsageError(message)
    asked = {
        "question": given["question"],
        "trials": given["trials"],
        "max_trials": given["max_trials"],
        "confidence": float(given["confidence"] or 0.95),
        # One criterion decides, and the others are asked all the same.
        "criterion": given["criteria"][0] if len(given["criteria"]) == 1 else None,
    }
    if given["question"] == "best":
        asked["smallest_difference"] = float(given["smallest_difference"] or 0.1)
        asked["break_ties"] = given["break_ties"]
    return asked
