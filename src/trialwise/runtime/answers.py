"""What `compare` returns and keeps: a comparison, a choice between arms, or their description.

An answer follows from the runs of its arms, its question and its rules alone. So the same function
concludes when the arms have run, when a stored answer is loaded, and when it is verified.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias, cast

from trialwise.errors import InvalidArgument, RunNotFound
from trialwise.model.codec import from_plain, to_plain
from trialwise.model.evidence import StopReason
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision
from trialwise.procedures import choice
from trialwise.procedures.comparing.assessment import PreferenceVotes
from trialwise.procedures.comparing.findings import (
    AnswerKind,
    ArmRun,
    ComparisonFinding,
    ComparisonQuestion,
    ComparisonVerdict,
)
from trialwise.procedures.comparing.pair_following import TestRules, relabel_arms
from trialwise.procedures.comparison import COMPARISON
from trialwise.stats.paired_rules import PairedRule

if TYPE_CHECKING:
    from trialwise.documents.blocks import Document
    from trialwise.procedures.comparing.amount_types import ScoreLift
    from trialwise.runtime.frames import ComparisonFrame, Library
    from trialwise.stores.comparisons import ComparisonHead, StoredComparison

ArmsQuestion: TypeAlias = ComparisonQuestion | choice.ChoiceQuestion | choice.ExplorationQuestion


@dataclass(frozen=True)
class Answer(ABC):
    """An answer about several arms, which its page shows."""

    verdict: Any
    """What was concluded."""
    runs: tuple[ArmRun, ...]
    """The run of every arm, the control first."""
    path: Path | None = None
    """The folder the answer is kept in, if it is kept."""

    @property
    @abstractmethod
    def decided(self) -> str:
        """What is kept as its decision; INCONCLUSIVE can be resumed."""

    @abstractmethod
    def build_page(self) -> Document:
        """Build the page that every report is made from."""

    def build_summary(self, *, is_pictured: bool = False) -> Document:  # noqa: ARG002 - of some
        """Build the page that a terminal, a notebook or a pull request shows.

        Args:
            is_pictured: Whether the reader can show more than text.
        """
        return self.build_page()

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values, fit for JSON."""
        return {**to_plain(self.verdict)}

    def describe_kept(self) -> dict[str, Any]:
        """Return what is kept of the answer, with its decision."""
        return {**to_plain(self.verdict), "decision": self.decided}

    @property
    def is_interrupted(self) -> bool:
        """Whether somebody pressed Ctrl-C before it was complete."""
        # The arms end together, but one may have been complete already.
        return any(one.record.verdict.stop is StopReason.INTERRUPTED for one in self.runs)

    def render(self, format_: str) -> str:
        """Return the report: `html`, `markdown`, `json`, `transparent`; a comparison's: `junit`."""
        from trialwise.reports.formats import render_answer

        return render_answer(self, format_)

    def write(self, path: str | Path) -> Path:
        """Write a report, whose format its ending says: .html, .md, .json, .txt or .xml (JUnit).

        Args:
            path: Where.
        """
        from trialwise.reports.formats import match_answer_format, write_whole

        return write_whole(Path(path), self.render(match_answer_format(path)))

    def show(self, *, stream: TextIO | None = None) -> None:
        """Print the answer."""
        from trialwise.renderers.capabilities import read_capabilities
        from trialwise.renderers.document_text import render_document_text

        out = sys.stdout if stream is None else stream
        out.write(render_document_text(self.build_summary(), read_capabilities(out)))

    def _repr_html_(self) -> str:
        from trialwise.renderers.html.page_frame import render_fragment

        return render_fragment(self.build_summary(is_pictured=True))

    def _list_names(self) -> tuple[str, ...]:
        """List the runs by name, as far as they are kept."""
        return tuple(f"{one.label}: {one.path.name}" for one in self.runs if one.path is not None)


