"""One trial to read: what failed and why, what came back, what was done, what it took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trialwise.documents.blocks import Badge, Block, Facts, Prose, Value, Verbatim
from trialwise.documents.cards import Card, Timeline
from trialwise.documents.extent import cut_middle, estimate_size
from trialwise.documents.numbers import as_duration, as_money, as_seconds
from trialwise.model.outcome import ErrorClass, Outcome
from trialwise.model.trial import Trial
from trialwise.pages.call_timeline import BRIEF, FULL, SHORT, build_timeline
from trialwise.pages.criterion_evidence import REASONS
from trialwise.pages.worst_trace import Worst

__all__ = ["NAME", "build_trial_card", "build_worst_card"]

#: How much of each text is kept, and of a name.
_REPLY, _EVIDENCE, _EXPLANATION, NAME = 1200, 500, 400, 80
#: Errors of earlier attempts that are listed.
_ATTEMPTS = 5


def build_trial_card(trial: Trial, order: Mapping[str, int], *, several: bool = False) -> Card:
    """A trial, folded; a failing one with what a filter asks for.

    Args:
        trial: Passing or failing.
        order: The place of each criterion in the contract.
        several: Whether the run has several experiments, so that an index alone is no name.
    """
    return _build_card(trial, order, several, build_timeline(trial, SHORT))


def build_worst_card(
    worst: Worst, order: Mapping[str, int], size: int, *, several: bool = False
) -> Card | None:
    """The worst trace, unfolded and as whole as there is room; None where there is none.

    Args:
        worst: What is to be read first.
        order: The place of each criterion in the contract.
        size: How many bytes it may take.
        several: Whether the run has several experiments.
    """
    why = f"The worst trace of this run: {', '.join(worst.reasons)}."
    for extent in (FULL, SHORT, BRIEF):
        timeline = build_timeline(worst.trial, extent)
        card = _build_card(worst.trial, order, several, timeline, why=why)
        if estimate_size(card) <= size:
            return card
    return None


def _build_card(
    trial: Trial,
    order: Mapping[str, int],
    several: bool,
    calls: Timeline | None,
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
    blocks: list[Block | None] = [
        Prose(paragraphs=(why,), tone="quiet") if why else None,
        *(block for outcome in failed for block in _list_failure(outcome)),
        # Calls come before the reply that they led to.
        calls,
        Verbatim(heading="Reply", text=cut_middle(trial.reply, _REPLY)) if trial.reply else None,
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


def _list_failure(outcome: Outcome) -> Iterator[Block]:
    result = outcome.result
    check = f" · {_shorten(outcome.postcondition)}" if outcome.postcondition else ""
    name = Value(text=_shorten(outcome.criterion), tone="fail", strong=True)
    explanation = cut_middle(result.explanation, _EXPLANATION)
    reason = f" · {REASONS[str(result.reason)]}{check}"
    yield Prose(paragraphs=((name, reason), explanation), tone="fail")
    if result.evidence:
        yield Verbatim(heading="Evidence", text=cut_middle(result.evidence, _EVIDENCE))


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
