"""What a comparison is asked: by the command line, else by the section `compare` of the suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from trialwise.cli.arm_choice import check_criteria
from trialwise.cli.options import (
    QUESTIONS,
    RATE,
    RATES,
    TRIALS,
    Written,
    build_output_option,
    require_folder,
)
from trialwise.declarations.amounts import rate
from trialwise.reports.comparison_reports import list_comparison_endings, match_comparison_format
from trialwise.stats.multiplicity import CORRECTIONS, Correction
from trialwise.suite.loaded_suite import CompareSection

if TYPE_CHECKING:
    from trialwise.cli.arm_choice import LiveArms, StoredArms
    from trialwise.procedures.comparing.findings import ComparisonQuestion, Question

F = TypeVar("F", bound=Callable[..., Any])


def _check_ending(path: Path) -> None:
    match_comparison_format(path)
    require_folder(path)


def _read_guardrail(text: str) -> tuple[str, float] | None:
    name, _, margin = text.rpartition("=")
    share = rate(margin.strip())
    return None if not name or share is None or not 0 < share < 1 else (name.strip(), float(share))


GUARDRAIL = Written("criterion=rate", "be a criterion and a margin: safe=2%", _read_guardrail)


def compare_options(function: F) -> F:
    """Add the options that say what is asked, how surely, and where the answer goes."""
    for decorate in reversed(_OPTIONS):
        function = decorate(function)
    return function


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--question",
        type=click.Choice(QUESTIONS),
        help="What is asked of each candidate.  [default: different; not-worse with --margin]",
    ),
    click.option("--margin", type=RATE, help="The margin m of the question, such as 2%."),
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
        type=RATES,
        help="The rates you expect of the control and the candidate, to plan the pairs for.",
    ),
    click.option(
        "--trials", type=TRIALS, help="Make exactly N pairs.  [default: stop when the pairs decide]"
    ),
    click.option("--max-trials", type=TRIALS, help="Upper limit on pairs where none is fixed."),
    click.option(
        "--confidence", type=RATE, help="Confidence of all tests together.  [default: 95%]"
    ),
    click.option(
        "--correction",
        type=click.Choice(CORRECTIONS),
        help="How several tests share the level.  [default: holm]",
    ),
    click.option("--all-pairs", is_flag=True, help="Also compare the candidates with one another."),
    click.option(
        "--a-a",
        is_flag=True,
        help="Compare one contract with itself: is a difference found that is not there?",
    ),
    build_output_option(_check_ending, list_comparison_endings()),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareAsked:
    """What a comparison is asked."""

    question: Question | None
    margin: float | None
    guardrails: Mapping[str, float]
    expect: tuple[float, float] | None
    trials: int | None
    """A fixed number of pairs."""
    max_trials: int | None
    confidence: float
    correction: Correction
    all_pairs: bool

    def build_question(self) -> ComparisonQuestion:
        """Return the question as comparisons of runs take it."""
        from trialwise.procedures.comparing.findings import ComparisonQuestion

        return ComparisonQuestion.of(
            self.question,
            self.margin,
            confidence=self.confidence,
            correction=self.correction,
            guardrails=self.guardrails,
            against="all" if self.all_pairs else "control",
        )

    def refuse_sizes(self) -> None:
        """Refuse what only arms that run can have."""
        if self.trials is not None or self.max_trials is not None:
            message = "--trials and --max-trials size a run: stored runs have their size"
            raise click.UsageError(message)


def read_asked(given: Mapping[str, Any], chosen: LiveArms | StoredArms) -> CompareAsked:
    """Return what is asked: by the command line, else by the suite, else the usual."""
    section = CompareSection() if chosen.suite is None else chosen.suite.compare
    question, margin = given["question"], given["margin"]
    if question is None:
        question = section.question if margin is None or section.question else None
    if margin is None and question == section.question and question != "different":
        margin = section.margin
    if given["a_a"]:
        if given["question"] or given["margin"] or given["guardrails"] or given["all_pairs"]:
            message = "--a-a asks whether a difference is found: leave other questions out"
            raise click.UsageError(message)
        section = replace(section, question=None, margin=None, guardrails={}, all_pairs=False)
        question = margin = None
    trials, max_trials = given["trials"], given["max_trials"]
    if trials is not None and max_trials is not None:
        raise click.UsageError("--trials fixes the number of pairs: leave out --max-trials")
    if trials is None and max_trials is None:
        trials, max_trials = section.trials, section.max_trials
    guardrails = {**section.guardrails, **dict(given["guardrails"])}
    _check_guardrails(guardrails, chosen)
    return CompareAsked(
        question=question,
        margin=None if margin is None else float(margin),
        guardrails=guardrails,
        expect=given["expect"] or section.expect,
        trials=trials,
        max_trials=max_trials,
        confidence=float(given["confidence"] or section.confidence or 0.95),
        correction=cast("Correction", given["correction"] or section.correction or "holm"),
        all_pairs=given["all_pairs"] or section.all_pairs,
    )


def _check_guardrails(guardrails: Mapping[str, float], chosen: LiveArms | StoredArms) -> None:
    first = chosen.arms[0]
    known = (
        [one.name for one in first.contract.criteria]
        if hasattr(first, "contract")
        else [one.criterion for one in first.record.plan.criteria]
    )
    check_criteria(guardrails, known)
