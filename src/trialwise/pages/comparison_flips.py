"""Flips: the pairs in which exactly one of two arms passed, with both replies to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from trialwise.documents import blocks
from trialwise.documents.numbers import as_count, as_money, as_seconds
from trialwise.documents.printable import compare_texts, cut_middle, estimate_size
from trialwise.model.run import RunRecord
from trialwise.model.trial import Outcome, Trial
from trialwise.pages.finding_facts import REASONS
from trialwise.pages.trial_cards import NAME, list_failure_blocks
from trialwise.procedures.comparing.findings import (
    ArmRun,
    ComparisonFinding,
    ComparisonVerdict,
    group_by_arms,
)
from trialwise.procedures.comparing.pairing import Pair, pair_trials

#: Losses and gains with a card of their own, and the bytes that all of them may take.
_MOST_LOST, _MOST_WON, _SIZE = 40, 20, 400_000
#: Flips that a short report names.
_FEW = 5
_REPLY, _EXPLANATION, _SHORT = 1200, 400, 160
_NOT_KEPT = "(not kept)"


class Flip(NamedTuple):
    """A pair in which exactly one of two arms passed some criterion."""

    arm: str
    against: str
    pair: Pair
    lost: tuple[str, ...]
    """Criteria that only the arm on the left passed, which is the control as a rule."""
    won: tuple[str, ...]
    """Criteria that only the other arm passed."""

    def read(self, records: Mapping[str, RunRecord]) -> Flip:
        """Return the flip with the texts of its trials, which its pair leaves out."""
        ours, theirs = records[self.against], records[self.arm]
        whole = _read_whole(ours, self.pair.control), _read_whole(theirs, self.pair.candidate)
        return self._replace(pair=Pair(*whole))

    @property
    def place(self) -> str:
        """How a page names the pair."""
        return f"pair {self.pair.control.index}"

    @property
    def failing(self) -> tuple[tuple[str, Trial, Outcome], ...]:
        """Who failed which criterion, those that the candidate lost first."""
        ours, theirs = self.pair
        lost = ((self.arm, theirs, theirs.outcome(one)) for one in self.lost)
        return (*lost, *((self.against, ours, ours.outcome(one)) for one in self.won))

    @property
    def headline(self) -> str:
        """Who failed, and why."""
        arm, trial, outcome = self.failing[0]
        why = outcome.result.explanation or trial.error or REASONS[str(outcome.result.reason)]
        return f"{arm} failed {outcome.criterion}: {cut_middle(why, _EXPLANATION)}"

    @property
    def replies(self) -> tuple[str | None, ...]:
        """What both said, or which error came instead; None where it was not kept."""
        return tuple(
            f"error: {one.error}" if one.reply is None and one.error else one.reply
            for one in self.pair
        )


def _read_whole(record: RunRecord, sketch: Trial) -> Trial:
    # A pair holds sketches, without texts: a long comparison would not fit into memory otherwise.
    table = record.trials.of_experiment(sketch.experiment)
    place = table.find(sketch.index)
    return sketch if place is None else table[place]


def list_flips(verdict: ComparisonVerdict, arms: Sequence[ArmRun]) -> list[Flip]:
    """List all flips: first those in which the candidate failed, each kind in the order of pairs.

    Args:
        verdict: What was concluded.
        arms: The runs of the arms.
    """
    known = {one.label: one for one in arms}
    flips = [
        flip
        for (against, arm), found in group_by_arms(verdict.findings).items()
        for flip in _list_between(known[against], known[arm], [one.criterion for one in found])
    ]
    # Losses first: they are what a reviewer of a candidate is afraid of.
    return sorted(flips, key=lambda one: not one.lost)


def _list_between(control: ArmRun, candidate: ArmRun, criteria: Sequence[str]) -> Iterator[Flip]:
    samplings: dict[tuple[str, str], list[str]] = {}
    ours, theirs = (
        {one.criterion: one.experiment for one in arm.record.plan.criteria}
        for arm in (control, candidate)
    )
    for name in criteria:
        if name in ours and name in theirs:
            samplings.setdefault((ours[name], theirs[name]), []).append(name)
    analysis = control.record.plan.analysis
    for names, shared in samplings.items():
        for pair in pair_trials(control, candidate, *names).pairs:
            # Most pairs passed everything; there may be many thousands of them.
            if all(trial.passed for trial in pair) or pair.is_left_out(analysis):
                continue
            judged = (name for name in shared if not pair.is_unjudged(name))
            told = [(name, [trial.outcome(name).passed for trial in pair]) for name in judged]
            lost = tuple(name for name, passed in told if passed == [True, False])
            won = tuple(name for name, passed in told if passed == [False, True])
            if lost or won:
                yield Flip(candidate.label, control.label, pair, lost, won)


# --- To read ----------------------------------------------------------------------------------


def build_flips_section(
    verdict: ComparisonVerdict, arms: Sequence[ArmRun]
) -> blocks.Section | None:
    """Build a card for each flip, as far as there is room; None where no pairs are known.

    Args:
        verdict: What was concluded.
        arms: The runs of the arms.
    """
    if not any(one.pairs for one in verdict.pairings):
        return None
    flips = list_flips(verdict, arms)
    lost, won = ([one for one in flips if bool(one.lost) is kind] for kind in (True, False))
    # Both kinds have room of their own, so that many losses do not hide what was gained.
    chosen = [*lost[:_MOST_LOST], *won[:_MOST_WON]]
    cards = tuple(_fit_cards(chosen, verdict, {one.label: one.record for one in arms}))
    choices, is_searched = _list_choices(verdict, chosen[: len(cards)]), len(cards) > 1
    parts: list[blocks.Block] = [
        blocks.Cards(cards=cards, choices=choices, noun="flip", is_searched=is_searched)
        if cards
        else blocks.Prose(paragraphs=("Both passed or both failed in every pair.",))
    ]
    if left := len(flips) - len(cards):
        said = f"{as_count(left, 'further flip')} not shown; the journals of the runs hold them."
        parts.append(blocks.Prose(paragraphs=(said,), tone="quiet"))
    return blocks.Section(
        heading="Flips", blocks=tuple(parts), note=_describe_flips(verdict, flips)
    )


def _describe_flips(verdict: ComparisonVerdict, flips: Sequence[Flip]) -> str:
    lost = sum(bool(one.lost) for one in flips)
    against = verdict.control.label if verdict.question.against == "control" else "the first arm"
    other = verdict.candidates[0].label if len(verdict.arms) == 2 else "the other arm"
    return (
        f"Pairs in which exactly one arm passed a criterion: {lost:,} that only {against} passed, "
        f"which come first, and {len(flips) - lost:,} that only {other} passed. Pairs after a "
        "decision are among them."
    )


def build_few_flips(
    verdict: ComparisonVerdict, arms: Sequence[ArmRun]
) -> tuple[blocks.Details, ...]:
    """Build a list of the first flips for a short report; nothing where there are none.

    Args:
        verdict: What was concluded.
        arms: The runs of the arms.
    """
    flips = list_flips(verdict, arms)
    lost = sum(bool(one.lost) for one in flips)
    summary = f"Flips: {lost:,} lost, {len(flips) - lost:,} won"
    items = _describe_first(flips, arms, ("further flip", "further flips"))
    return blocks.fold_notes(summary, items)


def _describe_first(
    flips: Sequence[Flip], arms: Sequence[ArmRun], further: tuple[str, str]
) -> tuple[str, ...]:
    records = {one.label: one.record for one in arms}
    left = len(flips) - _FEW
    more = [f"and {as_count(left, *further)}"] if left > 0 else []
    return (*(_describe_flip(one, records) for one in flips[:_FEW]), *more)


def _describe_flip(flip: Flip, records: Mapping[str, RunRecord]) -> str:
    """Describe a flip in a line: the pair, who failed and why, and what both said."""
    read = flip.read(records)
    texts = [
        f"{name}: {' '.join(cut_middle(text, _SHORT).split())}"
        for name, text in zip((flip.against, flip.arm), read.replies, strict=True)
        if text is not None
    ]
    said = f" ({' · '.join(texts)})" if texts else ""
    name = cut_middle(read.pair.control.input_id, NAME)
    return f"{read.place}, input {name}: {read.headline}{said}"


def describe_losses(
    flips: Sequence[Flip], arms: Sequence[ArmRun], finding: ComparisonFinding
) -> tuple[str, ...]:
    """Describe the first pairs that a candidate lost in one criterion, a line each.

    Args:
        flips: Those of all criteria and arms.
        arms: The runs of the arms.
        finding: The criterion under two of them.
    """
    coupled = finding.arm, finding.against
    lost = [one for one in flips if (one.arm, one.against) == coupled]
    lost = [one for one in lost if finding.criterion in one.lost]
    return _describe_first(lost, arms, ("further pair lost", "further pairs lost"))


def shorten_reply(text: str) -> str:
    """Shorten a reply as cards show it."""
    return cut_middle(text, _REPLY)


def _fit_cards(
    flips: Sequence[Flip], verdict: ComparisonVerdict, records: Mapping[str, RunRecord]
) -> Iterator[blocks.Card]:
    order = {one: str(place) for place, one in enumerate(verdict.criteria)}
    labels = {one.label: str(place) for place, one in enumerate(verdict.arms)}
    room = _SIZE
    for number, flip in enumerate(flips):
        card = _build_card(flip.read(records), records, order, labels, is_open=not number)
        # Replies may be long, and a page that a browser cannot open helps nobody.
        room -= estimate_size(card)
        if room < 0:
            return
        yield card


def _build_card(
    flip: Flip,
    records: Mapping[str, RunRecord],
    order: Mapping[str, str],
    labels: Mapping[str, str],
    *,
    is_open: bool,
) -> blocks.Card:
    asked = records[flip.against].texts.find_input(flip.pair.control)
    # Evidence is a piece of the reply, which stands below where it was kept.
    parts: list[blocks.Block] = [
        block
        for _, trial, outcome in flip.failing
        for block in list_failure_blocks(outcome, trial.reply)
        if trial.reply is None or isinstance(block, blocks.Prose)
    ]
    given = () if asked is None else (("Input", asked.value), ("Expected", asked.expected))
    parts += [
        blocks.Verbatim(heading=heading, text=shorten_reply(text))
        for heading, text in given
        if text is not None
    ]
    parts += [_compare_replies(flip), blocks.Facts(pairs=tuple(_list_facts(flip)))]
    whose = [blocks.Badge(word=cut_middle(flip.arm, NAME), tone="quiet")] if len(labels) > 2 else []
    return blocks.Card(
        label=flip.place,
        name=cut_middle(flip.pair.control.input_id, NAME),
        badges=(
            *whose,
            *(blocks.Badge(word=f"lost {cut_middle(one, NAME)}", tone="fail") for one in flip.lost),
            *(blocks.Badge(word=f"won {cut_middle(one, NAME)}", tone="pass") for one in flip.won),
        ),
        text=flip.headline,
        blocks=tuple(parts),
        is_open=is_open,
        tags={
            "way": (("lost",) if flip.lost else ()) + (("won",) if flip.won else ()),
            "criterion": tuple(order[one] for one in (*flip.lost, *flip.won)),
            "arm": (labels[flip.arm],),
        },
    )


def _compare_replies(flip: Flip) -> blocks.Block:
    """Put both replies beside each other, with what differs marked where they have much alike."""
    ours, theirs = flip.replies
    if ours is None and theirs is None:
        said = "The runs keep no replies of these trials, so that there is nothing to read."
        return blocks.Prose(paragraphs=(said,), tone="quiet")
    # Where each arm won a criterion, neither reply passed as a whole.
    lost, mixed = bool(flip.lost), bool(flip.lost and flip.won)
    words = ("", "") if mixed else (": passed", ": failed") if lost else (": failed", ": passed")
    headings = f"{flip.against}{words[0]}", f"{flip.arm}{words[1]}"
    left, right = (_NOT_KEPT if one is None else shorten_reply(one) for one in (ours, theirs))
    found = compare_texts(left, right, headings)
    common = sum(len(one.text) for one in found.left if not one.differs and one.text.strip())
    if None not in (ours, theirs) and 2 * common >= min(len(left), len(right)):
        return found
    # Marks on nearly every word would say nothing.
    return blocks.Compared(
        headings=headings, left=(blocks.Piece(text=left),), right=(blocks.Piece(text=right),)
    )


def _list_facts(flip: Flip) -> Iterator[tuple[str, str]]:
    for name, trial in zip((flip.against, flip.arm), flip.pair, strict=True):
        parts = [f"trial {trial.index}", f"seed {trial.seed}"]
        parts += [] if trial.latency_s is None else [as_seconds(round(trial.latency_s, 6))]
        parts += [] if trial.usage is None else [f"{trial.usage.total_tokens:,} tokens"]
        parts += [] if trial.cost_usd is None else [as_money(trial.cost_usd)]
        yield name, ", ".join(parts)


def _list_choices(verdict: ComparisonVerdict, flips: Sequence[Flip]) -> tuple[blocks.Choice, ...]:
    if len(flips) < 2:
        return ()
    is_mixed = any(one.lost for one in flips) and any(one.won for one in flips)
    ways = (("lost", "lost by the candidate"), ("won", "won by the candidate")) if is_mixed else ()
    criteria, arms = (
        tuple((str(place), cut_middle(one, NAME)) for place, one in enumerate(names))
        for names in (verdict.criteria, [one.label for one in verdict.arms])
    )
    # The control has no flips of its own.
    several = {"way": ("Flip", ways), "criterion": ("Criterion", criteria)}
    return tuple(
        blocks.Choice(name=name, label=label, everything="all", options=options)
        for name, (label, options) in (several | {"arm": ("Arm", arms[1:])}).items()
        if len(options) > 1
    )
