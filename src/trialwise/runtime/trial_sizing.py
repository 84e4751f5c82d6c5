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

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TextIO, TypeAlias, TypedDict, Unpack

from trialwise.decimals import as_written, complement
from trialwise.documents.charts import Chart
from trialwise.errors import InvalidArgument
from trialwise.pages.sizing import build_sizing_page
from trialwise.procedures.sizing import comparison_sizing, fixed_sizing, paired_sizing
from trialwise.procedures.sizing import regression_sizing as measured_sizing
from trialwise.procedures.sizing import sequential_sizing as sizing
from trialwise.procedures.sizing.sizing_base import Prices, SizingPlan, expect_half
from trialwise.renderers.capabilities import Capabilities, read_capabilities
from trialwise.renderers.document_text import render_document_text
from trialwise.stats.compliance_cutoffs import check_required_rate
from trialwise.stats.paired import PairedQuestion
from trialwise.stats.sequential.bound import default_alternative
from trialwise.stores.baselines import FileDesignCache
from trialwise.validation import require_open_rate

Format: TypeAlias = Literal["text", "json", "html", "svg"]


class EstimateSettings(TypedDict, total=False):
    """What every question may be given."""

    confidence: float
    """1 − alpha, or the confidence of the interval; 0.95 by default."""
    trial_usd: float | None
    """What a trial costs, in US dollars."""
    trial_s: float | None
    """How long a trial takes, in seconds."""


class TestSettings(EstimateSettings, total=False):
    """What every question about a test may be given."""

    power: float
    """1 − beta; 0.80 by default."""


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


def plan(
    rate: float,
    *,
    alternative: float | None = None,
    expect: float | None = None,
    max_trials: int | None = None,
    batch: int = 1,
    criteria: int = 1,
    correction: str = "none",
    concurrency: int = 1,
    before_search: Callable[[int], None] | None = None,
    **settings: Unpack[TestSettings],
) -> SizingAnswer:
    """What does it take to show that a rate is met, if the test may stop early?

    Args:
        rate: The required rate.
        alternative: The bad rate to tell it from; by default 10 points lower, and at least 1 %.
        expect: The true rate at which the ways to ask are compared; by default the one with half
            the allowed failures.
        max_trials: Upper limit on trials; by default twice the exact fixed sample.
        batch: Decide after every N trials.
        criteria: How many criteria are decided on the same trials.
        correction: How the criteria share alpha: "none" or "bonferroni".
        concurrency: How many trials may run at once.
        before_search: Is given the upper limit on trials before designs are searched for. With
            more than a thousand trials the search takes a while.
        settings: The fields of `TestSettings`.
    """
    # The bad rate is ten points lower by default, but at least 1 %.
    usual = default_alternative(check_required_rate(rate))
    question = sizing.SequentialQuestion(
        required_rate=rate,
        alternative_rate=usual if alternative is None else alternative,
        expected_rate=expect,
        max_trials=max_trials,
        batch=batch,
        criteria=criteria,
        correction=sizing.Correction(correction),
        concurrency=concurrency,
        **_read_settings(settings),
    )
    # Before the search, for whoever would wonder why nothing happens for a minute.
    if before_search is not None:
        before_search(sizing.resolved_max_trials(question))
    return SizingAnswer(sizing.plan_sequential(question, cache=FileDesignCache()))


def plan_compliance(
    rate: float,
    *,
    better: float | None = None,
    margin: float | None = None,
    trials: int | None = None,
    **settings: Unpack[TestSettings],
) -> SizingAnswer:
    """How many trials, fixed beforehand, show that a rate is met?

    Args:
        rate: The required rate.
        better: The true rate that you hope for; by default midway from `rate` to 100 %.
        margin: Also sizes a test that finds a loss of so much.
        trials: Says what this many trials would do.
        settings: The fields of `TestSettings`.
    """
    question = fixed_sizing.ComplianceQuestion(
        required_rate=rate,
        better_rate=expect_half(rate) if better is None else better,
        margin=margin,
        trials=trials,
        **_read_settings(settings),
    )
    return SizingAnswer(fixed_sizing.plan_compliance(question))


def plan_regression(
    baseline: tuple[int, int],
    *,
    drop: float = 0.05,
    trials: int | None = None,
    threshold: float | None = None,
    **settings: Unpack[TestSettings],
) -> SizingAnswer:
    """How many trials see a drop from a measured baseline?

    Args:
        baseline: Its successes and its trials, such as (951, 1000).
        drop: The drop to see.
        trials: Says what this many trials would do.
        threshold: Says which false alarms a threshold of your choice implies.
        settings: The fields of `TestSettings`.
    """
    question = measured_sizing.RegressionQuestion(
        baseline_successes=baseline[0],
        baseline_trials=baseline[1],
        drop=drop,
        trials=trials,
        threshold=threshold,
        **_read_settings(settings),
    )
    return SizingAnswer(measured_sizing.plan_regression(question))


