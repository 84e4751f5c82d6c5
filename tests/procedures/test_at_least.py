"""`at_least` has one meaning, with or without a fixed number of trials.

Every chance here is counted by binomial sums of the test's own.
"""

from __future__ import annotations

from math import comb

import pytest

import trialwise as tw
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import CutoffEvidence
from trialwise.model.plan import Limits
from trialwise.model.verdict import Decision, Finding

INCONCLUSIVE = Decision.INCONCLUSIVE


def chance_of_at_least(k: int, n: int, p: float) -> float:
    return sum(comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1))


def decide(passed: int, trials: int, **given: object) -> Finding:
    """The finding of a run whose first replies pass."""

    def answer(question: str, index: int) -> str:  # noqa: ARG001
        return "yes" if index < passed else "no"

    options = {"rule": given.pop("rule", "exact"), "curtail": given.pop("curtail", False)}
    criterion = Criterion("c", tw.contains("yes"), trials=trials, **given)  # type: ignore[arg-type]
    contract = tw.Contract("x", answer, [criterion])
    result = tw.run(contract, inputs=["q"], store=None, progress=False, **options)  # type: ignore[arg-type]
    (finding,) = result.verdict.findings
    return finding


def plan_limits(trials: int, *, at_least: float) -> Limits:
    """The limits of a criterion with a fixed number of trials."""
    return decide(trials, trials, at_least=at_least, curtail=True).plan.limits


