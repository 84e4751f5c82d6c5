"""Arms whose every outcome is known, for the tests of the pages that compare them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

import trialwise as tw
from trialwise.model.evidence import Spending, Tally
from trialwise.model.reply import Reply, Usage
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.amount_types import AmountDifference
from trialwise.procedures.comparing.findings import (
    ArmRun,
    ComparedArm,
    ComparisonFinding,
    ComparisonQuestion,
    ComparisonVerdict,
    Contrast,
    PairingSummary,
)
from trialwise.runtime.comparing import compare
from trialwise.stats.paired import PairCounts
from trialwise.stats.result_types import Interval

INPUTS = ["How much is 15 * 37?", "What is half of 1110?", "Say 555.", "Count to 555."]
HOSTILE = "</style><script>alert(1)</script><img src=x onerror=alert(2)>\u202egnp \x1b[31mred"
TRIALS = 40
STARTED = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)

#: By index: A alone passes at 3, 13, 23 and 33; B alone at 5, 15, 25, 35 and 7, 17, 27, 37.
LOST, WON = (3, 13, 23, 33), (5, 7, 15, 17, 25, 27, 35, 37)

Passes = Callable[[int], bool]


def contract(
    passes: Passes, *, cost: float, name: str = "sums", wrong: str = "about 550"
) -> tw.Contract:
    """A contract of two criteria whose first is passed by the trials that are named."""

    def answer(question: str, index: int) -> Reply:
        text = (
            "The answer is 555, I think." if passes(index) else f"The answer is {wrong}, I think."
        )
        return Reply(
            value=text,
            latency_s=cost / 10,
            cost_usd=cost,
            usage=Usage(input_tokens=len(question), output_tokens=10),
        )

    right = tw.Criterion("right", tw.contains("555"), at_least=0.5)
    said = tw.Criterion("polite", tw.contains("I think"), at_least=0.5)
    return tw.Contract(name, answer, [right, said])


def old(index: int) -> bool:
    return index not in WON


def new(index: int) -> bool:
    return index not in LOST


@cache
def arms(count: int = 2, *, hostile: bool = False) -> tuple[ArmRun, ...]:
    """The runs of a control and one or two candidates, on the same inputs and seeds."""
    mark = HOSTILE if hostile else ""
    wrong = HOSTILE if hostile else "about 550"
    control = contract(old, cost=0.02, wrong=wrong, name=f"sums{mark}")
    inputs = [f"{one} {mark}".strip() for one in INPUTS]
    labels = tuple(f"prompt-{one}{mark}" for one in "abc")
    found: list[ArmRun] = []
    for other, cost in ((new, 0.01), (lambda index: index % 2 == 0, 0.03))[: count - 1]:
        candidate = contract(other, cost=cost, wrong=wrong, name=f"sums{mark}")
        made = compare(
            control, candidate, inputs=inputs, trials=TRIALS, seed=1, store=None, progress=False
        )
        records = [_fix_time(one.record) for one in made.arms]
        found += [ArmRun(labels[0], records[0])] if not found else []
        found.append(ArmRun(labels[len(found)], records[1]))
    return tuple(found)


def _fix_time(record: RunRecord) -> RunRecord:
    return replace(record, verdict=replace(record.verdict, started_at=STARTED))


def verdict(count: int = 2) -> ComparisonVerdict:
    """What might be concluded of them: written here, so that no page test waits for statistics."""
    labels = [f"prompt-{one}" for one in "abc"][:count]
    findings = tuple(finding for label in labels[1:] for finding in (_right(label), _polite(label)))
    return ComparisonVerdict(
        arms=tuple(
            ComparedArm(
                label=label,
                contract="sums",
                run_id=f"run-{label}",
                seed=1,
                factors={"model": f"m{place}", "temperature": "0"},
                spending=Spending(trials=TRIALS, usd=0.8 / (place + 1), setup_s=2.0 * place),
            )
            for place, label in enumerate(labels)
        ),
        decision=Decision.INCONCLUSIVE,
        findings=findings,
        amounts=tuple(
            AmountDifference(
                name="cost_usd",
                arm=label,
                against="prompt-a",
                experiment="inputs",
                pairs=TRIALS,
                basis="pairs in which both say what they cost",
                control_mean=0.02,
                candidate_mean=0.01,
                difference=-0.01,
                interval=Interval(-0.011, -0.009, confidence=0.95, method="signed ranks"),
                median_difference=-0.01,
                median_interval=None,
            )
            for label in labels[1:]
        ),
        pairings=tuple(
            PairingSummary(
                experiment="inputs",
                arm=label,
                against="prompt-a",
                pairs=TRIALS,
                same_inputs=True,
                same_order=True,
                same_seeds=True,
                fixed_size=True,
                left_out=(0, 0),
            )
            for label in labels[1:]
        ),
        question=ComparisonQuestion(question="not-worse", margin=0.05),
        analysis="measured",
        about="about these 4 inputs, not about others",
        multiplicity="Holm over 2 tests.",
        statement="Not shown: 10.0 points, between −6.2 and 25.5 (95 %).",
        caveats=("One caveat.",),
    )


def _right(label: str) -> ComparisonFinding:
    return ComparisonFinding(
        criterion="right",
        arm=label,
        against="prompt-a",
        question="not-worse",
        margin=0.05,
        experiment="inputs",
        contrast=Contrast.NOT_TOLD_APART,
        decision=Decision.INCONCLUSIVE,
        decision_rule="paired/mcnemar-exact",
        control=Tally(trials=TRIALS, passed=TRIALS - len(WON)),
        candidate=Tally(trials=TRIALS, passed=TRIALS - len(LOST)),
        pairs=PairCounts(both=28, only_a=len(LOST), only_b=len(WON), neither=0),
        p_value=0.3877,
        adjusted_p_value=0.3877,
        interval=Interval(-0.062, 0.255, confidence=0.95, method="tango"),
        statement="Not told apart.",
        caveats=("A caveat of right.",),
    )


def _polite(label: str) -> ComparisonFinding:
    every = Tally(trials=TRIALS, passed=TRIALS)
    return replace(
        _right(label),
        criterion="polite",
        decision=Decision.PASS,
        control=every,
        candidate=every,
        pairs=PairCounts(both=TRIALS, only_a=0, only_b=0, neither=0),
        p_value=1.0,
        adjusted_p_value=1.0,
        interval=Interval(-0.04, 0.04, confidence=0.95, method="tango"),
        statement="It loses less than the margin.",
        caveats=(),
    )
