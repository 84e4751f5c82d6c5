"""`trialwise compare`: which arm is better and by how much, which is best, how do they look?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, cast

import click

from trialwise.cli.arm_choice import LiveArms, StoredArms, choose_arms, complete_arms
from trialwise.cli.compare_options import compare_options, read_asked
from trialwise.cli.options import criterion_option, json_option, pair_options, suite_option
from trialwise.cli.process import ExitCode, give_answer
from trialwise.errors import RunInterrupted

if TYPE_CHECKING:
    from trialwise.pages.run_rules import Expense
    from trialwise.procedures.comparing.findings import ComparisonQuestion
    from trialwise.runtime.answers import Answer
    from trialwise.runtime.trial_sizing import SizingAnswer


def show_plan(chosen: LiveArms, asked: dict[str, Any], given: dict[str, Any]) -> int:
    """Print what the question takes, and run nothing."""
    from trialwise.cli.process import say, say_json
    from trialwise.runtime.trial_sizing import plan_choice

    if given["question"] == "describe":
        raise click.UsageError("--trials says what a description takes: leave out --dry-run")
    more: dict[str, Any] = {}
    notes: Sequence[str] = ()
    if given["question"] == "best":
        wanted: Any = {
            one: asked[one] for one in ("smallest_difference", "confidence", "break_ties")
        }
        sized: dict[str, Any] = {
            "max_rounds": asked["max_trials"] or 1000,
            "rates": given["expect"] or (),
        }
        answer = plan_choice(len(chosen.arms), **wanted, **sized)
    else:
        answer, found = plan_arms(chosen, asked)
        more = {"arms": list(chosen.labels), "notes": found}
        notes = (*found, f"{', '.join(chosen.labels)}: nothing was run")
    if given["as_json"]:
        say_json({**answer.to_dict(), **more})
        return ExitCode.PASS
    say("\n".join([answer.render("text").rstrip("\n"), *notes]))
    return ExitCode.PASS


def plan_arms(chosen: LiveArms, asked: dict[str, Any]) -> tuple[SizingAnswer, list[str]]:
    """Plan a comparison of arms: the answer, and what it is based on."""
    from trialwise.runtime.comparing import ask_question
    from trialwise.runtime.trial_sizing import plan_pairs

    question = cast("ComparisonQuestion", ask_question(asked["question"], {**asked}))
    count = len(chosen.labels)
    couples = len(list(question.couple_arms(range(count))))
    counting = [one.name for one in chosen.arms[0].contract.criteria if not one.report_only]
    expenses = [_find_expense(chosen, place) for place in range(count)]
    usd = [one.trial_usd for one in expenses if one.trial_usd is not None]
    seconds = [one.trial_s for one in expenses if one.trial_s is not None]
    answer = plan_pairs(
        asked["expect"],
        question=question.question,
        margin=question.margin,
        pairs=asked["trials"],
        max_pairs=asked["max_trials"],
        tests=couples * max(1, len(counting)) if question.correction != "none" else 1,
        arms=count,
        confidence=question.confidence,
        # A mean over some arms would be taken for the price of a pair.
        trial_usd=fmean(usd) or None if len(usd) == count else None,
        trial_s=fmean(seconds) or None if seconds else None,
    )
    whole = f"The chances are those of one of {len(counting)} criteria; PASS needs all of them."
    notes = [whole] if len(counting) > 1 else []
    notes += [
        f"{name} is a guardrail: it may not be worse by {100 * margin:g} points."
        for name, margin in question.guardrails.items()
    ]
    if not usd:
        unpriced = "What a trial costs is not known: run one arm first, or give --cost-per-trial."
        notes.append(unpriced)
    elif len(usd) < count:
        notes.append("What a trial of each arm costs is known of some arms only.")
    return answer, notes


def _find_expense(chosen: LiveArms, place: int) -> Expense:
    from trialwise.pages.run_rules import Expense
    from trialwise.runtime.earlier_runs import find_expense

    one = chosen.arms[min(place, len(chosen.arms) - 1)]  # one arm is compared with itself
    declared = one.options.cost_per_trial_usd
    return find_expense(one.contract.name, declared, chosen.suite.runs_folder) or Expense()


def _announce_plan(chosen: LiveArms, asked: dict[str, Any]) -> None:
    """Say on standard error what is going to run, where that can be planned."""
    from trialwise.errors import InvalidArgument
    from trialwise.pages.sizing import build_sizing_page

    if asked["question"] in ("best", "describe") or asked["guardrails"] or asked["margin"]:
        return  # chances of rules with a margin take seconds: `--dry-run` states them
    try:
        answer, _ = plan_arms(chosen, asked)
    except InvalidArgument:
        return  # the comparison itself says what is wrong, or has a size that no plan knows
    click.echo(f"{', '.join(chosen.labels)}: {build_sizing_page(answer.plan).lead}", err=True)


#: What belongs to a single command: where it prints, and that it resumes. Whoever resumes may print
#: elsewhere, and must not be sent to a file that the first command named.
_NOT_KEPT = ("as_json", "dry_run", "file", "markdown", "outputs", "quiet", "resume", "stored")


def describe_command(names: Sequence[str], given: Mapping[str, Any], suite: Path) -> dict[str, Any]:
    """Return what finds the arms and the question of a comparison again, as plain values."""
    kept = {name: one for name, one in _list_written(given).items() if name not in _NOT_KEPT}
    options = {name: str(one) if isinstance(one, Path) else one for name, one in kept.items()}
    return {"suite": str(suite.absolute()), "names": list(names), "options": options}


def recall_command(given: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the names and options of what is to be resumed, as it was started.

    Raises:
        RunNotFound: There is none.
    """
    from trialwise.runtime.chosen_runs import find_places
    from trialwise.stores.comparisons import ComparisonStore

    kind = {"best": "choice", "describe": "exploration"}.get(given["question"] or "", "comparison")
    stored = ComparisonStore(find_places().runs).find_unfinished(given["resume"] or None, kind)
    source = stored.head.source
    if "options" not in source:
        if kind == "choice":
            return (), dict(given)  # until 0.2.0.dev1 a choice did not say how it was started
        how = "was not started by `trialwise compare`: resume it where it was"
        raise click.UsageError(f"{stored.comparison_id} {how}")
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
    """Compare arms on the same inputs: is a candidate better, or which arm is best?

    An arm is a contract of the suite, an entry of its model matrix such as "agent [large]", or a
    variant under `arms:`, called agent/short or short. A contract alone is compared with its arms,
    a matrix alone among its entries. Without names the section `compare` of the suite says what is
    compared. Arms take turns on the same inputs and seeds, and stop as soon as the pairs decide.

    Names or folders of stored runs, and files with results that `trialwise score` reads, are
    compared without running anything.

    --question best finds the best arm with as few trials as possible: a round asks only the arms
    that may still be best. If one arm is better than every other by --smallest-difference or more,
    any other answer comes in at most 5 % of runs (1 - --confidence), at any rates.

    --question describe runs the arms equally often, or takes their stored runs, and shows rates,
    cost and latency beside each other. The arms that may be best include a best one in at least
    95 % of runs (--confidence). The highest of many rates is high by luck, too; the page says
    by how much.

    \b
    Exit codes, by --question:
                  0                          1                      3
      different   better                     worse                  neither is shown
      better      better by more than m      not better by m        neither is shown
      not-worse   not worse by m             worse                  neither is shown
      equivalent  within m of the control    not within m           neither is shown
      best        an arm, or a tie           -                      not decided
      describe    always                     -                      -

    \b
    Examples:
      trialwise compare support
      trialwise compare support short-prompt --question not-worse --margin 2%
      trialwise compare "agent [small]" "agent [large]" --expect 80%:90% --dry-run
      trialwise compare agent agent-new --stored -o comparison.html
      trialwise compare before.jsonl after.jsonl --markdown
      trialwise compare agent --a-a
      trialwise compare support --question best --smallest-difference 5% -o choice.html
      trialwise compare agent --question describe --trials 40
      trialwise compare --resume
    """
    if given["record"] is not None and given["replay"] is not None:
        raise click.UsageError("--record and --replay exclude each other")
    if given["resume"] is not None and not names:
        names, given = recall_command(given)
    of_all = given["question"] in ("best", "describe") and len(given["criteria"]) == 1
    # Where one criterion decides which arm is best, the others are asked all the same.
    chosen = choose_arms(names, {**given, "criteria": ()} if of_all else given)
    asked = read_asked(given, chosen)
    if given["dry_run"]:
        if isinstance(chosen, StoredArms):
            raise click.UsageError("stored runs take nothing: leave out --dry-run")
        return show_plan(chosen, asked, given)
    if isinstance(chosen, StoredArms):
        answer = _answer_stored(chosen, asked)
    else:
        answer = _run_arms(chosen, asked, names, given)
    code = _find_exit_code(answer)
    return code if give_answer(answer, given) or code else ExitCode.ERROR


