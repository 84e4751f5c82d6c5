"""The companion's three approaches in `trialwise plan`: by cost, by risk, by threshold."""

from __future__ import annotations

import json
import math
from statistics import NormalDist

import pytest
from tests.cli.test_plan import code_of, planned

from trialwise.cli.process import ExitCode

Z = NormalDist()


def below(count: int, trials: int, rate: float) -> float:
    """P(K ≤ count), term by term in logarithms."""
    return math.fsum(
        math.exp(
            math.log(math.comb(trials, k)) + k * math.log(rate) + (trials - k) * math.log1p(-rate)
        )
        for k in range(count + 1)
    )


def normal_size(required: float, loss: float, power: float) -> int:
    """The formula of companion §5.5 with exact quantiles, written again."""
    lower = required - loss
    root = Z.inv_cdf(0.95) * math.sqrt(required * (1 - required))
    root += Z.inv_cdf(power) * math.sqrt(lower * (1 - lower))
    return math.ceil((root / loss) ** 2)


@pytest.mark.slow("99.5%-0.5%-1597")
@pytest.mark.requirement(
    "companion 5.5",
    "A test of an SLA is sized by the smallest loss worth detecting.",
    "`trialwise plan RATE --fixed --margin LOSS`, `tw.planning.plan_compliance(..., margin=...)`",
)
@pytest.mark.parametrize(
    ("required", "loss", "printed"),
    [
        ("95%", "5%", 150),
        ("95%", "2%", 822),
        ("99%", "2%", 236),
        ("99%", "1%", 793),
        ("99.5%", "1%", 477),
        ("99.5%", "0.5%", 1597),
        ("99.9%", "0.5%", 548),
    ],
)
def test_an_sla_is_sized_by_the_loss_that_is_to_be_found(
    required: str, loss: str, printed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sizes that the companion prints in §3.6 and §5.5, beside the exact ones."""
    answer = json.loads(planned(capsys, f"{required} --fixed --margin {loss} --json"))
    found = next(one for one in answer["losses"] if one["power"] == 0.8)
    rate, lost = float(required[:-1]) / 100, float(loss[:-1]) / 100
    assert found["normal_trials"] == printed == normal_size(rate, lost, 0.8)
    trials, cutoff = found["trials"], found["cutoff"]
    assert found["wrong_fail"] == pytest.approx(below(cutoff - 1, trials, rate), rel=1e-9)
    assert found["wrong_pass"] == pytest.approx(1 - below(cutoff - 1, trials, rate - lost))
    assert found["wrong_fail"] <= 0.05
    assert found["wrong_pass"] <= 0.2


@pytest.mark.requirement(
    "companion 5.4",
    "Sample sizes for a power of 80, 90 and 95 %.",
    "`trialwise plan RATE --fixed --margin LOSS` prints a row for each power",
)
@pytest.mark.parametrize(
    ("loss", "sizes"), [(0.05, (150, 221, 291)), (0.10, (44, 67, 90)), (0.03, (383, 555, 720))]
)
def test_the_sizes_for_three_powers(
    loss: float, sizes: tuple[int, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """The table of §5.4, with the figures that its formula gives."""
    answer = json.loads(planned(capsys, f"95% --fixed --margin {loss} --json"))
    assert tuple(one["normal_trials"] for one in answer["losses"]) == sizes
    assert sizes == tuple(normal_size(0.95, loss, power) for power in (0.8, 0.9, 0.95))


@pytest.mark.requirement(
    "companion 3.6",
    "Compliance shows a rate above the requirement, which takes more trials than finding a loss.",
    "`trialwise plan RATE --fixed --margin LOSS` prints both sizes and why they differ",
)
def test_both_sizes_stand_side_by_side_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(planned(capsys, "99.5% --fixed --margin 1%").split())
    assert "Run 4374 trials" in text
    assert "80 % 477 604 598" in text
    assert "a PASS shows a rate above 98.5 %, not above 99.5 %" in text
    assert "at_least: 99.5%, margin: 1%, alpha: 5%, power: 80%, method: fixed" in text


@pytest.mark.slow
@pytest.mark.requirement(
    "companion 6.3",
    "A threshold that somebody chose states the alpha that it implies.",
    "`trialwise plan regression --threshold RATE`, "
    "`tw.planning.plan_regression(..., threshold=...)`",
)
def test_a_chosen_threshold_states_the_alpha_that_it_implies(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The example of §6.3: the baseline's own rate as threshold is a coin flip."""
    asked = "regression --baseline 951/1000 --trials 100 --threshold"
    answer = json.loads(planned(capsys, f"{asked} 95.1% --json"))
    coin = next(one for one in answer["chosen"] if one["trials"] == 100)
    assert coin["normal_alpha"] == coin["wilson_alpha"] == 0.5
    assert coin["cutoff"] == 96
    assert coin["false_alarm"] == pytest.approx(below(95, 100, 0.951))
    assert "! FAILs in more than 20 % of runs" in " ".join(
        planned(capsys, f"{asked} 95.1%").split()
    )

    lower = json.loads(planned(capsys, f"{asked} 0.91 --json"))
    found = next(one for one in lower["chosen"] if one["trials"] == 100)
    z = (0.951 - 0.91) / math.sqrt(0.951 * 0.049 / 100)
    assert found["normal_alpha"] == pytest.approx(1 - Z.cdf(z))
    assert found["false_alarm"] == pytest.approx(0.024986, abs=5e-7)


@pytest.mark.requirement(
    "companion 6.1",
    "With a fixed number of trials, the threshold or the confidence follows.",
    "`trialwise plan regression --trials N`, `trialwise plan RATE --fixed --trials N`",
)
def test_a_given_number_of_trials_gives_the_cutoff(capsys: pytest.CaptureFixture[str]) -> None:
    """The worked cutoff of §3.4: 91 of 100 after 951 of 1000, and its size."""
    answer = json.loads(planned(capsys, "regression --baseline 951/1000 --trials 100 --json"))
    row = next(one for one in answer["rows"] if one["trials"] == 100)
    assert row["wilson"]["cutoff"] == 91
    assert row["wilson"]["achieved_size"] == pytest.approx(below(90, 100, 0.951))


@pytest.mark.requirement(
    "reliability run count",
    "The half-width that a number of runs gives.",
    "`trialwise plan --estimate --trials N`, `tw.planning.plan_precision(trials=N)`",
)
@pytest.mark.parametrize("trials", [100, 385])
def test_a_number_of_trials_gives_the_width(
    trials: int, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = json.loads(planned(capsys, f"--estimate --trials {trials} --json"))
    assert answer["widest"] == pytest.approx(Z.inv_cdf(0.975) * math.sqrt(0.25 / trials))
    assert [one["trials"] for one in answer["given"]] == [trials] * 3
    # The mean half-width of the textbook interval, over all counts.
    mean = math.fsum(
        math.comb(trials, k)
        / 2**trials
        * Z.inv_cdf(0.975)
        * math.sqrt(k * (trials - k))
        / trials**1.5
        for k in range(trials + 1)
    )
    assert answer["given"][0]["half_width"] == pytest.approx(mean, rel=1e-6)
    assert f"With {trials} trials the 95 % Wilson interval" in planned(
        capsys, f"--estimate --trials {trials}"
    )


def test_precision_needs_a_margin_or_a_number_of_trials(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("95% --estimate") == ExitCode.REFUSED
    assert "--margin must be given, or a number of trials" in capsys.readouterr().err