@dataclass(frozen=True, repr=False)
class Comparison(Answer):
    """Arms compared: the runs of the control and of the candidates, and what they show.

    >>> import trialwise as tw
    >>> criterion = tw.Criterion("answers", tw.contains("555"), at_least=0.9)
    >>> old = tw.Contract("sums", lambda question, seed: "555" if seed % 3 else "554", [criterion])
    >>> new = old.with_service(lambda question: "555")
    >>> comparison = tw.compare(old, new, inputs=["15 * 37?"], trials=30, seed=1, store=None)
    >>> comparison.findings[0].contrast
    <Contrast.BETTER: 'better'>
    """

    verdict: ComparisonVerdict

    @property
    def arms(self) -> tuple[ArmRun, ...]:
        """The run of every arm, the control first."""
        return self.runs

    @property
    def control(self) -> RunRecord:
        """The run of the control."""
        return self.arms[0].record

    @property
    def candidate(self) -> RunRecord:
        """The run of the first candidate."""
        return self.arms[1].record

    @property
    def paths(self) -> tuple[Path | None, ...]:
        """The folders the runs are kept in, if they are kept."""
        return tuple(one.path for one in self.arms)

    @property
    def decided(self) -> str:
        """What is kept as its decision."""
        return self.decision.value

    @property
    def decision(self) -> Decision:
        """FAIL if any candidate fails a criterion, PASS if all pass everywhere."""
        return self.verdict.decision

    @property
    def passed(self) -> bool:
        """Whether the decision is PASS: for an `assert`."""
        return self.decision is Decision.PASS

    @property
    def findings(self) -> tuple[ComparisonFinding, ...]:
        """One for every criterion of every two arms that are compared."""
        return self.verdict.findings

    def build_page(self) -> Document:
        """Build the page that every report is made from."""
        from trialwise.pages.comparison import build_comparison_page

        return build_comparison_page(self.verdict, self.arms)

    def build_summary(self, *, is_pictured: bool = False) -> Document:
        """Build the page that a terminal, a notebook or a pull request shows."""
        from trialwise.pages.comparison import summarize_comparison

        return summarize_comparison(self.verdict, self.arms, is_pictured=is_pictured)

    def render_junit(self) -> str:
        """Render the comparison as JUnit XML, with a test case for each test."""
        from trialwise.pages.comparison import describe_results
        from trialwise.renderers.ci_formats import render_junit

        return render_junit(describe_results(self.verdict, self.arms))

    def score_lift(self, criterion: str, *, confidence: float = 0.95) -> ScoreLift:
        """Measure how much better the candidate's scores are, pair by pair.

        Args:
            criterion: Which both runs have; without scores, a pass counts 1 and a failure 0.
            confidence: The confidence of the interval.
        """
        from trialwise.procedures.comparing.amounts import measure_lift

        return measure_lift(self.runs, criterion, confidence=confidence)

    def relabel(self, *, seed: int = 0) -> Comparison:
        """Conclude `compare(contract, contract)`: is a difference found that is not there?

        It passes where none was found, and where swapping the labels at random within pairs finds
        one no more often than the level allows.

        Args:
            seed: Of the coins that swap labels.
        """
        if len(self.arms) != 2 or self.verdict.question.question != "different":
            allowed = 'be of two arms, asked whether they are "different"'
            raise InvalidArgument("comparison", repr(self), allowed)
        # By the rules that ended the runs: without them the stop would count as chance.
        rules = find_rules(self.arms, self.verdict.question)
        if not rules and not all(one.fixed_size for one in self.verdict.pairings):
            allowed = "be kept in a store, with the rules that ended it, or have fixed trials"
            raise InvalidArgument("comparison", repr(self), allowed)
        return replace(self, verdict=relabel_arms(self.verdict, self.arms, rules, seed=seed))

    def to_dict(self) -> dict[str, Any]:
        """Return the conclusion as plain values, fit for JSON."""
        from trialwise.pages.comparison import describe_comparison

        return describe_comparison(self.verdict, self.arms)

    def to_frame(self, kind: ComparisonFrame = "pairs", *, library: Library | None = None) -> Any:
        """Return a table for analysis in pandas or polars.

        Args:
            kind: "pairs", one row for each pair and criterion, or "findings".
            library: "pandas" or "polars"; None for pandas where it is installed, else polars.
        """
        from trialwise.runtime.frames import comparison_frame

        return comparison_frame(self, kind, library=library)

    def __repr__(self) -> str:
        return f"<Comparison {self.decision.value}: {self.verdict.statement.removesuffix('.')}>"


