"""`trialwise compare`: which arm is better, and by how much?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.arm_choice import LiveArms, StoredArms, choose_arms, complete_arms
from trialwise.cli.compare_options import CompareAsked, compare_options, read_asked
from trialwise.cli.exits import ExitCode
from trialwise.cli.options import criterion_option, json_option, pair_options, suite_option
from trialwise.errors import RunInterrupted

if TYPE_CHECKING:
    from trialwise.cli.arm_choice import LiveArms
    from trialwise.cli.compare_options import CompareAsked
    from trialwise.pages.run_rules import Expense
    from trialwise.runtime.comparing import Comparison
    from trialwise.runtime.trial_sizing import SizingAnswer


def show_plan(chosen: LiveArms, asked: CompareAsked, given: dict[str, Any]) -> int:
    """Print what a comparison takes, and run nothing."""
    from trialwise.cli.printing import say, say_json

    answer, notes = plan_arms(chosen, asked)
    if given["as_json"]:
        say_json({**answer.to_dict(), "arms": list(chosen.labels), "notes": notes})
        return ExitCode.PASS
    say(answer.render("text").rstrip("\n"))
    for note in notes:
        say(note)
    say(f"{', '.join(chosen.labels)}: nothing was run")
    return ExitCode.PASS


def plan_arms(chosen: LiveArms, asked: CompareAsked) -> tuple[SizingAnswer, list[str]]:
    """Plan a comparison of arms: the answer, and what it is based on."""
    from trialwise.runtime.trial_sizing import plan_pairs

    question = asked.build_question()
    count = len(chosen.labels)
    couples = count * (count - 1) // 2 if asked.all_pairs else count - 1
    counting = [
        one.name
        for one in chosen.arms[0].contract.criteria
        if not getattr(one, "report_only", False)
    ]
    expenses = [_find_expense(chosen, place) for place in range(count)]
    known = [one for one in expenses if one is not None]
    usd = [one.trial_usd for one in known if one.trial_usd is not None]
    seconds = [one.trial_s for one in known if one.trial_s is not None]
    answer = plan_pairs(
        asked.expect,
        question=question.question,
        margin=question.margin,
        pairs=asked.trials,
        max_pairs=asked.max_trials,
        tests=couples * max(1, len(counting)) if asked.correction != "none" else 1,
        arms=count,
        confidence=asked.confidence,
        trial_usd=fmean(usd) or None if len(usd) == count else None,
        trial_s=fmean(seconds) or None if seconds else None,
    )
    return answer, [*_list_notes(asked, counting, expenses)]


def _find_expense(chosen: LiveArms, place: int) -> Expense | None:
    from trialwise.runtime.earlier_runs import find_expense

    one = chosen.arms[min(place, len(chosen.arms) - 1)]  # one arm is compared with itself
    declared = one.options.cost_per_trial_usd
    return find_expense(one.contract.name, declared, chosen.suite.runs_folder)


def _list_notes(
    asked: CompareAsked, criteria: list[str], expenses: list[Expense | None]
) -> list[str]:
    notes = []
    if len(criteria) > 1:
        notes.append(
            f"The chances are those of one of {len(criteria)} criteria; PASS needs all of them."
        )
    for name, margin in asked.guardrails.items():
        notes.append(f"{name} is a guardrail: it may not be worse by {100 * margin:g} points.")
    if all(one is None or one.trial_usd is None for one in expenses):
        notes.append(
            "What a trial costs is not known: run one arm first, or give --cost-per-trial."
        )
    elif any(one is None or one.trial_usd is None for one in expenses):
        notes.append("What a trial of each arm costs is known of some arms only.")
    return notes


def announce_plan(chosen: LiveArms, asked: CompareAsked) -> None:
    """Say on standard error what is going to run, where that can be planned."""
    from trialwise.errors import InvalidArgument
    from trialwise.pages.sizing import build_sizing_page

    if asked.guardrails or asked.margin:
        return  # chances of rules with a margin take seconds: `--dry-run` states them
    try:
        answer, _ = plan_arms(chosen, asked)
    except InvalidArgument:
        return  # the comparison itself says what is wrong, or has a size that no plan knows
    click.echo(f"{', '.join(chosen.labels)}: {build_sizing_page(answer.plan).lead}", err=True)


#: What belongs to a single command: where it prints, and that it resumes.
_NOT_KEPT = ("as_json", "dry_run", "file", "markdown", "outputs", "quiet", "resume", "stored")


def describe_command(names: Sequence[str], given: Mapping[str, Any], suite: Path) -> dict[str, Any]:
    """Return what finds the arms and the question of a comparison again, as plain values."""
    options = {
        name: str(value) if isinstance(value, Path) else value
        for name, value in _list_written(given).items()
        if name not in _NOT_KEPT
    }
    return {"suite": str(suite.absolute()), "names": list(names), "options": options}


def recall_command(given: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the names and options of the comparison to resume, as it was started.

    Raises:
        RunNotFound: There is none.
    """
    from trialwise.cli.stored import find_places
    from trialwise.stores.comparisons import ComparisonStore

    stored = ComparisonStore(find_places().runs).find_unfinished(
        given["resume"] or None, "comparison"
    )
    source = stored.head.source
    if "options" not in source:
        message = (
            f"{stored.comparison_id} was not started by `trialwise compare`: resume it where it was"
        )
        raise click.UsageError(message)
    options = {name: _restore(name, value) for name, value in source["options"].items()}
    suite = Path(given["file"] or source["suite"])
    # What is written now prevails, such as a larger budget.
    whole = {**given, **options, **_list_written(given)}
    return tuple(source["names"]), {**whole, "file": suite, "resume": stored.comparison_id}