def _run_arms(
    chosen: LiveArms, asked: dict[str, Any], names: Sequence[str], given: dict[str, Any]
) -> Answer:
    from trialwise.runtime.answers import Comparison
    from trialwise.runtime.comparing import compare

    if not (given["quiet"] or given["a_a"]) and given["resume"] is None:
        _announce_plan(chosen, asked)
    first, *others = (one.contract for one in chosen.arms)
    resume, paired = given["resume"], asked["question"] not in ("best", "describe")
    try:
        answer: Answer = cast("Any", compare)(
            first,
            *(others or [first]),
            **asked,
            labels=chosen.labels,
            preference=chosen.suite.compare.preference if paired else None,
            options=replace(chosen.arms[0].options, baseline=None, horizon=None),
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
    return answer.relabel() if given["a_a"] and isinstance(answer, Comparison) else answer


def _say_how_to_resume(stopped: RunInterrupted) -> RunInterrupted:
    """Return the interrupt with the command that continues."""
    from trialwise.documents.numbers import as_count

    answer: Any = stopped.result
    pairs = min(len(one.record.trials) for one in answer.runs)
    message = (
        f"interrupted after {as_count(pairs, 'pair')}, which are kept: "
        f"`trialwise compare --resume {answer.path.name}` continues"
    )
    return RunInterrupted(message, answer)


def _answer_stored(chosen: StoredArms, asked: dict[str, Any]) -> Answer:
    """Answer a question about runs that were made before."""
    from trialwise.procedures.comparing.findings import ComparisonQuestion
    from trialwise.runtime.answers import conclude_arms, find_rules
    from trialwise.runtime.comparing import ask_question

    question = asked.pop("question")
    if question == "best":
        message = (
            "a choice runs its arms: name contracts or arms of a suite. `--question describe` and "
            "comparisons read stored runs"
        )
        raise click.UsageError(message)
    if asked["trials"] is not None or asked["max_trials"] is not None:
        raise click.UsageError("--trials and --max-trials size a run: stored runs have their size")
    found = ask_question(question, asked)
    rules = find_rules(chosen.arms, found) if isinstance(found, ComparisonQuestion) else None
    return conclude_arms(chosen.arms, found, rules)


def _find_exit_code(answer: Answer) -> ExitCode:
    from trialwise.model.evidence import StopReason

    ends = [one.record.verdict.stop for one in answer.runs]
    # A service that failed is no finding about the arms: exit 4, as for a run.
    is_broken = StopReason.SERVICE in ends
    if answer.decided == "EXPLORED":
        return ExitCode.ERROR if is_broken else ExitCode.PASS
    # An arm that was chosen and a tie are answers.
    code = ExitCode.__members__.get(answer.decided, ExitCode.PASS)
    # Where an arm could not be reached, the others ended because of it, and nothing is broken.
    is_broken = is_broken and StopReason.ERROR_RATE not in ends
    return ExitCode.ERROR if code == ExitCode.INCONCLUSIVE and is_broken else code