@dataclass(frozen=True, repr=False)
class Choice(Answer):
    """Which arm is best, or which are tied.

    >>> from dataclasses import replace
    >>> import trialwise as tw
    >>> criterion = tw.Criterion("answers", tw.contains("555"), at_least=0.9)
    >>> weak = tw.Contract("weak", lambda question, seed: "555" if seed % 3 else "5", [criterion])
    >>> good = replace(weak.with_service(lambda question: "555"), name="good")
    >>> choice = tw.compare(
    ...     weak, good, question="best", inputs=["15 * 37?"], seed=1, store=None
    ... )
    >>> choice.outcome, choice.chosen
    ('chosen', 'good')
    """

    verdict: choice.ChoiceVerdict

    @property
    def decided(self) -> str:
        """What is kept as its decision: a choice that is undecided can be resumed."""
        return "INCONCLUSIVE" if self.outcome == "undecided" else self.outcome

    @property
    def outcome(self) -> choice.Outcome:
        """Return "chosen", "tied" or "undecided"."""
        return self.verdict.outcome

    @property
    def chosen(self) -> str | None:
        """The label of the arm that is best; None where none is named."""
        return self.verdict.chosen

    @property
    def unbeaten(self) -> tuple[str, ...]:
        """The labels of the arms that no other arm is shown to be better than."""
        return self.verdict.unbeaten

    @property
    def arms(self) -> tuple[choice.ArmStanding, ...]:
        """Every arm with its counts, its cost and what is shown of it."""
        return self.verdict.arms

    @property
    def trials(self) -> int:
        """The trials that were counted, of all arms together."""
        return self.verdict.trials

    def build_page(self) -> Document:
        """Build the page that every report is made from."""
        from trialwise.pages.arm_standings import build_choice_page

        return build_choice_page(self.verdict, runs=self._list_names())

    def __repr__(self) -> str:
        return f"<Choice {self.outcome}: {self.verdict.statement.removesuffix('.')}>"


@dataclass(frozen=True, repr=False)
class ExploredArms(Answer):
    """Arms beside each other, which decides nothing.

    >>> from dataclasses import replace
    >>> import trialwise as tw
    >>> criterion = tw.Criterion("answers", tw.contains("555"), at_least=0.9)
    >>> weak = tw.Contract("weak", lambda question, seed: "555" if seed % 3 else "5", [criterion])
    >>> good = replace(weak.with_service(lambda question: "555"), name="good")
    >>> explored = tw.compare(
    ...     weak, good, question="describe", inputs=["15 * 37?"], trials=20, seed=1, store=None
    ... )
    >>> [arm.label for arm in explored.arms]
    ['good', 'weak']
    """

    verdict: choice.Exploration

    @property
    def decided(self) -> str:
        """What is kept as its decision: nothing was decided."""
        return "EXPLORED"

    @property
    def found(self) -> choice.Exploration:
        """What was measured."""
        return self.verdict

    @property
    def arms(self) -> tuple[choice.ArmStanding, ...]:
        """Every arm with its counts and cost, the highest rate first."""
        return self.verdict.arms

    def build_page(self) -> Document:
        """Build the page that every report is made from."""
        from trialwise.pages.arm_standings import build_exploration_page

        return build_exploration_page(self.verdict, runs=self._list_names())

    def __repr__(self) -> str:
        return f"<ExploredArms: {', '.join(one.label for one in self.arms)}>"


def conclude_arms(
    arms: Sequence[ArmRun],
    question: ArmsQuestion,
    rules: TestRules | None = None,
    votes: Sequence[PreferenceVotes] = (),
    path: Path | None = None,
) -> Answer:
    """Answer a question about arms from the records of their runs alone.

    Args:
        arms: The control first.
        question: What is asked.
        rules: The rules that ended the runs; None where their sizes were fixed.
        votes: What a judge preferred in each pair of replies.
        path: The folder the answer is kept in, if it is kept.
    """
    # From records alone, so that anybody who has the runs comes to the same answer.
    runs = tuple(arms)
    if isinstance(question, ComparisonQuestion):
        return Comparison(COMPARISON.decide(runs, question, rules, votes), runs, path)
    if isinstance(question, choice.ChoiceQuestion):
        return Choice(choice.CHOICE.decide(runs, question), runs, path)
    found = choice.describe_arms(runs, criterion=question.criterion, confidence=question.confidence)
    return ExploredArms(found, runs, path)


