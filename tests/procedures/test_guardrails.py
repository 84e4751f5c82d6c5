"""Guardrails: each violation has its severity, says both values, and blocks what it must."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import DesignRefused, InvalidArgument
from trialwise.model.baseline import Baseline, Covariate, CriterionBaseline, CriterionScope
from trialwise.model.claim import Claim, Intent
from trialwise.model.evidence import Guard, Severity
from trialwise.model.trial import Analysis
from trialwise.procedures.guardrails import admit, assess_baseline, covariate_severity

CREATED = datetime(2026, 5, 15, 9, 0, tzinfo=UTC)
HARD, MAJOR, MINOR = Severity.HARD, Severity.MAJOR, Severity.MINOR
CORPUS = Claim(population="finite-corpus")  # type: ignore[arg-type]
PRODUCTION = Claim(population="superpopulation", population_name="production")  # type: ignore[arg-type]


def scope(**given: Any) -> CriterionScope:
    defaults: dict[str, Any] = {
        "structure": "5f3a",
        "postconditions": ('{"parses":"json"}',),
        "sampling": "questions 1",
        "sampling_fingerprint": "77aa",
    }
    return CriterionScope(**defaults | given)


def observed(**given: Any) -> CriterionBaseline:
    one = scope(**given)
    parts = {name: getattr(one, name) for name in CriterionScope.__slots__}
    return CriterionBaseline(trials=1000, passed=953, **parts)


def baseline(**given: Any) -> Baseline:
    defaults: dict[str, Any] = {
        "identifier": "advice-1",
        "contract": "advice",
        "created_at": CREATED,
        "criteria": {"well-formed": observed()},
    }
    return Baseline(**defaults | given)


def assess(reference: Baseline | None = None, **given: Any) -> tuple[Guard, ...]:
    defaults: dict[str, Any] = {
        "scopes": {"well-formed": scope()},
        "claim": Claim(),
        "covariates": (),
        "profile": {},
        "factors": {},
        "now": CREATED + timedelta(days=1),
    }
    return assess_baseline(reference or baseline(), **defaults | given)


def found(guards: tuple[Guard, ...]) -> list[tuple[str, Severity]]:
    return [(guard.code, guard.severity) for guard in guards]


def test_a_baseline_that_fits_violates_nothing() -> None:
    """The same criterion, claim, conditions and inputs, within its validity."""
    reference = baseline(
        covariates={"region": "EU"}, factors={"model": "m-1"}, valid_days=90, claim=CORPUS
    )

    assert () == assess(
        reference,
        claim=CORPUS,
        covariates=[Covariate(name="region", value="EU")],
        profile={"region": "EU"},
        factors={"model": "m-1"},
    )


# Hard invalidators ----------------------------------------------------------------------------


def test_a_redefined_criterion_is_another_one() -> None:
    """Hard, for the criterion, with what it was and what it is."""
    new = scope(structure="9999", postconditions=("suite:ok#0000",))
    (guard,) = assess(scopes={"well-formed": new})

    assert ("structure", HARD, "well-formed") == (guard.code, guard.severity, guard.criterion)
    assert '{"parses":"json"} then, suite:ok#0000 now' in guard.message


def test_only_the_postconditions_that_changed_are_named() -> None:
    """And a long one is cut in its middle, since a fingerprint stands at its end."""
    long = "suite:" + "x" * 300 + "#0123456789abcdef"
    old = baseline(criteria={"a": observed(postconditions=("kept", "dropped"))})
    (guard,) = assess(old, scopes={"a": scope(structure="9", postconditions=("kept", long))})

    assert "dropped then" in guard.message
    assert "kept" not in guard.message
    assert "#0123456789abcdef now" in guard.message
    assert len(guard.message) < 350


def test_a_structure_may_change_by_its_sampling_alone() -> None:
    """The message says what can be said: the sampling, else the fingerprints."""
    (guard,) = assess(scopes={"well-formed": scope(structure="9", sampling="probes 1")})
    assert "'questions 1' then, 'probes 1' now" in guard.message

    (guard,) = assess(scopes={"well-formed": scope(structure="9")})
    assert "structure 5f3a then, 9 now" in guard.message


def test_a_criterion_that_was_not_measured_is_missing() -> None:
    """Hard: there is nothing to compare it with; what there is is named."""
    (guard,) = assess(scopes={"grounded": scope()})

    assert ("criterion-missing", HARD, "grounded") == (guard.code, guard.severity, guard.criterion)
    assert "'well-formed'" in guard.message


def test_criteria_that_are_not_compared_are_not_assessed() -> None:
    """A baseline may hold more than a run asks of it."""
    both = {"well-formed": observed(), "other": observed(structure="1")}

    assert () == assess(baseline(criteria=both))


@pytest.mark.parametrize("name", ["model", "Model", "model_id", "model-id"])
def test_another_model_is_another_service(name: str) -> None:
    """Hard, under whatever spelling it is recorded, as a factor or as a covariate."""
    (guard,) = assess(baseline(factors={name: "m-1"}), factors={name: "m-2"})
    assert ("model", HARD) == (guard.code, guard.severity)
    assert "m-1 when the baseline was measured, m-2 now" in guard.message

    covariates = [Covariate(name=name, value="m-2")]
    guards = assess(
        baseline(covariates={name: "m-1"}), covariates=covariates, profile={name: "m-2"}
    )
    assert [("model", HARD)] == found(guards)


@pytest.mark.parametrize(
    ("then", "now", "codes"),
    [
        (Claim(), CORPUS, ["population-claim"]),
        (PRODUCTION, CORPUS, ["population-claim"]),
        (
            PRODUCTION,
            Claim(population="superpopulation", population_name="beta users"),  # type: ignore[arg-type]
            ["population-claim"],
        ),
        (Claim(), Claim(estimand="prompt-weighted"), ["estimand"]),  # type: ignore[arg-type]
        (
            PRODUCTION,
            Claim(estimand="prompt-weighted"),  # type: ignore[arg-type]
            ["population-claim", "estimand"],
        ),
    ],
)
def test_another_claim_is_another_estimand(then: Claim, now: Claim, codes: list[str]) -> None:
    """Hard: the two do not compare the same object (§8.4.6)."""
    assert [(code, HARD) for code in codes] == found(assess(baseline(claim=then), claim=now))


def test_an_estimator_and_a_reason_are_no_claim() -> None:
    """How a rate is estimated belongs to the test, and so does its argument."""
    argued = Claim(
        population="superpopulation",  # type: ignore[arg-type]
        population_name="production",
        representativeness="drawn from last week's traffic",
        estimator="prompts",  # type: ignore[arg-type]
    )

    assert () == assess(baseline(claim=PRODUCTION), claim=argued)


def test_a_rate_without_excused_trials_is_another_estimand() -> None:
    """Hard, unless every trial was measured, so that all analyses count alike (§1.4.5a, §8.4.5)."""
    for then, now, excused, differs in (
        (None, "per-protocol", None, True),
        (None, "intent-to-treat", None, False),
        (None, "measured", None, False),
        ("measured", "per-protocol", 3, True),
        ("measured", "per-protocol", 0, False),
        ("measured", "intent-to-treat", 3, True),
        ("intent-to-treat", "measured", 3, True),
        ("intent-to-treat", "measured", 0, False),
        ("per-protocol", "per-protocol", 3, False),
    ):
        kept = replace(observed(), analysis=then, excused=excused)
        guards = assess(
            baseline(criteria={"well-formed": kept}), analyses={"well-formed": Analysis(now)}
        )
        assert found(guards) == ([("denominator-policy", HARD)] if differs else [])
        assert not differs or f"`analysis: {now}`" in guards[0].message


@pytest.mark.parametrize(
    ("claim", "severity"),
    [
        (Claim(), HARD),
        (CORPUS, HARD),
        (Claim(population="no-generalisation"), HARD),  # type: ignore[arg-type]
        (PRODUCTION, MINOR),
    ],
)
def test_other_inputs_are_another_estimand_where_the_claim_is_about_them(
    claim: Claim, severity: Severity
) -> None:
    """Only a named population survives other inputs; one guard for all criteria that share them."""
    scopes = {name: scope(sampling_fingerprint="0000") for name in ("a", "b")}
    reference = baseline(criteria={"a": observed(), "b": observed()}, claim=claim)
    (guard,) = assess(reference, scopes=scopes, claim=claim)

    assert ("sampling", severity) == (guard.code, guard.severity)
    assert "77aa then, 0000 now" in guard.message


def test_inputs_that_were_not_recorded_are_a_gap() -> None:
    """Minor: not known to be others."""
    reference = baseline(criteria={"well-formed": observed(sampling_fingerprint="")})

    assert [("sampling", MINOR)] == found(assess(reference))


# Covariates and factors -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("covariate", "severity"),
    [
        (Covariate(name="tier", value="gold", critical=True), MAJOR),
        (Covariate(name="tier", value="gold"), MINOR),
        (Covariate(name="where", kind="region", value="US"), MAJOR),
        (Covariate(name="serving stack", value="fast"), MAJOR),
        (Covariate(name="endpoint", value="b"), MAJOR),
    ],
)
def test_a_covariate_that_differs_weighs_what_it_is(
    covariate: Covariate, severity: Severity
) -> None:
    """Major where critical, or where the service is reached; else minor (§8.4.5)."""
    assert covariate.value is not None
    (guard,) = assess(
        baseline(covariates={covariate.name: "before"}),
        covariates=[covariate],
        profile={covariate.name: covariate.value},
    )

    assert (f"covariate:{covariate.name}", severity) == (guard.code, guard.severity)
    assert f"before when the baseline was measured, {covariate.value} now" in guard.message
    assert severity is covariate_severity(covariate.name, [covariate])


@pytest.mark.parametrize(("critical", "severity"), [(True, MAJOR), (False, MINOR)])
def test_a_covariate_that_the_baseline_does_not_know_is_unmatched(
    critical: bool, severity: Severity
) -> None:
    """Minor, unless a match is indispensable."""
    covariate = Covariate(name="tier", value="gold", critical=critical)
    (guard,) = assess(covariates=[covariate], profile={"tier": "gold"})

    assert ("covariate:tier", severity) == (guard.code, guard.severity)
    assert "not recorded when the baseline was measured, gold now" in guard.message


def test_a_covariate_that_is_no_longer_declared_is_a_gap() -> None:
    """Minor, even for a model: nobody says that it changed."""
    guards = assess(baseline(covariates={"tier": "gold", "model": "m-1"}))

    assert [("covariate:model", MINOR), ("covariate:tier", MINOR)] == found(guards)
    assert "gold when the baseline was measured, not declared now" in guards[1].message


@pytest.mark.parametrize(
    ("name", "severity"),
    [
        ("endpoint", MAJOR),
        ("region", MAJOR),
        ("serving_stack", MAJOR),
        ("Serving-Stack", MAJOR),
        ("temperature", MAJOR),
        ("prompt", HARD),
        ("evaluator", HARD),
        ("code", MINOR),
    ],
)
def test_a_factor_that_changed_weighs_by_its_name(name: str, severity: Severity) -> None:
    """Another prompt is another service; where and how it is asked is major, the rest minor."""
    (guard,) = assess(baseline(factors={name: "a"}), factors={name: "b"})

    assert (f"factor:{name}", severity) == (guard.code, guard.severity)
    assert "a when the baseline was measured, b now" in guard.message


@pytest.mark.parametrize("name", ["model", "endpoint", "temperature"])
def test_a_factor_that_one_side_does_not_record_is_a_gap(name: str) -> None:
    """Minor: unknown is not changed."""
    assert [(f"factor:{name}", MINOR)] == found(assess(baseline(factors={name: "a"})))
    assert [(f"factor:{name}", MINOR)] == found(assess(factors={name: "a"}))


def test_a_condition_that_is_factor_and_covariate_is_said_once() -> None:
    """By its covariate, unless only the factor shows the change."""
    reference = baseline(covariates={"region": "EU"}, factors={"region": "eu-1"})
    covariates = [Covariate(name="region", value="x")]
    given = {"covariates": covariates, "factors": {"region": "eu-2"}}

    assert [("covariate:region", MAJOR)] == found(
        assess(reference, profile={"region": "US"}, **given)
    )
    assert [("factor:region", MAJOR)] == found(assess(reference, profile={"region": "EU"}, **given))


# Time -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (0, None),
        (74.999, None),
        (75, "Baseline expires soon"),  # 25 of 100 days left
        (89.999, "Baseline expires soon"),
        (90, "Baseline expiring imminently"),  # 10 of 100
        (99.999, "Baseline expiring imminently"),
        (100, "BASELINE EXPIRED"),  # the interval is half-open
        (500, "BASELINE EXPIRED"),
    ],
)
def test_warnings_grow_as_expiration_comes_near(days: float, expected: str | None) -> None:
    """The bands of §8.4.2, their edges included, as shares of the validity."""
    guards = assess(baseline(valid_days=100), now=CREATED + timedelta(days=days))

    assert ([expected] if expected else []) == [guard.message.partition(":")[0] for guard in guards]
    severity = MAJOR if days >= 100 else MINOR
    assert all(guard.severity is severity for guard in guards)


@pytest.mark.parametrize(
    ("days", "severity"), [(100, MINOR), (106.999, MINOR), (107, MAJOR), (200, MAJOR)]
)
def test_grace_makes_an_expired_baseline_a_minor_caveat(days: float, severity: Severity) -> None:
    """Up to and without its end."""
    guards = assess(baseline(valid_days=100, grace_days=7), now=CREATED + timedelta(days=days))

    assert [("expired", severity)] == found(guards)
    assert "2026-08-23 09:00 UTC" in guards[0].message


def test_without_a_validity_a_baseline_does_not_age() -> None:
    """It holds until it is superseded (§1.5.5)."""
    assert () == assess(now=CREATED + timedelta(days=10_000))


def test_the_clock_may_stand_in_any_zone() -> None:
    """An instant is an instant; a time without a zone is refused."""
    from zoneinfo import ZoneInfo

    at = CREATED + timedelta(days=100)
    moved = at.astimezone(ZoneInfo("America/Los_Angeles"))

    assert assess(baseline(valid_days=100), now=at) == assess(baseline(valid_days=100), now=moved)
    with pytest.raises(InvalidArgument, match="time zone"):
        assess(now=datetime(2026, 6, 1))


def test_a_baseline_from_the_future_is_told() -> None:
    """Minor: a clock is wrong, or a file was made up."""
    assert [("future", MINOR)] == found(assess(now=CREATED - timedelta(seconds=1)))


def test_the_gravest_comes_first() -> None:
    """Whatever order they were found in."""
    reference = baseline(
        valid_days=1, covariates={"tier": "gold"}, factors={"model": "m-1", "code": "1"}
    )
    guards = assess(reference, factors={"model": "m-2", "code": "2"}, now=CREATED + timedelta(9))

    assert ["model", "expired", "covariate:tier", "factor:code"] == [g.code for g in guards]


# Admission ------------------------------------------------------------------------------------


def guard(code: str, severity: Severity, criterion: str | None = None) -> Guard:
    return Guard(code=code, severity=severity, message=f"{code} differs.", criterion=criterion)


EVERY = (
    guard("structure", HARD, "grounded"),
    guard("expired", MAJOR),
    guard("covariate:region", MAJOR),
    guard("expiring", MINOR),
)


def test_a_verification_is_refused_with_every_reason_and_the_way_out() -> None:
    """Nobody should fix one thing to learn of the next."""
    with pytest.raises(DesignRefused) as caught:
        admit(EVERY, intent=Intent.VERIFICATION)
    structure, expired, region = caught.value.reasons

    assert structure.startswith("grounded: structure differs.")
    assert "No override admits this" in structure
    assert "smoke" in structure
    assert "--override expired" in expired
    assert "--override covariate:region" in region
    assert "expiring" not in str(caught.value)


def test_an_override_admits_a_major_caveat_and_is_recorded() -> None:
    """By its own code and no other."""
    majors = EVERY[1:]
    with pytest.raises(DesignRefused) as caught:
        admit(majors, intent=Intent.VERIFICATION, overrides=["expired"])
    assert 1 == len(caught.value.reasons)

    admitted = admit(majors, intent=Intent.VERIFICATION, overrides=["expired", "covariate:region"])
    assert [True, True, False] == [one.overridden for one in admitted]
    assert [one.code for one in majors] == [one.code for one in admitted]


def test_a_minor_caveat_needs_no_override_and_gets_none() -> None:
    """It only qualifies."""
    minor = (guard("expired", MINOR), guard("sampling", MINOR))

    assert minor == admit(minor, intent=Intent.VERIFICATION, overrides=["expired", "sampling"])


@pytest.mark.parametrize(
    "code",
    [
        "structure",
        "model",
        "population-claim",
        "estimand",
        "criterion-missing",
        "denominator-policy",
    ],
)
def test_no_override_admits_a_hard_invalidator(code: str) -> None:
    """Refused whether or not it is violated: the wish itself is a mistake."""
    for guards in ([guard(code, HARD)], []):
        with pytest.raises(DesignRefused, match=f"--override {code}: it is a hard invalidator"):
            admit(guards, intent=Intent.VERIFICATION, overrides=[code])


def test_other_inputs_are_not_overridden_where_they_are_hard() -> None:
    """The same code may be minor under another claim; there it is harmless."""
    with pytest.raises(DesignRefused, match="--override sampling"):
        admit([guard("sampling", HARD)], intent=Intent.VERIFICATION, overrides=["sampling"])


def test_an_override_of_what_is_not_violated_is_harmless() -> None:
    """A standing override in a build's settings must not fail the build."""
    assert () == admit([], intent=Intent.VERIFICATION, overrides=["expired", "factor:region"])


