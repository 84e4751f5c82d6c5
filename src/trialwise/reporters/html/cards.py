"""One trial to read: what failed and why, what came back, what was done, what it took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trialwise.documents.numbers import as_duration, as_money, as_seconds
from trialwise.model.outcome import ErrorClass, Outcome
from trialwise.model.trial import Trial
from trialwise.reporters.html.parts import details, facts, glyph, listed
from trialwise.reporters.html.timeline import FULL, SHORT, Extent, timeline
from trialwise.reporters.html.words import REASONS
from trialwise.reporters.html.worst import Worst
from trialwise.reporters.page.markup import Markup, element, joined, shortened, verbatim

__all__ = ["NAME", "trial_card", "worst_card"]

#: How much of each text is kept, and of a name.
_REPLY, _EVIDENCE, _EXPLANATION, NAME = 1200, 500, 400, 80
#: Errors of earlier attempts that are listed.
_ATTEMPTS = 5
#: Of the worst trace, where the page has little room.
_BRIEF = Extent(first=4, last=2, unfolded=0)


def trial_card(trial: Trial, order: Mapping[str, int], *, several: bool = False) -> Markup:
    """A trial, folded; a failing one with what a filter asks for.

    Args:
        trial: Passing or failing.
        order: The place of each criterion in the contract.
        several: Whether the run has several experiments, so that an index alone is no name.
    """
    return _card(trial, order, several, timeline(trial, SHORT))


def worst_card(
    worst: Worst, order: Mapping[str, int], size: int, *, several: bool = False
) -> Markup:
    """The worst trace, unfolded and as whole as there is room; nothing where there is none.

    Args:
        worst: What is to be read first.
        order: The place of each criterion in the contract.
        size: How many bytes it may take.
        several: Whether the run has several experiments.
    """
    why = f"The worst trace of this run: {', '.join(worst.reasons)}."
    for extent in (FULL, SHORT, _BRIEF):
        card = _card(worst.trial, order, several, timeline(worst.trial, extent), why=why)
        if len(card.encode()) <= size:
            return card
    return Markup("")


def _card(
    trial: Trial, order: Mapping[str, int], several: bool, calls: Markup, *, why: str = ""
) -> Markup:
    failed = [outcome for outcome in trial.outcomes if not outcome.passed]
    reasons = dict.fromkeys(str(outcome.result.reason) for outcome in failed)
    chips = [element("span", element("bdi", _short(o.criterion)), class_="chip") for o in failed]
    if why:
        chips.insert(0, element("span", "worst trace", class_="chip first"))
    where = f"{trial.experiment} " if several else ""
    summary = [
        element("span", f"{where}trial {trial.index}", class_="index"),
        element("span", element("bdi", _short(trial.input_id)), class_="input"),
        element("span", *chips, class_="chips") if chips else None,
    ]
    if failed:
        first = failed[0].result.explanation or trial.error or REASONS[next(iter(reasons))]
        said = shortened(first, _EXPLANATION)
        summary.append(element("span", said, class_="why", dir="auto"))
    places = " ".join(str(order[outcome.criterion]) for outcome in failed)
    return details(
        joined(summary),
        element(
            "div",
            element("p", why, class_="note") if why else None,
            *map(_failure, failed),
            # Calls come before the reply that they led to.
            calls,
            _quoted("Reply", trial.reply, _REPLY),
            facts(_about(trial), "facts meta"),
            class_="inside",
        ),
        open_=bool(why),
        class_="trial",
        data_criteria=places if failed else None,
        data_reasons=" ".join(reasons) if failed else None,
    )


def _failure(outcome: Outcome) -> Markup:
    result = outcome.result
    return element(
        "div",
        element(
            "p",
            glyph("fail"),
            element("b", element("bdi", _short(outcome.criterion))),
            f" · {REASONS[str(result.reason)]}",
            f" · {_short(outcome.postcondition)}" if outcome.postcondition else None,
        ),
        element("p", shortened(result.explanation, _EXPLANATION), dir="auto"),
        _quoted("Evidence", result.evidence, _EVIDENCE),
        class_="failure",
    )


def _about(trial: Trial) -> Iterator[tuple[str, object]]:
    if trial.error_class is not ErrorClass.NONE or trial.error:
        yield "error", f"{trial.error_class}: {shortened(trial.error, _EXPLANATION)}"
    if trial.attempts > 1 or trial.attempt_errors:
        yield "attempts", joined([f"{trial.attempts}", listed(_before(trial.attempt_errors))])
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
        yield "session ended", element("bdi", shortened(trial.ended, _EXPLANATION))
    if trial.exit_code is not None:
        yield "exit code", str(trial.exit_code)


def _before(errors: Sequence[str]) -> list[str]:
    return [shortened(error, _EXPLANATION) for error in errors[:_ATTEMPTS]]


def _quoted(name: str, text: str | None, limit: int) -> Markup:
    if not text:
        return Markup("")
    quote = element("pre", verbatim(shortened(text, limit)), dir="auto")
    return element("div", element("p", name, class_="label"), quote, class_="quoted")


def _short(name: str) -> str:
    return shortened(name, NAME)