def plan_latency(
    percentiles: Sequence[float] = (0.95,),
    *,
    baseline: int | None = None,
    trials: int | None = None,
    limited: bool = False,
    limit_s: float | None = None,
    success_rate: float = 1.0,
    **settings: Unpack[EstimateSettings],
) -> SizingAnswer:
    """What does a claim about latency percentiles take?

    Args:
        percentiles: Of 0.5, 0.9, 0.95 and 0.99.
        baseline: How many latencies the baseline holds.
        trials: How many trials are planned.
        limited: Whether an explicit limit is to be shown.
        limit_s: That limit in seconds, if it is known; the answer does not depend on it.
        success_rate: The share of trials that will succeed; only those have a latency.
        settings: The fields of `EstimateSettings`.
    """
    question = measured_sizing.LatencyQuestion(
        percentiles=tuple(percentiles),
        baseline_trials=baseline,
        trials=trials,
        # The plan is the same for every limit: only the counts within it decide.
        limited=limited or limit_s is not None,
        limit_s=limit_s,
        success_rate=success_rate,
        **_read_settings(settings),
    )
    return SizingAnswer(measured_sizing.plan_latency(question))


def plan_precision(
    rate: float = 0.5,
    *,
    margin: float | None = None,
    trials: int | None = None,
    **settings: Unpack[EstimateSettings],
) -> SizingAnswer:
    """How many trials estimate a rate to within a margin, or how precise is a number of them?

    Args:
        rate: The rate that you expect.
        margin: Half the width of the interval; may be left out where `trials` is given.
        trials: Says what this many trials would do.
        settings: The fields of `EstimateSettings`.
    """
    more = _read_settings(settings)
    question = fixed_sizing.PrecisionQuestion(rate=rate, margin=margin, trials=trials, **more)
    return SizingAnswer(fixed_sizing.plan_precision(question))


def plan_compare(
    rate: float,
    *,
    drop: float,
    pairs: int | None = None,
    discordance: float | None = None,
    two_sided: bool = False,
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
        settings: The fields of `TestSettings`.
    """
    require_open_rate("rate", rate)
    require_open_rate("drop", drop)
    # B cannot pass less often than never.
    if drop >= rate:
        raise InvalidArgument("drop", drop, f"lie below the rate of A ({rate:g})")
    if not two_sided:
        # The whole error is that of calling B worse; nobody asks whether it is better.
        error = complement(settings.get("confidence", 0.95))
        # A rule that looks both ways at twice the error has the error once on each side.
        settings["confidence"] = complement(2 * error)
    worse = float(as_written(rate) - as_written(drop))
    return plan_pairs((rate, worse), pairs=pairs, discordance=discordance, **settings)


def plan_pairs(
    expect: tuple[float, float] | None = None,
    *,
    question: PairedQuestion = "different",
    margin: float | None = None,
    discordance: float | None = None,
    pairs: int | None = None,
    max_pairs: int | None = None,
    tests: int = 1,
    arms: int = 2,
    concurrency: int = 1,
    **settings: Unpack[TestSettings],
) -> SizingAnswer:
    """How many pairs does a comparison take, and how likely is each verdict?

    Args:
        expect: The rates that you expect of the control and of the candidate.
        question: "different", "better", "not-worse" or "equivalent".
        margin: The margin of the question.
        discordance: The share of pairs in which exactly one passes; by default that of arms that
            pass independently of each other.
        pairs: A fixed number of pairs.
        max_pairs: Upper limit on pairs.
        tests: Criteria times candidates, which share the level.
        arms: How many arms there are, the control included.
        concurrency: Number of concurrent trials.
        settings: The fields of `TestSettings`.

    >>> answer = plan_pairs((0.8, 0.9))
    >>> [(method["name"], method["most_pairs"]) for method in answer.to_dict()["methods"]][-1]
    ('fixed', 215)
    """
    asked = paired_sizing.PairedSizingQuestion(
        rates=expect,
        question=question,
        margin=margin,
        discordance=discordance,
        pairs=pairs,
        max_pairs=max_pairs,
        tests=tests,
        arms=arms,
        concurrency=concurrency,
        **_read_settings(settings),
    )
    return SizingAnswer(paired_sizing.plan_pairs(asked, cache=FileDesignCache()))


def plan_choice(arms: int = 2, **asked: Any) -> SizingAnswer:
    """What will a choice between several arms take and say, by simulation?

    Args:
        arms: How many there are.
        asked: The other arguments of `comparison_sizing.plan_choice`.
    """
    return SizingAnswer(comparison_sizing.plan_choice(arms, **asked))


def _read_settings(settings: EstimateSettings | TestSettings) -> dict[str, Any]:
    """Read the settings as the fields of a question, which holds the prices together."""
    # A question holds its prices in one value, as every answer writes them together.
    given: dict[str, Any] = {**settings}
    prices = {name: given.pop(name, None) for name in ("trial_usd", "trial_s")}
    return {**given, "prices": Prices(**prices)}
