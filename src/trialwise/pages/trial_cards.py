"""One trial to read: what failed and why, what came back, what was done, what it took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trialwise.documents.blocks import (
    Badge,
    Block,
    Card,
    Facts,
    Message,
    Prose,
    Timeline,
    Value,
    Verbatim,
)
from trialwise.documents.numbers import as_duration, as_money, as_seconds
from trialwise.documents.printable import cut_middle, estimate_size
from trialwise.model.kept_texts import RunTexts
from trialwise.model.trial import ErrorClass, Outcome, Trial
from trialwise.pages.criterion_details import REASONS
from trialwise.pages.reply_differences import compare_texts
from trialwise.pages.trial_timeline import BRIEF, FULL, SHORT, build_timeline
from trialwise.pages.worst_trace import Worst

#: How much of each text is kept, and of a name.
_REPLY, _EVIDENCE, _EXPLANATION, NAME = 1200, 500, 400, 80


#: Errors of earlier attempts that are listed.
_ATTEMPTS = 5


def build_trial_card(
    trial: Trial, order: Mapping[str, int], texts: RunTexts, *, several: bool = False
) -> Card:
    """Build a trial, folded; a failing one with what a filter asks for.

    Args:
        trial: Passing or failing.
        order: The place of each criterion in the contract.
        texts: What the trials of the run asked.
        several: Whether the run has several experiments, so that an index alone is no name.
    """
    return _build_card(trial, order, texts, several, build_timeline(trial, SHORT))


def build_worst_card(
    worst: Worst, order: Mapping[str, int], texts: RunTexts, size: int, *, several: bool = False
) -> Card | None:
    """Build the worst trace, unfolded and as whole as there is room; None where there is none.

    Args:
        worst: What is to be read first.
        order: The place of each criterion in the contract.
        texts: What the trials of the run asked.
        size: How many bytes it may take.
        several: Whether the run has several experiments.
    """
    why = f"The worst trace of this run: {', '.join(worst.reasons)}."
    for extent in (FULL, SHORT, BRIEF):
        timeline = build_timeline(worst.trial, extent)
        card = _build_card(worst.trial, order, texts, several, timeline, why=why)
        if estimate_size(card) <= size:
            return card
    return None


def _build_card(
    trial: Trial,
    order: Mapping[str, int],
    texts: RunTexts,
    several: bool,
    session: Timeline | None,
    *,
    why: str = "",
) -> Card:
    failed = [outcome for outcome in trial.outcomes if not outcome.passed]
    reasons = dict.fromkeys(str(outcome.result.reason) for outcome in failed)
    badges = [Badge(word=_shorten(one.criterion), tone="fail") for one in failed]
    if why:
        badges.insert(0, Badge(word="worst trace", tone="open"))
    where, text = f"{trial.experiment} " if several else "", ""
    if failed:
        text = failed[0].result.explanation or trial.error or REASONS[next(iter(reasons))]
    raised, asked = texts.find_traceback(trial), texts.find_input(trial)
    blocks: list[Block | None] = [
        Prose(paragraphs=(why,), tone="quiet") if why else None,
        *(block for outcome in failed for block in list_failure_blocks(outcome, trial.reply)),
        Verbatim(heading="Input", text=cut_middle(asked.value, _REPLY)) if asked else None,
        Verbatim(heading="Metadata", text=cut_middle(asked.metadata, _REPLY))
        if asked and asked.metadata
        else None,
        # The session comes before the reply that it led to.
        session,
        *_list_reply(trial, None if asked is None else asked.expected, session),
        Verbatim(heading="Traceback", text=raised) if raised else None,
        Facts(pairs=tuple(_list_facts(trial))),
    ]
    tags = {
        "criterion": tuple(str(order[outcome.criterion]) for outcome in failed),
        "reason": tuple(reasons),
    }
    return Card(
        label=f"{where}trial {trial.index}",
        name=_shorten(trial.input_id),
        badges=tuple(badges),
        text=cut_middle(text, _EXPLANATION),
        blocks=tuple(block for block in blocks if block is not None),
        is_open=bool(why),
        tags=tags if failed else {},
    )


def _list_reply(trial: Trial, expected: str | None, session: Timeline | None) -> Iterator[Block]:
    """List what was expected and what came back, beside each other where there are both.

    A reply that the timeline just above ends with in full is not repeated.
    """
    if expected is not None and trial.reply:
        shown = cut_middle(expected, _REPLY), cut_middle(trial.reply, _REPLY)
        yield compare_texts(*shown)
    elif expected is not None:
        yield Verbatim(heading="Expected", text=cut_middle(expected, _REPLY))
    elif trial.reply and not _ends_with(session, trial.reply):
        yield Verbatim(heading="Reply", text=cut_middle(trial.reply, _REPLY))


def _ends_with(session: Timeline | None, reply: str) -> bool:
    """Return whether the last step of a session shows a reply in full."""
    last = session.steps[-1] if session is not None and session.steps else None
    return isinstance(last, Message) and last.text.text == reply


def list_failure_blocks(outcome: Outcome, reply: str | None) -> Iterator[Block]:
    """List why a criterion failed, and what in the reply it failed on.

    Args:
        outcome: What the criterion says of a trial.
        reply: What came back, which is shown elsewhere.
    """
    result = outcome.result
    check = f" · {_shorten(outcome.postcondition)}" if outcome.postcondition else ""
    name = Value(text=_shorten(outcome.criterion), tone="fail", strong=True)
    explanation = cut_middle(result.explanation, _EXPLANATION)
    reason = f" · {REASONS[str(result.reason)]}{check}"
    yield Prose(paragraphs=((name, reason), explanation), tone="fail")
    if result.evidence and result.evidence.strip() != (reply or "").strip():
        yield Verbatim(heading="Evidence", text=cut_middle(result.evidence, _EVIDENCE))
    for check_name, other in outcome.failed_checks[1:]:
        said = f"{_shorten(check_name)}: {cut_middle(other.explanation, _EXPLANATION)}"
        yield Prose(paragraphs=(said,), tone="fail")


def _list_facts(trial: Trial) -> Iterator[tuple[str, str]]:
    if trial.error_class is not ErrorClass.NONE or trial.error:
        yield "error", f"{trial.error_class}: {cut_middle(trial.error, _EXPLANATION)}"
    if trial.attempts > 1 or trial.attempt_errors:
        errors = [cut_middle(error, _EXPLANATION) for error in trial.attempt_errors[:_ATTEMPTS]]
        yield "attempts", f"{trial.attempts}" + (f": {'; '.join(errors)}" if errors else "")
    yield "seed", str(trial.seed)
    yield "started", f"{as_duration(trial.started_s)} into the run"
    if trial.latency_s is not None:
        yield "latency", as_seconds(round(trial.latency_s, 6))
    if trial.setup_s is not None:
        yield "setup", f"{as_seconds(round(trial.setup_s, 6))}, not part of the latency"
    if trial.usage is not None:
        used = trial.usage
        yield "tokens", f"{used.input_tokens:,} in, {used.output_tokens:,} out"
    if trial.cost_usd is not None:
        yield "cost", as_money(trial.cost_usd)
    if trial.ended is not None:
        yield "session ended", cut_middle(trial.ended, _EXPLANATION)
    if trial.exit_code is not None:
        yield "exit code", str(trial.exit_code)


def _shorten(name: str) -> str:
    return cut_middle(name, NAME)