class TestFixedTrials:
    def test_a_pass_shows_the_rate(self) -> None:
        """
        96 of 100 is the fewest that a service of exactly 90 % reaches in at most 5 % of runs.
        """
        assert chance_of_at_least(96, 100, 0.9) <= 0.05 < chance_of_at_least(95, 100, 0.9)
        assert decide(96, 100, at_least=0.9).decision is Decision.PASS
        assert decide(95, 100, at_least=0.9).decision is Decision.INCONCLUSIVE

    def test_a_fail_says_on_which_ground(self) -> None:
        """
        93 of 100 does not show 90 %; 84 of 100 shows a rate below it. No such FAIL is bare.
        """
        assert 1 - chance_of_at_least(85, 100, 0.9) <= 0.05 < 1 - chance_of_at_least(86, 100, 0.9)
        for passed, ground in (
            (95, "not shown"),
            (93, "not shown"),
            (85, "not shown"),
            (84, "shown below"),
        ):
            finding = decide(passed, 100, at_least=0.9, undecided="fail")
            assert isinstance(finding.evidence, CutoffEvidence)
            assert (Decision.FAIL, ground) == (finding.decision, finding.evidence.ground)
            assert f"FAIL ({ground})" == finding.label
        assert (
            "93 of 100 passed; 96 were needed to show 90 %."
            == decide(93, 100, at_least=0.9, undecided="fail").statement
        )
        assert "" == decide(84, 100, at_least=0.9).label
        assert (
            "Only 84 of 100 passed; at least 90 % is required."
            == decide(84, 100, at_least=0.9).statement
        )

    def test_a_fail_shows_a_rate_below_the_required_one(self) -> None:
        """
        PASS from 96 of 100 on, FAIL up to 84, INCONCLUSIVE between.
        """
        for curtail in (False, True):
            decisions = [
                decide(k, 100, at_least=0.9, curtail=curtail).decision for k in (96, 95, 85, 84, 0)
            ]
            expected = [
                Decision.PASS,
                Decision.INCONCLUSIVE,
                Decision.INCONCLUSIVE,
                Decision.FAIL,
                Decision.FAIL,
            ]
            assert expected == decisions

    def test_a_margin_lowers_what_a_pass_shows(self) -> None:
        """
        With `margin: 3%` a PASS shows more than 87 %, and FAIL still shows less than 90 %.
        """
        fewest = next(k for k in range(101) if chance_of_at_least(k, 100, 0.87) <= 0.05)
        assert fewest < 96
        passing = decide(fewest, 100, at_least=0.9, margin=0.03)
        assert passing.decision is Decision.PASS
        assert "shows a rate above 87 %" in passing.statement
        between = decide(fewest - 1, 100, at_least=0.9, margin=0.03)
        assert between.decision is Decision.INCONCLUSIVE
        assert decide(84, 100, at_least=0.9, margin=0.03).decision is Decision.FAIL

    def test_a_count_that_shows_both_sides_of_a_wide_margin_passes(self) -> None:
        """
        850 of 1,000 shows a rate above 80 % and one below 90 %; FAIL begins where no PASS is left.
        """
        assert chance_of_at_least(850, 1000, 0.8) <= 0.05
        assert 1 - chance_of_at_least(851, 1000, 0.9) <= 0.05
        for curtail in (False, True):
            decisions = {
                passed: decide(passed, 1000, at_least=0.9, margin=0.1, curtail=curtail).decision
                for passed in (850, 700)
            }
            assert {850: Decision.PASS, 700: Decision.FAIL} == decisions

    def test_each_direction_has_its_own_error_limit(self) -> None:
        """
        `alpha` limits a wrong FAIL and `beta` a wrong PASS, also with a fixed number of trials.
        """
        most = max(k for k in range(101) if 1 - chance_of_at_least(k + 1, 100, 0.9) <= 0.01)
        fewest = min(k for k in range(101) if chance_of_at_least(k, 100, 0.9) <= 0.2)
        for curtail in (False, True):
            decisions = [
                decide(k, 100, at_least=0.9, alpha=0.01, beta=0.2, curtail=curtail).decision
                for k in (fewest, fewest - 1, most + 1, most)
            ]
            assert [
                Decision.PASS,
                Decision.INCONCLUSIVE,
                Decision.INCONCLUSIVE,
                Decision.FAIL,
            ] == decisions

    def test_a_run_ends_as_soon_as_its_verdict_is_certain_whichever_it_is(self) -> None:
        """
        A second implementation asks of every count whether the rest of the trials could matter.
        """
        size, limits = 30, plan_limits(30, at_least=0.8)
        assert limits.cutoff is not None
        assert limits.most_failing is not None

        def decide_whole(passed: int) -> Decision:
            if passed >= (limits.cutoff or 0):
                return Decision.PASS
            return Decision.FAIL if passed <= (limits.most_failing or 0) else INCONCLUSIVE

        for n in range(size + 1):
            for failures in range(n + 1):
                ends = {decide_whole(n - failures + more) for more in range(size - n + 1)}
                certain = ends.pop() if len(ends) == 1 else None
                assert certain is limits.decide(n, failures)
                if certain is None:
                    following = limits.next_look(n, failures)
                    assert all(
                        limits.decide(m, failures + lost) is None
                        for m in range(n + 1, following)
                        for lost in range(m - n + 1)
                    )

    @pytest.mark.slow("exact-False")
    @pytest.mark.parametrize("curtail", [False, True])
    @pytest.mark.parametrize("rule", ["exact", "wilson"])
    def test_the_interval_agrees_with_the_verdict(self, rule: str, curtail: bool) -> None:
        """
        PASS exactly where the lower end reaches the rate, shown below where the upper end is below.
        """
        for passed in range(61):
            finding = decide(passed, 60, at_least=0.8, rule=rule, curtail=curtail)
            interval = finding.interval
            assert interval is not None
            assert (finding.decision is Decision.PASS) == (interval.low >= 0.8)
            assert isinstance(finding.evidence, CutoffEvidence)
            assert (finding.evidence.ground == "shown below") == (interval.high <= 0.8)
            assert interval.confidence == pytest.approx(0.9)

    def test_curtailed_intervals_cover(self) -> None:
        """
        Clopper and Pearson's at the stopped counts covers every rate in at least 90 % of runs.
        """
        from trialwise.stats import clopper_pearson

        n, cutoff = 40, next(k for k in range(41) if chance_of_at_least(k, 40, 0.8) <= 0.05)
        for step in range(1, 60):
            p, covered = step / 60, 0.0
            for m in range(cutoff, n + 1):  # the last trial is the success number `cutoff`
                weight = comb(m - 1, cutoff - 1) * p**cutoff * (1 - p) ** (m - cutoff)
                covered += weight * (p in _Span(*clopper_pearson(cutoff, m, confidence=0.9)))
            lost = n - cutoff + 1
            for m in range(lost, n + 1):
                weight = comb(m - 1, lost - 1) * (1 - p) ** lost * p ** (m - lost)
                covered += weight * (p in _Span(*clopper_pearson(m - lost, m, confidence=0.9)))
            assert covered >= 0.9 - 1e-9


class _Span:
    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def __contains__(self, rate: float) -> bool:
        return self.low <= rate <= self.high


class TestEarlyDecisions:
    def test_the_line_names_the_requirement(self, capsys: pytest.CaptureFixture[str]) -> None:
        """
        A reader of the result sees the rate, its interval and what is required.
        """
        criterion = Criterion("c", tw.contains("yes"), at_least=0.9)
        contract = tw.Contract("x", lambda _: "yes", [criterion])
        result = tw.run(contract, inputs=["q"], store=None, progress=False)
        result.show()
        assert "required ≥ 90 %" in capsys.readouterr().out
        (finding,) = result.verdict.findings
        assert finding.interval is not None
        assert finding.interval.low > 0.9

    def test_half_of_the_old_margin_no_longer_passes(self) -> None:
        """
        At a true 97 % a required 99.9 % passed in 61 % of runs; now it is refused or fails.
        """
        criterion = Criterion("c", tw.contains("yes"), at_least=0.999, max_trials=4000)

        def answer(question: str, index: int) -> str:  # noqa: ARG001
            return "no" if index % 33 == 0 else "yes"

        contract = tw.Contract("x", answer, [criterion])
        result = tw.run(contract, inputs=["q"], store=None, progress=False)
        assert Decision.FAIL is result.decision
