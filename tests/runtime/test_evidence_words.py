"""Numbers that a report shows beside a verdict, and evidence that is read where it stands."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import trialwise as tw
from trialwise.errors import InvalidArgument
from trialwise.model.claim import PopulationClaim


def text(result: tw.Result) -> str:
    stream = io.StringIO()
    result.show(transparent=True, stream=stream)
    return " ".join(stream.getvalue().split())


def test_tokens_that_the_reply_tells_count_for_stability() -> None:
    """75,000 tokens in three calls: 2,000 a call is par, so 2000 / 25000 = 0.08."""
    calls = [{"name": "a", "args": {"i": i}} for i in range(3)]
    turns = [{"role": "assistant", "content": "hi"}] * 2

    def service(_: str) -> tw.Reply:
        trace = {"tool_calls": calls, "conversation": {"turns": turns}}
        usage = tw.Usage(input_tokens=75_000, output_tokens=0)
        return tw.Reply(value="ok", details={"trace": trace}, usage=usage)

    criterion = tw.Criterion("ok", tw.equals("ok"), never_fails=True)
    contract = tw.Contract("x", service, [criterion], stability=tw.model.Stability())
    result = tw.run(contract, inputs=["q"], trials=8, store=None, progress=False)
    (gate,) = result.verdict.gates
    assert "0.08" in text(result)
    assert gate is not None


def test_a_record_of_whole_runs_is_no_list_of_outcomes(tmp_path: Path) -> None:
    from trialwise.cli.score_command import command

    record = {"status": "pass", "studies": [{"contracts": [{"status": "fail"}]}]}
    (tmp_path / "r.json").write_text(json.dumps(record))
    done = CliRunner().invoke(command, [str(tmp_path / "r.json")])
    assert done.exit_code != 0
    assert "trials passed" not in done.output


def test_the_standard_error_of_part_of_a_corpus_is_corrected_for_its_size() -> None:
    """93 of 100 of 200: √(.93 · .07 / 100 · 100/199) = 0.018087."""
    claim = tw.model.Claim(population=PopulationClaim.FINITE_CORPUS)

    def service(_: str, index: int) -> str:
        return "ok" if index < 93 else "bad"

    contract = tw.Contract(
        "x", service, [tw.Criterion("ok", tw.equals("ok"), at_least=0.8)], claim=claim
    )
    inputs = [f"q{i}" for i in range(200)]
    result = tw.run(contract, inputs=inputs, trials=100, curtail=False, store=None, progress=False)
    assert f"{math.sqrt(0.93 * 0.07 / 100 * 100 / 199):.6f}" in text(result)


@pytest.mark.parametrize("source", ["post-guardrail", "user reports", ""])
def test_a_prevalence_seen_behind_the_guardrail_is_refused(source: str) -> None:
    with pytest.raises(InvalidArgument, match="pre-guardrail"):
        tw.model.Prevalence(rate=0.02, source=source)
    missing: dict[str, Any] = {"rate": 0.02}
    with pytest.raises(TypeError, match="source"):
        tw.model.Prevalence(**missing)


def test_the_residual_bound_says_its_confidence_and_the_evidence_behind_it() -> None:
    """Two bounds at 95 % hold together at 90 %."""
    criterion = tw.Criterion("s", tw.equals("block"), at_least=0.9, sampling="harm")
    inputs = [f"q{i}" for i in range(300)]
    sampling = tw.Sampling.of(inputs, role="harmful-candidates")
    contract = tw.Contract(
        "x",
        lambda given: "allow" if int(given[1:]) < 4 else "block",
        [criterion],
        sampling={"harm": sampling},
        claim=tw.model.Claim(
            population=PopulationClaim.SUPERPOPULATION,
            population_name="users",
            representativeness="random draw",
        ),
        prevalence=tw.model.Prevalence(
            rate=0.02, confidence=0.95, source="pre-guardrail", evidence="monitor of October"
        ),
    )
    shown = text(tw.run(contract, trials=300, curtail=False, store=None, progress=False))
    residual = shown[shown.index("Residual harm") :]
    assert "at confidence 0.9." in residual
    assert "monitor of October" in residual


def test_the_trial_that_decided_is_no_sign_of_drift() -> None:
    """One failure after 200 passes ends a FAIL at 0.99; the halves differ by that trial only."""

    def service(_: str, index: int) -> str:
        return "bad" if index == 250 else "ok"

    criterion = tw.Criterion("ok", tw.equals("ok"), at_least=0.99, undecided="fail")
    contract = tw.Contract("x", service, [criterion])
    result = tw.run(contract, inputs=["q"], trials=300, store=None, progress=False)
    (finding,) = result.verdict.findings
    assert finding.diagnostics is not None
    if str(finding.stop) == "curtailed":
        assert finding.diagnostics.first_half_rate == finding.diagnostics.second_half_rate == 1.0


def test_the_order_of_a_file_is_used_without_a_question(tmp_path: Path) -> None:
    """Two passes and a failure: 1, 1 and (2/3)³ = 29.6 %, rounded down."""
    from trialwise.cli.score_command import command

    rows = [{"id": "a", "passed": passed} for passed in (True, True, False)]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, rows)))
    arguments = [str(tmp_path / "r.jsonl"), "--order", "file"]
    done = CliRunner().invoke(command, [*arguments, "--json"])
    assert "not known" not in done.output
    shown = CliRunner().invoke(command, arguments)
    assert "100 % 100 % 29 %" in shown.output


def test_the_advice_for_more_trials_names_its_power() -> None:
    """48 of 50 for 0.95: (1.645 √(.95 · .05) + 0.842 √(.96 · .04))² / .01² = 2,740."""
    from trialwise.model.evidence import Tally
    from trialwise.procedures.compliance import _advise_trials
    from trialwise.stats import compliance_cutoff

    told = _advise_trials(Tally(trials=50, passed=48), compliance_cutoff(0.95, 60))
    spread = 1.6448536 * math.sqrt(0.95 * 0.05) + 0.8416212 * math.sqrt(0.96 * 0.04)
    assert f"about {math.ceil((spread / 0.01) ** 2):,} would in 80 % of runs" in told
