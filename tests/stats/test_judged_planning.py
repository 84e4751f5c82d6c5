"""Plans for labels and trials: near the exact chances, and the cheapest of all mixes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from scipy.stats import norm

from trialwise.cli.main import cli
from trialwise.stats import ExpectedJudge, Undefined, find_cheapest, judged_power, plan_labels

GOOD = ExpectedJudge(rate=0.84, sensitivity=208 / 211, specificity=26 / 29)


@pytest.mark.parametrize(
    ("correction", "exact", "near"),
    [("rectifier", 0.9269, 0.03), ("rogan-gladen", 0.8150, 0.08), ("pooled", 0.9954, 0.03)],
)
def test_chances_are_near_the_exact_ones(correction: str, exact: float, near: float) -> None:
    """Those were summed over every table of 240 labels and every count of 250 trials."""
    found = judged_power(GOOD, 0.75, labels=240, trials=250, correction=correction)  # type: ignore[arg-type]

    assert exact == pytest.approx(found, abs=near)


def test_a_perfect_judge_leaves_the_uncertainty_of_a_proportion() -> None:
    """By hand: 0.9 against 0.8 with 100 trials, standard errors 0.04 and 0.03."""
    perfect = ExpectedJudge(rate=0.9, sensitivity=1, specificity=1)
    expected = norm.cdf((0.1 - norm.isf(0.05) * 0.04) / 0.03)

    for correction in ("rectifier", "rogan-gladen"):
        found = judged_power(perfect, 0.8, labels=50, trials=100, correction=correction)
        assert expected == pytest.approx(found, abs=1e-9)
    pooled = judged_power(perfect, 0.8, labels=50, trials=50, correction="pooled")
    assert expected == pytest.approx(pooled, abs=1e-9)


def test_more_labels_save_trials_and_every_plan_reaches_the_power() -> None:
    """One trial fewer would not: that is tried for every plan."""
    plans = plan_labels(GOOD, 0.75, power=0.9, label_cost=2, trial_cost=0.05, runs=10)
    assert not isinstance(plans, Undefined)

    for fewer, more in pairwise(plans):
        assert fewer.labels < more.labels
        assert fewer.trials > more.trials
    for one in plans:
        assert one.cost == pytest.approx(2 * one.labels + 10 * 0.05 * one.trials)
        several = [
            min(
                judged_power(GOOD, 0.75, labels=one.labels, trials=trials, correction=test)
                for test in ("rectifier", "rogan-gladen")
            )
            for trials in (one.trials - 1, one.trials)
        ]
        assert several[0] < 0.9 <= several[1] == pytest.approx(one.power)
    assert find_cheapest(plans).cost == min(one.cost for one in plans)


def test_expensive_trials_are_worth_more_labels() -> None:
    """The cheapest mix follows the prices."""
    cheap, dear = (
        plan_labels(GOOD, 0.75, label_cost=1, trial_cost=price, runs=20) for price in (0.01, 5)
    )
    assert not isinstance(cheap, Undefined)
    assert not isinstance(dear, Undefined)

    assert find_cheapest(cheap).labels < find_cheapest(dear).labels


@pytest.mark.parametrize(
    ("judge", "reason"),
    [
        (ExpectedJudge(rate=0.7, sensitivity=1, specificity=1), "not above the required"),
        (ExpectedJudge(rate=0.9, sensitivity=0.7, specificity=0.6), "agreement is too low"),
    ],
)
def test_what_cannot_be_planned_is_said(judge: ExpectedJudge, reason: str) -> None:
    """Neither a judge that nobody certifies nor a rate that is too low has a plan."""
    found = plan_labels(judge, 0.75)

    assert isinstance(found, Undefined)
    assert reason in found.reason


def test_the_command_marks_the_cheapest_plan() -> None:
    """The same figures as values and as lines."""
    asked = [
        "judge",
        "plan",
        "--at-least",
        "75%",
        "--expect",
        "85%",
        "--sensitivity",
        "98%",
        "--specificity",
        "95%",
    ]

    told = json.loads(CliRunner().invoke(cli, [*asked, "--json"]).output)
    lines = CliRunner().invoke(cli, asked).output.splitlines()

    (marked,) = (line for line in lines if line.endswith("cheapest"))
    labels, trials, *_ = re.findall(r"[\d,]+", marked)
    cheapest = told["cheapest"]
    assert (cheapest["labels"], cheapest["trials"]) == tuple(
        int(one.replace(",", "")) for one in (labels, trials)
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--expect 70% --sensitivity 98% --specificity 95%", "must be above --at-least"),
        ("--expect 85%", "--sensitivity and --specificity"),
        ("--expect 85% --sensitivity 60% --specificity 50%", "agreement is too low"),
    ],
)
def test_a_plan_that_cannot_be_made_is_refused_in_a_sentence(options: str, said: str) -> None:
    """With the usual exit code of a mistake of the user."""
    done = subprocess.run(
        [
            Path(sys.executable).with_name("trialwise"),
            "judge",
            "plan",
            "--at-least=75%",
            *options.split(),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 2
    assert said in done.stderr