@pytest.mark.parametrize("intent", list(Intent))
@pytest.mark.parametrize("code", ["expird", "", "covariate", "covariate:", ":", "region", "a:b"])
def test_an_unknown_override_is_an_error_that_names_the_known(code: str, intent: Intent) -> None:
    """A typo must not look like an admission."""
    with pytest.raises(InvalidArgument, match="expired, covariate:NAME or factor:NAME"):
        admit(EVERY, intent=intent, overrides=[code])


def test_a_guard_of_another_layers_own_may_be_overridden() -> None:
    """Codes are open: what was found is known."""
    (admitted,) = admit([guard("judge", MAJOR)], intent=Intent.VERIFICATION, overrides=["judge"])

    assert admitted.overridden


def test_under_smoke_everything_is_a_warning() -> None:
    """Nothing is refused, and nothing needed an override."""
    assert EVERY == admit(EVERY, intent=Intent.SMOKE)
    assert EVERY == admit(EVERY, intent=Intent.SMOKE, overrides=["expired", "structure"])


guards_of = st.lists(
    st.builds(
        guard, st.sampled_from(["expired", "covariate:a", "factor:b"]), st.sampled_from(Severity)
    )
)
codes_of = st.sets(st.sampled_from(["expired", "covariate:a", "factor:b"]))


@given(guards_of, codes_of)
def test_a_verification_goes_on_exactly_when_nothing_blocks_it(
    guards: list[Guard], overrides: set[str]
) -> None:
    """No hard guard, no hard override, and every major one admitted."""
    hard = any(one.severity is HARD for one in guards)
    unadmitted = any(one.severity is MAJOR and one.code not in overrides for one in guards)
    if hard or unadmitted:
        with pytest.raises(DesignRefused) as caught:
            admit(guards, intent=Intent.VERIFICATION, overrides=overrides)
        assert str(caught.value) == str(pickle.loads(pickle.dumps(caught.value)))
    else:
        admitted = admit(guards, intent=Intent.VERIFICATION, overrides=overrides)
        assert len(guards) == len(admitted)
        assert all(one.overridden == (one.severity is MAJOR) for one in admitted)