def _list_written(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that somebody wrote."""
    return {name: value for name, value in given.items() if value not in (None, (), False)}


def _restore(name: str, value: Any) -> Any:
    """Return a value as click gave it: JSON has neither tuples nor paths."""
    if name in ("record", "replay"):
        return Path(value)
    if isinstance(value, list):
        return tuple(tuple(one) if isinstance(one, list) else one for one in value)
    return value


@click.command("compare")
@click.argument("names", nargs=-1, metavar="[CONTROL] [CANDIDATE]...", shell_complete=complete_arms)
@compare_options
@pair_options
@criterion_option
@click.option(
    "--stored",
    is_flag=True,
    help="Compare the latest stored runs of contracts instead of running them.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Run nothing: say how many pairs it takes, how likely each verdict is and what it costs.",
)
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[COMPARISON]",
    help="Resume a comparison that was killed, interrupted or stopped by a budget.",
)
@click.option("--record", type=click.Path(path_type=Path), help="Write every reply to a file.")
@click.option("--replay", type=click.Path(path_type=Path), help="Take the replies from a file.")
@suite_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
@click.option("--markdown", is_flag=True, help="Print Markdown, such as for a pull request.")
@json_option
def command(names: tuple[str, ...], **given: Any) -> int:
    """Compare arms on the same inputs: is a candidate better than the control?

    An arm is a contract of the suite, an entry of its model matrix such as "agent [large]", or a
    variant under `arms:`, called agent/short or short. A contract alone is compared with its arms,
    a matrix alone among its entries. Without names the section `compare` of the suite says what is
    compared. Arms take turns on the same inputs and seeds, and stop as soon as the pairs decide.

    Names or folders of stored runs, and files with results that `trialwise score` reads, are
    compared without running anything.

    \b
    Exit codes, by --question:
                  0                          1                      3
      different   better                     worse                  neither is shown
      better      better by more than m      not better by m        neither is shown
      not-worse   not worse by m             worse                  neither is shown
      equivalent  within m of the control    not within m           neither is shown

    \b
    Examples:
      trialwise compare support
      trialwise compare support short-prompt --question not-worse --margin 2%
      trialwise compare "agent [small]" "agent [large]" --expect 80%:90% --dry-run
      trialwise compare agent agent-new --stored -o comparison.html
      trialwise compare before.jsonl after.jsonl --markdown
      trialwise compare agent --a-a
      trialwise compare --resume
    """
    if given["record"] is not None and given["replay"] is not None:
        raise click.UsageError("--record and --replay exclude each other")
    if given["resume"] is not None and not names:
        names, given = recall_command(given)
    chosen = choose_arms(
        names,
        given,
        file=given["file"],
        stored=given["stored"],
        with_itself=given["a_a"],
        without_services=given["replay"] is not None,
    )
    asked = read_asked(given, chosen)
    if given["dry_run"]:
        if isinstance(chosen, StoredArms):
            raise click.UsageError("stored runs take nothing: leave out --dry-run")
        return show_plan(chosen, asked, given)
    comparison = _compare(chosen, asked, names, given)
    code = _exit_code(comparison)
    _print(comparison, given)
    return code if _write(comparison, given["outputs"]) or code else ExitCode.ERROR


def _compare(
    chosen: LiveArms | StoredArms,
    asked: CompareAsked,
    names: Sequence[str],
    given: dict[str, Any],
) -> Comparison:
    if isinstance(chosen, StoredArms):
        asked.refuse_sizes()
        return _compare_stored(chosen, asked)
    from trialwise.runtime.comparing import compare

    if not (given["quiet"] or given["a_a"]) and given["resume"] is None:
        announce_plan(chosen, asked)
    first, *others = (one.contract for one in chosen.arms)
    options = replace(
        chosen.arms[0].options,
        trials=asked.trials,
        max_trials=asked.max_trials,
        baseline=None,
        horizon=None,
    )
    resume = given["resume"]
    try:
        comparison = compare(
            first,
            *(others or [first]),
            labels=chosen.labels,
            question=asked.question,
            margin=asked.margin,
            guardrails=asked.guardrails,
            against="all" if asked.all_pairs else "control",
            expect=asked.expect,
            preference=chosen.suite.compare.preference,
            confidence=asked.confidence,
            correction=asked.correction,
            options=options,
            store=chosen.suite.runs_folder,
            resume=False if resume is None else resume or True,
            record=given["record"],
            replay=given["replay"],
            progress=not given["quiet"],
            redact=chosen.suite.redaction,
            source=describe_command(names, given, chosen.suite.path),
        )
    except RunInterrupted as stopped:
        raise _say_how_to_resume(stopped) from None
    return comparison.relabel() if given["a_a"] else comparison


def _say_how_to_resume(stopped: RunInterrupted) -> RunInterrupted:
    """Return the interrupt with the command that continues the comparison."""
    from trialwise.documents.numbers import as_count

    comparison: Any = stopped.result
    pairs = min(len(one.record.trials) for one in comparison.arms)
    message = (
        f"interrupted after {as_count(pairs, 'pair')}, which are kept: "
        f"`trialwise compare --resume {comparison.path.name}` continues"
    )
    return RunInterrupted(message, comparison)


def _compare_stored(chosen: StoredArms, asked: CompareAsked) -> Comparison:
    from trialwise.procedures.comparison import COMPARISON
    from trialwise.runtime.comparing import Comparison
    from trialwise.runtime.open_comparison import find_rules

    question = asked.build_question()
    rules = find_rules(chosen.arms, question)
    return Comparison(COMPARISON.decide(chosen.arms, question, rules), chosen.arms)


def _exit_code(comparison: Comparison) -> ExitCode:
    from trialwise.model.evidence import StopReason
    from trialwise.model.verdict import Decision

    ends = [one.record.verdict.stop for one in comparison.arms]
    # Where an arm could not be reached, the others ended because of it, and nothing is broken.
    is_broken = StopReason.SERVICE in ends and StopReason.ERROR_RATE not in ends
    if comparison.decision is Decision.INCONCLUSIVE and is_broken:
        return ExitCode.ERROR
    return ExitCode[comparison.decision.value]


def _print(comparison: Comparison, given: dict[str, Any]) -> None:
    from trialwise.cli.printing import output_of, say, say_json

    if given["as_json"]:
        say_json(comparison.to_dict())
        return
    from trialwise.pages.comparison import summarize_comparison

    page = summarize_comparison(comparison.verdict, comparison.arms, is_pictured=given["markdown"])
    if given["markdown"]:
        from trialwise.renderers.document_markdown import render_document_markdown

        say(render_document_markdown(page))
    else:
        from trialwise.renderers.document_text import render_document_text

        say(render_document_text(page, output_of()).rstrip("\n"))


def _write(comparison: Comparison, paths: tuple[Path, ...]) -> bool:
    """Write the files; return whether all of them are there. A verdict is printed before."""
    from trialwise.reports.report_files import ReportNotWritten

    complete = True
    for path in paths:
        try:
            click.echo(f"wrote {comparison.write(path)}", err=True)
        except ReportNotWritten as error:
            click.echo(f"trialwise: {error}", err=True)
            complete = False
    return complete
