"""How many trials do I need? The questions of `trialwise plan`, asked in Python.

    plan              show that a rate is met, with the fewest trials: a sequential test
    plan_compliance   show that a rate is met, with a fixed number of trials
    plan_regression   see a drop from a baseline
    plan_latency      show a latency percentile
    plan_precision    estimate a rate to within a margin
    plan_compare      tell two variants apart, on the same inputs and on separate ones
    plan_pairs        answer a question about a candidate, pair by pair, as `compare` does
    plan_choice       find the best of several arms

Nothing is run. Every function returns a `SizingAnswer`, which shows itself like the command does.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, ParamSpec, TextIO, TypeAlias, TypedDict, TypeVar, Unpack

from trialwise.decimals import as_written, complement
from trialwise.documents.charts import Chart
from trialwise.errors import InvalidArgument
from trialwise.pages.sizing import build_sizing_page
from trialwise.procedures.sizing import (
    comparison_sizing,
    fixed_sizing,
    paired_sizing,
    regression_sizing,
    sequential_sizing,
)
from trialwise.procedures.sizing.sizing_base import SizingPlan
from trialwise.renderers.capabilities import Capabilities, read_capabilities
from trialwise.renderers.document_text import render_document_text
from trialwise.stores.baselines import FileDesignCache
from trialwise.validation import require_open_rate

P = ParamSpec("P")
Q = TypeVar("Q")
Format: TypeAlias = Literal["text", "json", "html", "svg"]


class TestSettings(TypedDict, total=False):
    """What every question about a test may be given."""

    power: float
    """1 − beta; 0.80 by default."""
    trial_usd: float | None
    """What a trial costs, in US dollars."""
    trial_s: float | None
    """How long a trial takes, in seconds."""


@dataclass(frozen=True, slots=True)
class SizingAnswer:
    """What a question costs: its designs, their error rates, their trials, money and time.

    >>> answer = plan(0.9, max_trials=50)
    >>> answer.is_refused, answer.to_dict()["form"]
    (False, 'rate')
    """

    plan: SizingPlan
    """The tables, as frozen values."""

    @property
    def is_refused(self) -> bool:
        """Whether no such test can support its claim."""
        # Sequential plans are never refused: they say what stays undecided instead.
        return getattr(self.plan, "refusal", None) is not None

    def __repr__(self) -> str:
        # The title of the page is the question, so that both always say the same.
        question = self.render("text").partition("\n")[0].removeprefix("Plan: ")
        return f"<SizingAnswer {'refused: ' if self.is_refused else ''}{question}>"

    def show(self, *, verbose: bool = False, stream: TextIO | None = None) -> None:
        """Print the answer, as `trialwise plan` does.

        Args:
            verbose: Whether to print all of it, as `-v` does.
            stream: Where to; standard output by default.
        """
        out = sys.stdout if stream is None else stream
        # A log without Unicode gets signs of ASCII, as the command line prints them.
        able = read_capabilities(out).unicode
        out.write(self.render("text", unicode=able, short=not verbose))

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values, fit for JSON."""
        return self.plan.to_dict()

    def render(self, format_: Format, *, unicode: bool = True, short: bool = False) -> str:
        """Render the answer as text, as JSON, as an HTML page, or its charts as SVG.

        Args:
            format_: Which of them.
            unicode: Whether the reader can show more than ASCII; for text and JSON.
            short: Whether the choices alone are enough; for the text of `plan`.
        """
        if format_ == "json":
            # Escapes of JSON mean the same, so that ASCII loses nothing.
            return json.dumps(self.to_dict(), indent=2, ensure_ascii=not unicode) + "\n"
        page = build_sizing_page(self.plan, short=short and format_ == "text")
        if format_ == "svg":
            from trialwise.renderers.html.page_frame import render_chart_file

            # Words have no place in a picture, so that the charts alone are drawn.
            return render_chart_file([one for one in page.blocks if isinstance(one, Chart)])
        if format_ == "html":
            from trialwise.renderers.html.page_frame import render_document

            return render_document(page)
        return render_document_text(page, Capabilities(unicode=unicode))


def _ask(
    question: Callable[P, Q], answer: Callable[[Q], SizingPlan], name: str = ""
) -> Callable[P, SizingAnswer]:
    """Make the function that asks a question: its arguments are the fields of the question.

    Args:
        question: Its class, whose docstring is that of the function.
        answer: Returns the tables that answer a question.
        name: The name of the function, where it is not that of `answer`.
    """
    name = name or answer.__name__

    # `updated=()`: the members of a class are no attributes of a function.
    @wraps(question, updated=())
    def ask(*given: P.args, **more: P.kwargs) -> SizingAnswer:
        return SizingAnswer(answer(question(*given, **more)))

    # Help pages show the arguments of the question, and what the function returns.
    signature = inspect.signature(question).replace(return_annotation="SizingAnswer")
    ask.__signature__ = signature  # type: ignore[attr-defined]
    ask.__module__, ask.__name__, ask.__qualname__ = __name__, name, name
    return ask


# Designs that were searched for once are kept on disk: the next plan of the kind asks no search.
plan = _ask(
    sequential_sizing.SequentialQuestion,
    lambda asked: sequential_sizing.plan_sequential(asked, cache=FileDesignCache()),
    "plan",
)
plan_compliance = _ask(fixed_sizing.ComplianceQuestion, fixed_sizing.plan_compliance)
plan_regression = _ask(regression_sizing.RegressionQuestion, regression_sizing.plan_regression)
plan_latency = _ask(regression_sizing.LatencyQuestion, regression_sizing.plan_latency)
plan_precision = _ask(fixed_sizing.PrecisionQuestion, fixed_sizing.plan_precision)
plan_pairs = _ask(
    paired_sizing.PairedSizingQuestion,
    lambda asked: paired_sizing.plan_pairs(asked, cache=FileDesignCache()),
    "plan_pairs",
)
plan_choice = _ask(comparison_sizing.plan_choice, lambda found: found, "plan_choice")


def plan_compare(
    rate: float,
    *,
    drop: float,
    pairs: int | None = None,
    discordance: float | None = None,
    two_sided: bool = False,
    confidence: float = 0.95,
    **settings: Unpack[TestSettings],
) -> SizingAnswer:
    """How many inputs tell two variants apart? `plan_pairs`, for B that is worse than A.

    Args:
        rate: The rate of A.
        drop: How far B lies below it.
        pairs: Says what this many pairs would do.
        discordance: The share of inputs on which exactly one passes; by default that of variants
            that pass independently of each other.
        two_sided: Whether to look for a difference either way, with the error shared by both.
        confidence: 1 − alpha.
        settings: The fields of `TestSettings`.
    """
    require_open_rate("rate", rate)
    require_open_rate("drop", drop)
    # B cannot pass less often than never.
    if drop >= rate:
        raise InvalidArgument("drop", drop, f"lie below the rate of A ({rate:g})")
    if not two_sided:
        # The whole error is that of calling B worse; nobody asks whether it is better. A rule that
        # looks both ways at twice the error has the error once on each side.
        confidence = complement(2 * complement(confidence))
    worse = float(as_written(rate) - as_written(drop))
    return plan_pairs(
        (rate, worse), pairs=pairs, discordance=discordance, confidence=confidence, **settings
    )
