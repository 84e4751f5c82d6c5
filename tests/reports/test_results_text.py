"""The summary: a line a criterion, the suite's line, and only what needs attention."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.procedures.decided_counts import (
    decide_latency_baseline,
    decide_latency_limit,
    decide_sequential,
)
from tests.reports.short_reports import render_summary
from tests.revising import replace

from trialwise.documents.printable import count_cells
from trialwise.errors import InvalidArgument
from trialwise.model.claim import Claim, Intent
from trialwise.model.evidence import (
    Diagnostics,
    ExperimentSummary,
    Guard,
    Severity,
    Spending,
    StopReason,
    Tally,
)
from trialwise.model.verdict import Decision, Dimension, Finding, Verdict
from trialwise.procedures.compliance import decide_compliance
from trialwise.procedures.composite import compose
from trialwise.procedures.observational import decide_observational
from trialwise.procedures.regression import decide_regression
from trialwise.renderers.capabilities import Capabilities
from trialwise.stats.finite import exact_corpus_rate
from trialwise.stats.sequential.design import SequentialDesign

PLAIN = Capabilities(unicode=True)
WIDE = Capabilities(unicode=True, width=100)
DESIGN = SequentialDesign.optimal(0.90, 0.80, cap=50)


def compliance(name: str = "valid-json", passed: int = 98, trials: int = 100) -> Finding:
    return decide_compliance(name, Tally(trials=trials, passed=passed), 0.9, rule="wilson")


def of(*findings: Finding, **fields: object) -> Verdict:
    given = {"contract": "support-agent", "spending": Spending(trials=100, seconds=41, usd=0.41)}
    return replace(compose(findings), **(given | fields))


def lines(*verdicts: Verdict, able: Capabilities = PLAIN, folders: Sequence[str] = ()) -> list[str]:
    return render_summary(verdicts, capabilities=able, folders=folders).splitlines()


# --- Criteria -------------------------------------------------------------------------------------


def test_a_criterion_is_one_line_with_everything() -> None:
    """
    Verdict, rate, interval, what is required, trials, cost: 98 of 100, Wilson
    [93.0, 99.4]. The level of the interval stands in the heading.
    """
    heading, line, *_ = lines(of(compliance()), able=WIDE)

    about = "intent-to-treat: every trial counts · 95 % intervals (≈ approximate, by Wilson)"
    assert f"support-agent · {about}" == heading
    assert line == (
        "  valid-json  PASS  98.0 %  ≈ [93.0, 99.4]  required ≥ 90 %  100 trials  $0.41"
    )


def test_the_lines_of_a_suite_are_aligned() -> None:
    """One table, whatever the names and the contracts."""
    several = [
        of(compliance("a"), compliance("a-longer-name", 60)),
        of(replace(compliance("b"), decision=Decision.INCONCLUSIVE), contract="other"),
    ]
    table = [line for line in lines(*several) if "trials" in line and line.startswith("  ")]

    assert 3 == len(table)
    assert 1 == len({line.index("[") for line in table})
    assert 1 == len({line.index("trials") for line in table})


def test_an_early_decision_says_so_and_prices_its_own_trials() -> None:
    """13 of 100 trials cost 13 times the mean, and the tilde says that it is one."""
    early = replace(
        decide_sequential("quick", Tally(trials=13, passed=13), DESIGN), stop=StopReason.DECIDED
    )
    verdict = of(early, compliance())
    line = next(line for line in lines(verdict, able=WIDE) if "quick" in line)
    narrow = next(line for line in lines(verdict) if "quick" in line)

    assert "required ≥ 90 % − 10 %   13 trials  ~$0.053" in line
    assert "  13 trials" in narrow
    assert line.endswith("~$0.053")


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("", "PASS  0 of 200 failed (no claim about the population)"),
        ("NO FAILURE OBSERVED", "NO FAILURE OBSERVED  0 of 200 (no claim about the population)"),
    ],
)
def test_an_observational_pass_claims_nothing(label: str, shown: str) -> None:
    """It shows its label where there is one, and never a rate with an interval."""
    finding = replace(decide_observational("no-pii", Tally(trials=200, passed=200)), label=label)

    assert f"  no-pii  {shown}" == lines(of(finding))[1]


def test_an_observational_fail_counts_the_failures() -> None:
    """Without the sentence that it is a mere observation: a failure is one."""
    finding = decide_observational("no-pii", Tally(trials=200, passed=197))

    assert "  no-pii  FAIL  3 of 200 failed" == lines(of(finding))[1]


def by_input(counts: Sequence[tuple[str, int, int, Decision]]) -> Finding:
    parts = tuple(
        replace(compliance(passed=passed, trials=trials), decision=decision, input_id=name)
        for name, passed, trials, decision in counts
    )
    total = Tally(trials=sum(c[2] for c in counts), passed=sum(c[1] for c in counts))
    return replace(compliance(), tally=total, by_input=parts, decision=Decision.FAIL)


def test_each_input_names_the_worst_first_and_counts_the_rest() -> None:
    """Of ten inputs five fail: the three worst by rate, then how many more."""
    counts = [
        *((f"good-{i}", 10, 10, Decision.PASS) for i in range(4)),
        ("case-6", 6, 10, Decision.FAIL),
        ("case-3", 0, 10, Decision.FAIL),
        ("case-5", 5, 10, Decision.FAIL),
        ("case-7", 7, 10, Decision.FAIL),
        ("case-4", 4, 10, Decision.FAIL),
        ("case-9", 9, 10, Decision.INCONCLUSIVE),
    ]
    text = " ".join(" ".join(lines(of(by_input(counts)))[1:4]).split())

    assert "valid-json FAIL 4 of 10 inputs PASS; FAIL: case-3 (0/10), case-4 (4/10)," in text
    assert "case-5 (5/10), 2 more; INCONCLUSIVE: case-9 (9/10)" in text


def test_a_corpus_evaluated_whole_has_a_known_rate() -> None:
    """There is no interval where nothing was left to chance."""
    corpus = replace(
        compliance(), procedure="CORPUS", design=exact_corpus_rate(98, 100), alpha=None
    )

    assert "98.0 %  known  required ≥ 90 %  100 trials" in lines(of(corpus))[1]


def test_latency_is_marked_for_what_it_is() -> None:
    """Advisory where it does not bind, indicative where it rests on too few trials (§12.5.4)."""
    limit = decide_latency_limit("p95", [0.4] * 99 + [0.6], 0.95, 0.5, rule="wilson")
    few = decide_latency_baseline(
        "p99",
        [0.4] * 40,
        [0.1 + i / 1000 for i in range(1000)],
        0.99,
        intent=Intent.SMOKE,
        rule="wilson",
    )
    verdict = compose([compliance()], [limit, few], advisory=[Dimension.LATENCY])
    found = lines(replace(verdict, contract="c", intent=Intent.SMOKE))

    assert "  latency p95  PASS  400 ms, limit 500 ms, 100 successes (advisory)" in found
    assert any(
        "latency p99" in line and line.endswith("40 successes (advisory, indicative)")
        for line in found
    )


def test_a_smoke_run_and_a_claim_stand_beside_the_contract() -> None:
    """Whom the verdicts speak of, and that a smoke run is not evidence."""
    inputs = ExperimentSummary(
        name="inputs",
        identifier="inputs",
        inputs=12,
        trials=100,
        planned=100,
        draw="balanced",
        sampling_mode="with-replacement",
        stop=StopReason.COMPLETE,
    )
    wide = Capabilities(unicode=True, width=160)
    heading = lines(of(compliance(), experiments=(inputs,)), able=wide)[0]
    smoke = lines(of(compliance(), experiments=(inputs,), intent=Intent.SMOKE))

    about = "about these 12 inputs, not about others"
    counts = "intent-to-treat: every trial counts"
    intervals = "95 % intervals (≈ approximate, by Wilson)"
    assert f"support-agent · {about} · {counts} · {intervals}" == heading
    assert any("smoke: a quick check, not evidence" in line for line in smoke[:3])
    assert Claim().about(12) in heading


# --- The suite's line -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decisions", "expected"),
    [
        ("PASS", "PASS  the criterion passed · "),
        ("PASS PASS", "PASS  both criteria passed · "),
        ("PASS FAIL INCONCLUSIVE", "FAIL  1 of 3 criteria failed, 1 undecided · "),
        ("PASS INCONCLUSIVE", "INCONCLUSIVE  1 of 2 criteria undecided · "),
    ],
)
def test_the_suite_line_counts_what_did_not_pass(decisions: str, expected: str) -> None:
    """With trials, time and money of the whole."""
    findings = [
        replace(compliance(f"c{i}"), decision=Decision(word))
        for i, word in enumerate(decisions.split())
    ]

    assert f"{expected}100 trials · 41 s · $0.41" in lines(of(*findings))


def test_several_contracts_are_counted_as_contracts() -> None:
    """FAIL beats everything; trials, time and money add up."""
    bad = of(replace(compliance(), decision=Decision.FAIL), contract="b")
    text = lines(of(compliance()), bad)

    assert "FAIL  1 of 2 contracts failed · 200 trials · 82 s · $0.82" in text


def test_a_refusal_leaves_the_suite_without_a_decision() -> None:
    """Unless a failure was shown elsewhere."""
    refused = of(
        decide_compliance("c", Tally(trials=0, passed=0), 0.95, planned_trials=20, rule="wilson")
    )
    bad = of(replace(compliance(), decision=Decision.FAIL), contract="b")

    assert any(line.startswith("REFUSED  the criterion was refused") for line in lines(refused))
    assert any(line.startswith("FAIL  1 of 2 contracts failed") for line in lines(refused, bad))


def test_an_enforced_latency_counts_as_well() -> None:
    """A FAIL is not blamed on criteria that passed."""
    slow = decide_latency_limit("p95", [0.6] * 100, 0.95, 0.5, rule="wilson")
    verdict = replace(compose([compliance()], [slow]), contract="c")

    assert any(line.startswith("FAIL  1 of 2 requirements failed") for line in lines(verdict))


def test_paths_are_never_broken() -> None:
    """A person copies them: each stands on a line of its own, however short."""
    path = ".trialwise/runs/2026-03-14T09-26-53-a-very-long-contract-name-indeed"
    found = lines(of(compliance()), folders=[path, "b"])

    assert f"kept in {path}" in found
    assert "kept in b" in found


def test_nothing_run_is_no_summary() -> None:
    """What was not run is never PASS."""
    with pytest.raises(InvalidArgument, match="never PASS"):
        render_summary([])


# --- What needs attention -------------------------------------------------------------------------


def notes(*verdicts: Verdict) -> str:
    text = render_summary(verdicts, capabilities=PLAIN)
    return " ".join(text.partition("Needs attention")[2].split())


def test_a_clean_pass_needs_no_attention() -> None:
    """The summary ends with the suite's line."""
    assert "" == notes(of(compliance()))
    assert lines(of(compliance()))[-1].startswith("PASS")


