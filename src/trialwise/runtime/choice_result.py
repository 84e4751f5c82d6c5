"""What `choose` and `explore` return: an answer about several arms, with its page and reports."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from trialwise.model.codec import to_plain
from trialwise.procedures.choice import (
    ArmStanding,
    ChoiceVerdict,
    Exploration,
    Outcome,
)
from trialwise.procedures.comparing.findings import ArmRun

if TYPE_CHECKING:
    from trialwise.documents.blocks import Document


class _Shown(ABC):
    """An answer about several arms, which its page shows."""

    @abstractmethod
    def build_page(self) -> Document:
        """Build the page that every report is made from."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values, fit for JSON."""

    def write(self, path: str | Path) -> Path:
        """Write a report, whose format its ending says: .html, .json, .md or .txt."""
        from trialwise.reports.answer_reports import match_answer_format
        from trialwise.reports.report_files import write_whole

        place = Path(path)
        return write_whole(place, self.render(match_answer_format(place)))

    def render(self, format_: str) -> str:
        """Return the report in a format: `html`, `json`, `markdown` or `transparent`."""
        from trialwise.reports.answer_reports import render_answer

        return render_answer(self.build_page(), self.to_dict(), format_)

    def show(self, *, stream: TextIO | None = None) -> None:
        """Print the page."""
        from trialwise.renderers.capabilities import read_capabilities
        from trialwise.renderers.document_text import render_document_text

        out = sys.stdout if stream is None else stream
        out.write(render_document_text(self.build_page(), read_capabilities(out)))

    def _repr_html_(self) -> str:
        from trialwise.renderers.html.page_frame import render_fragment

        return render_fragment(self.build_page())


@dataclass(frozen=True)
class Choice(_Shown):
    """Which arm is best, or which are tied.

    >>> from dataclasses import replace
    >>> import trialwise as tw
    >>> criterion = tw.Criterion("answers", tw.contains("555"), at_least=0.9)
    >>> weak = tw.Contract("weak", lambda question, seed: "555" if seed % 3 else "5", [criterion])
    >>> good = replace(weak.with_service(lambda question: "555"), name="good")
    >>> choice = tw.choose(weak, good, inputs=["15 * 37?"], seed=1, store=None)
    >>> choice.outcome, choice.chosen
    ('chosen', 'good')
    """

    verdict: ChoiceVerdict
    runs: tuple[ArmRun, ...]
    """The run of every arm."""
    path: Path | None = None
    """The folder the choice is kept in, if it is kept."""

    @property
    def outcome(self) -> Outcome:
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
    def arms(self) -> tuple[ArmStanding, ...]:
        """Every arm with its counts, its cost and what is shown of it."""
        return self.verdict.arms

    @property
    def trials(self) -> int:
        """The trials that were counted, of all arms together."""
        return self.verdict.trials

    def build_page(self) -> Document:
        """Build the page that every report of the choice is made from."""
        from trialwise.pages.arm_standings import build_choice_page

        return build_choice_page(self.verdict, runs=_list_names(self.runs))

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values, fit for JSON."""
        plain: dict[str, Any] = to_plain(self.verdict)
        return plain

    def __repr__(self) -> str:
        return f"<Choice {self.outcome}: {self.verdict.statement.removesuffix('.')}>"


@dataclass(frozen=True)
class ExploredArms(_Shown):
    """Arms beside each other, which decides nothing.

    >>> from dataclasses import replace
    >>> import trialwise as tw
    >>> criterion = tw.Criterion("answers", tw.contains("555"), at_least=0.9)
    >>> weak = tw.Contract("weak", lambda question, seed: "555" if seed % 3 else "5", [criterion])
    >>> good = replace(weak.with_service(lambda question: "555"), name="good")
    >>> explored = tw.explore(weak, good, inputs=["15 * 37?"], trials=20, seed=1, store=None)
    >>> [arm.label for arm in explored.arms]
    ['good', 'weak']
    """

    found: Exploration
    runs: tuple[ArmRun, ...]

    @property
    def arms(self) -> tuple[ArmStanding, ...]:
        """Every arm with its counts and cost, the highest rate first."""
        return self.found.arms

    def build_page(self) -> Document:
        """Build the page that every report of the arms is made from."""
        from trialwise.pages.arm_standings import build_exploration_page

        return build_exploration_page(self.found, runs=_list_names(self.runs))

    def to_dict(self) -> dict[str, Any]:
        """Return the description as plain values, fit for JSON."""
        plain: dict[str, Any] = to_plain(self.found)
        return plain

    def __repr__(self) -> str:
        return f"<ExploredArms: {', '.join(one.label for one in self.arms)}>"


def _list_names(runs: Sequence[ArmRun]) -> tuple[str, ...]:
    return tuple(f"{one.label}: {one.path.name}" for one in runs if one.path is not None)
