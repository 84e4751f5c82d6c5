"""The transparent report: the companion's numbers by the errata, in words that do not overclaim."""

from __future__ import annotations

import pytest

from trialwise.model.tally import Tally
from trialwise.model.verdict import Verdict
from trialwise.procedures.compliance import decide_compliance
from trialwise.procedures.composite import compose
from trialwise.procedures.latency import decide_latency_limit
from trialwise.procedures.observational import decide_observational
from trialwise.procedures.regression import decide_regression
from trialwise.reporters.transparent import render_transparent
from trialwise.stats.values import RULES, Rule

BASELINE = Tally(trials=1000, passed=951)


def regression(passed: int, rule: Rule = "wilson") -> Verdict:
    """The regression criterion of companion §7.1."""
    return compose(
        [decide_regression("json", Tally(trials=100, passed=passed), BASELINE, rule=rule)]
    )


@pytest.mark.parametrize(
    "part",
    [
        "Contract verdict:      FAIL (triggered by json)",
        "PASS iff:              K ≥ 91 of 100",
        "p* = 0.902124",
        "c = 91, displayed as c/n = 0.910000",
        "0.024986 = P(FAIL) at the reference",
        "0.804806, Wilson",
        "at most Σα = 0.05",
    ],
)
def test_the_example_of_section_7_1_by_the_errata(part: str) -> None:
    """87 of 100 against 951 of 1000: every artefact the section asks for."""
    assert part in render_transparent(regression(87), title="json")


def test_a_wilson_regression_discloses_its_true_false_alarm() -> None:
    """90/100 against 500 trials: 25.3 %, five times what was configured, and the way out."""
    finding = decide_regression(
        "c", Tally(trials=500, passed=450), Tally(trials=100, passed=90), rule="wilson"
    )
    text = render_transparent(compose([finding]), title="t")

    assert "0.253238 with the baseline's own sampling error" in text
    assert "5.1 × the configured α; the exact rule stays within α" in text


def test_a_sound_regression_recommends_nothing() -> None:
    """Where the true false alarm is near alpha there is nothing to say."""
    assert "the exact rule" not in render_transparent(regression(95), title="t")


def test_an_observational_criterion_has_neither_threshold_nor_inference() -> None:
    """It claims nothing about a population, and says so."""
    verdict = compose([decide_observational("no-pii", Tally(trials=200, passed=200))])
    text = render_transparent(verdict, title="t")

    assert "THRESHOLD REFERENCE" not in text
    assert "STATISTICAL INFERENCE" not in text
    assert "no claim about the population" in " ".join(text.split())


def test_a_refused_design_shows_its_reason_and_no_verdict() -> None:
    """Fifty trials cannot show 95 %."""
    verdict = compose([decide_compliance("c", Tally(trials=50, passed=50), 0.95)])
    text = render_transparent(verdict, title="t")

    assert "none: the design was refused" in text
    assert "COMPLIANCE_INFEASIBLE" in text
    assert "At least 52 trials" in " ".join(text.split())


def test_latency_stands_beside_the_criteria() -> None:
    """Its rule, its count and its conclusion."""
    timing = decide_latency_limit("p95", [400.0] * 99 + [600.0], 0.95, 500.0, rule="exact")
    text = render_transparent(compose([], [timing]), title="t")

    assert "99 of 100 latencies within the limit, 99 needed" in text
    assert "latency/compliance-exact-binomial" in text


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("passed", [0, 87, 91, 100])
def test_it_fits_a_terminal_and_has_an_ascii_form(passed: int, rule: Rule) -> None:
    """At most 80 columns, and with unicode off nothing a C locale could not print."""
    verdict = regression(passed, rule)
    for unicode in (True, False):
        text = render_transparent(verdict, title="json", unicode=unicode)
        visible = [line.replace("\u0302", "") for line in text.splitlines()]

        assert max(map(len, visible)) <= 80
        assert unicode or text.isascii()
        assert "None" not in text
        assert "nan" not in text.split()