def test_what_did_not_pass_is_explained() -> None:
    """The statement of the finding, and what would decide it."""
    open_end = replace(
        decide_sequential("grounded", Tally(trials=20, passed=18), DESIGN),
        advice="Resume the run: up to 30 more trials decide it.",
    )
    found = notes(of(compliance(), open_end))

    assert "- grounded: The run ended after 20 of at most 50 trials" in found
    assert "up to 30 more trials decide it." in found
    assert "valid-json:" not in found


def test_a_premature_stop_comes_first() -> None:
    """In the words of whoever stopped it."""
    stopped = of(
        replace(compliance(), decision=Decision.INCONCLUSIVE),
        stop=StopReason.MONEY_BUDGET,
        aborted="The run spent its budget of money.",
    )

    assert notes(stopped).startswith("- The run spent its budget of money.")
    assert notes(of(compliance(), stop=StopReason.INTERRUPTED)).startswith(
        "- The run ended early: interrupted."
    )


def test_guards_say_how_bad_and_who_let_them_pass() -> None:
    """Severity in words, the code an override names, and that there was one; told once."""
    message = "The baseline expired 3 days ago"
    guard = Guard(
        code="baseline-expired", severity=Severity.MAJOR, message=message, overridden=True
    )
    found = notes(of(compliance(), guards=(guard,)))

    assert f"- major caveat, admitted by override: {message} [baseline-expired]" in found
    assert 1 == found.count(message)