# --- What is kept -------------------------------------------------------------------------------

_QUESTIONS: Mapping[AnswerKind, type[ArmsQuestion]] = {
    one.kind: one for one in (ComparisonQuestion, choice.ChoiceQuestion, choice.ExplorationQuestion)
}


def read_question(head: ComparisonHead) -> ArmsQuestion:
    """Return what was asked; a question without an edition is decided by the first one's rule."""
    kind = _QUESTIONS[cast("AnswerKind", head.kind)]
    # What was decided before a rule was corrected is shown as it was decided.
    is_first = "edition" in kind.__dataclass_fields__ and "edition" not in head.question
    return from_plain(kind, {**head.question, **({"edition": 1} if is_first else {})})


def write_rules(rules: TestRules) -> list[dict[str, Any]]:
    """Return rules as plain values."""
    return [
        {"against": against, "arm": arm, "criterion": criterion, "rule": rule.to_plain()}
        for (against, arm, criterion), rule in rules.items()
    ]


def read_rules(kept: Sequence[Mapping[str, Any]]) -> TestRules:
    """Return the rules that `write_rules` wrote."""
    return {
        (one["against"], one["arm"], one["criterion"]): PairedRule.from_plain(one["rule"])
        for one in kept
    }


def read_votes(stored: StoredComparison) -> list[PreferenceVotes]:
    """Return what a judge preferred, as it is kept with a comparison."""
    return [from_plain(PreferenceVotes, one) for one in stored.votes()]


def load_stored(stored: StoredComparison, runs_folder: Path) -> Answer:
    """Conclude again what a stored comparison, choice or description comes to.

    Args:
        stored: What is kept of it.
        runs_folder: The store of its runs.

    Raises:
        RunNotFound: One of the runs has no verdict.
    """
    from trialwise.stores.runs import RunStore

    head, store = stored.head, RunStore(runs_folder)
    runs = zip(head.labels, map(store.open, head.runs), strict=True)
    arms = [ArmRun(label, one.record(), one.path) for label, one in runs]
    rules, votes = read_rules(head.rules), read_votes(stored)
    return conclude_arms(arms, read_question(head), rules, votes, stored.path)


def load_answer(name: str | Path, *, store: str | Path = ".trialwise") -> Answer:
    """Load what several arms came to, a comparison, a choice or a description, from their runs.

    Args:
        name: Its name or its folder.
        store: The folder runs are kept in.

    Raises:
        RunNotFound: There is nothing of this name, or one of its runs has no verdict.
    """
    from trialwise.stores.comparisons import ComparisonStore

    return load_stored(ComparisonStore(Path(store)).open(name), Path(store))


def find_rules(arms: Sequence[ArmRun], question: ComparisonQuestion) -> TestRules:
    """Return the rules by which stored runs were compared, where the same is asked of them.

    Args:
        arms: With the folders of their runs.
        question: What is asked now.
    """
    from trialwise.stores.comparisons import ComparisonStore
    from trialwise.stores.runs import StoredRun

    folders = [one.path for one in arms if one.path is not None]
    names = {StoredRun(folder).comparison for folder in folders}
    # Runs of several comparisons, or of none, stopped for reasons of their own.
    if len(folders) < len(arms) or len(names) != 1 or "" in names:
        return {}
    try:
        head = ComparisonStore(folders[0].parent.parent).open(names.pop()).head
    except RunNotFound:
        return {}
    # An earlier question may lack fields that came later: those that it has must be the same.
    asked = to_plain(question)
    if head.kind != question.kind or {**asked, **head.question} != asked:
        return {}
    # A subset of the arms, or another order, is another family of tests.
    if [*head.runs] != [one.record.run_id for one in arms]:
        return {}
    # Labels may be new ones, and rules are kept under the old.
    called = dict(zip(head.labels, (one.label for one in arms), strict=True))
    return {
        (called[against], called[arm], criterion): rule
        for (against, arm, criterion), rule in read_rules(head.rules).items()
    }