def test_caveats_warnings_and_retries_are_disclosed_once() -> None:
    """One note for two criteria that share it, with both names."""
    doubtful = [
        replace(
            compliance(name),
            caveats=("few inputs", "2 of the 98 passes needed a retry"),
            diagnostics=Diagnostics(warnings=(f"drift in {name}",)),
        )
        for name in ("a", "b")
    ]
    found = notes(of(*doubtful))

    assert "- a, b: few inputs" in found
    assert "- a: drift in a" in found
    assert "- a, b: 2 of the 98 passes needed a retry" in found


def test_both_rates_are_told_where_they_differ() -> None:
    """10 trials never reached the service: 88 of all 100, 88 of the 90 others."""
    finding = replace(
        compliance(passed=88),
        intent_to_treat=Tally(trials=100, passed=88),
        per_protocol=Tally(trials=90, passed=88),
    )

    assert (
        "per protocol 97.8 % (88 of 90), all trials 88.0 % (88 of 100): 10 trials were not measured"
    ) in notes(of(finding))
    same = replace(finding, per_protocol=Tally(trials=100, passed=88))
    assert "per protocol" not in notes(of(same))


def test_notes_name_their_contract_where_there_are_several() -> None:
    """And a long list ends in a number."""
    many = of(*(replace(compliance(f"c{i}"), caveats=(f"caveat {i}",)) for i in range(40)))
    found = notes(many, of(compliance(), contract="other"))

    assert "- support-agent: c0: caveat 0" in found
    assert found.endswith("- and 25 more, in the report")


# --- Whatever it holds ----------------------------------------------------------------------------

names = st.text(min_size=1, max_size=50).filter(str.strip)


@st.composite
def findings(draw: st.DrawFn) -> Finding:
    """A finding of any procedure, with everything that may hang on it."""
    name = draw(names)
    trials = draw(st.integers(1, 50))
    tally = Tally(trials=trials, passed=draw(st.integers(0, trials)))
    make: Callable[[], Finding] = draw(
        st.sampled_from(
            [
                lambda: decide_compliance(name, tally, 0.5, rule="wilson"),
                lambda: decide_regression(name, tally, Tally(trials=100, passed=91), rule="wilson"),
                lambda: decide_observational(name, tally),
                lambda: decide_sequential(name, Tally(trials=4, passed=0), DESIGN),
            ]
        )
    )
    finding = replace(
        make(),
        label=draw(st.sampled_from(["", "NO FAILURE OBSERVED"])),
        statement=draw(names),
        caveats=tuple(draw(st.lists(names, max_size=2))),
        stop=draw(st.sampled_from(StopReason)),
        per_protocol=draw(st.sampled_from([None, Tally(trials=0, passed=0)])),
    )
    if draw(st.booleans()):
        parts = tuple(replace(finding, input_id=one) for one in draw(st.lists(names, max_size=5)))
        finding = replace(finding, by_input=parts)
    return finding


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.lists(findings(), min_size=1, max_size=4),
    names,
    st.integers(40, 130),
    st.booleans(),
    st.booleans(),
)
def test_any_verdict_fits_its_width(
    parts: list[Finding], name: str, width: int, unicode: bool, colour: bool
) -> None:
    """No line is wider, none holds a control character, and ASCII is ASCII."""
    verdict = replace(
        compose([replace(one, rule=None) for one in parts]),
        contract=name,
        aborted=name,
        spending=Spending(trials=100, seconds=0.4, usd=1234.5, setup_usd=0.1),
    )
    able = Capabilities(unicode=unicode, colour=colour, width=width)
    text = render_summary([verdict], capabilities=able)
    bare = re.sub(r"\x1b\[\d+m", "", text)

    assert colour or text == bare
    for line in bare.splitlines():
        assert count_cells(line) <= width
        assert line.isprintable()
        assert unicode or line.isascii()


def test_a_reply_cannot_move_the_cursor() -> None:
    """Escape sequences in names, statements and caveats are shown as text."""
    evil = "\x1b[2J\x1b]0;owned\x07\r\n\u202e"
    finding = replace(
        compliance(evil + "name"),
        decision=Decision.FAIL,
        statement=f"because{evil}",
        caveats=(evil,),
    )
    text = render_summary([of(finding, contract=evil)], capabilities=PLAIN, folders=[evil])

    assert all(line.isprintable() for line in text.splitlines())
    assert "because\\x1b[2J" in text
