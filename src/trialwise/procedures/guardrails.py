"""Is a baseline a reference for this run? Every doubt by its severity (companion §8.4).

A hard invalidator means that the comparison does not exist: another criterion, another model,
another estimand. A major caveat may be admitted by name, and is then on the verdict. A minor one
only qualifies. Under the smoke intent all of them are warnings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from trialwise.errors import DesignRefused, InvalidArgument
from trialwise.model.baseline import (
    Baseline,
    Covariate,
    CovariateKind,
    CriterionBaseline,
    CriterionScope,
    differing_covariates,
)
from trialwise.model.claim import Claim, Intent, PopulationClaim
from trialwise.model.evidence import Guard, Severity
from trialwise.model.trial import Analysis
from trialwise.redaction import are_sealed_apart

#: Another model is another service, under whatever name it is recorded. With another prompt or
#: another evaluator a difference is no regression either, but a configuration error (§8.4.5).
_MODEL = frozenset({"model", "model_id"})
_HARD_FACTORS = _MODEL | {
    *("prompt", "prompt_version", "system_prompt"),
    *("evaluator", "evaluator_version", "judge", "rubric"),
}
#: How a service is asked and what it may call: another value is another configuration of it.
_CONFIGURATION = frozenset({"parameters", "temperature", "tools"})
#: Where a service is reached and what serves it: rates move with these although the model stays.
_PLACE = frozenset({"endpoint", "region", "serving_stack"})
#: Codes that no override admits under verification.
_HARD = (
    "structure",
    "criterion-missing",
    "model",
    "population-claim",
    "estimand",
    "denominator-policy",
)
#: Codes, or their beginnings, that are major or minor, or hard under some claims only.
_OTHER = (
    *("expired", "covariate:", "factor:", "sampling", "expiring", "future"),
    *("several-baselines", "superseded"),
)
#: The bands of §8.4.2, narrowest first: a share of the validity that is left, and the words.
_BANDS = ((10, "Baseline expiring imminently"), (4, "Baseline expires soon"))
_MEASURE = "measure a new baseline"
HARD, MAJOR, MINOR = Severity.HARD, Severity.MAJOR, Severity.MINOR
#: Places severities from the gravest on.
_ORDER = list(Severity).index


def assess_baseline(
    baseline: Baseline,
    *,
    scopes: Mapping[str, CriterionScope],
    claim: Claim,
    covariates: Sequence[Covariate],
    profile: Mapping[str, str],
    factors: Mapping[str, str],
    now: datetime,
    analyses: Mapping[str, Analysis] = MappingProxyType({}),
    critical: Collection[str] = (),
) -> tuple[Guard, ...]:
    """Return every guardrail that a comparison with this baseline would violate, the gravest first.

    Args:
        baseline: The one selected.
        scopes: What each criterion that is held against it is about now.
        claim: The claim of the run.
        covariates: As the contract declares them.
        profile: Their values in this run.
        factors: What is under test now.
        now: When the run starts, with its zone.
        analyses: Whose trials decide each criterion now.
        critical: Factors whose change is a major caveat at least.
    """
    # A baseline has a moment of the world; a clock time without its zone may be hours away from it.
    if now.tzinfo is None:
        raise InvalidArgument("now", now, "name its time zone")
    guards = (
        *_criteria(baseline, scopes),
        *_claims(baseline.claim, claim),
        *_denominators(baseline, analyses),
        *_samplings(baseline, scopes, claim),
        *_covariates(baseline.covariates, profile, covariates),
        *_factors(baseline, factors, profile, critical),
        *_aliases(factors),
        *_age(baseline, now),
    )
    # The gravest first: who reads one line of a refusal reads the one that matters.
    return tuple(sorted(guards, key=lambda guard: _ORDER(guard.severity)))


def covariate_severity(name: str, covariates: Iterable[Covariate]) -> Severity:
    """Return what it costs a comparison that a covariate differs.

    Hard for a model and major for a region, an endpoint or a serving stack, as for a factor of
    that name; else major where it is declared critical.

    >>> covariate_severity("tier", [Covariate(name="tier", value="gold", critical=True)])
    <Severity.MAJOR: 'major-caveat'>
    """
    by_name = _rank(name, _MODEL, _PLACE)
    declared = next((one for one in covariates if one.name == name), None)
    if declared is not None and (declared.critical or declared.kind is CovariateKind.REGION):
        return min(by_name, MAJOR, key=_ORDER)
    return by_name


def admit(
    guards: Iterable[Guard],
    *,
    intent: Intent,
    overrides: Collection[str] = (),
    smoke_refuses: str = "nothing",
) -> tuple[Guard, ...]:
    """Return the guards a run goes on with, those that an override admitted marked.

    Args:
        guards: What was found.
        intent: Under `SMOKE` everything is a warning, unless a policy says otherwise.
        overrides: Codes of major caveats that somebody takes responsibility for.
        smoke_refuses: What blocks a smoke run, too: "nothing", "hard" or "major" (§8.4.5).

    Raises:
        DesignRefused: Under verification, with every guard that blocks the run; or a hard
            invalidator is named in the overrides.
        InvalidArgument: No guardrail has such a code.

    >>> expired = Guard(code="expired", severity=MAJOR, message="BASELINE EXPIRED.")
    >>> admit([expired], intent=Intent.VERIFICATION, overrides=["expired"])[0].overridden
    True
    """
    found = tuple(guards)
    _check_overrides(overrides, {guard.code for guard in found})
    if intent is Intent.SMOKE:
        blocked = {"hard": (HARD,), "major": (HARD, MAJOR)}
        severe = blocked.get(smoke_refuses, ())
        promoted = [
            f"{guard.message} The policy `smoke_refuses: {smoke_refuses}` refuses this in a smoke "
            "run, too."
            for guard in found
            if guard.severity in severe and _blocks(guard, overrides)
        ]
        if promoted:
            raise DesignRefused(tuple(promoted))
        return found
    hard = {guard.code for guard in found if guard.severity is HARD}
    # Someone who overrides what cannot be overridden believes a comparison that does not exist.
    futile = [code for code in overrides if code in hard or code in _HARD]
    reasons = [
        f"--override {code}: it is a hard invalidator, which no override admits: a comparison "
        "across it does not exist. Leave it out."
        for code in futile
    ]
    reasons += [_refusal(guard) for guard in found if _blocks(guard, overrides)]
    if reasons:
        raise DesignRefused(tuple(reasons))
    return tuple(
        replace(guard, overridden=guard.severity is MAJOR and guard.code in overrides)
        for guard in found
    )


def _blocks(guard: Guard, overrides: Collection[str]) -> bool:
    if guard.severity is MAJOR:
        return guard.code not in overrides
    return guard.severity is HARD


def _refusal(guard: Guard) -> str:
    where = "" if guard.criterion is None else f"{guard.criterion}: "
    way = f"Or admit it with --override {guard.code}, which the verdict records"
    if guard.severity is HARD:
        way = "No override admits this under verification"
    return f"{where}{guard.message} {way}; the smoke intent only warns."


def _check_overrides(overrides: Collection[str], found: Collection[str]) -> None:
    for code in overrides:
        beginning = code[: code.find(":") + 1]
        named = beginning in _OTHER and len(code) > len(beginning) > 0
        if not named and code not in {*_HARD, *_OTHER, *found} - {"covariate:", "factor:"}:
            allowed = "be the code of a major caveat: expired, covariate:NAME or factor:NAME"
            raise InvalidArgument("override", code, allowed)


def _criteria(baseline: Baseline, scopes: Mapping[str, CriterionScope]) -> Iterator[Guard]:
    for name, scope in scopes.items():
        found = baseline.criteria.get(name)
        if found is None:
            known = ", ".join(map(repr, baseline.criteria))
            message = (
                f"Baseline {baseline.identifier} does not hold this criterion, only {known}: "
                f"{_MEASURE}, or use the old name."
            )
            yield _guard("criterion-missing", HARD, message, name)
        elif found.structure != scope.structure:
            message = (
                f"Baseline {baseline.identifier} was measured with another definition of this "
                f"criterion: {_find_change(found, scope)}. {_MEASURE.capitalize()}, or restore the "
                "definition."
            )
            yield _guard("structure", HARD, message, name)


def _find_change(old: CriterionBaseline, new: CriterionScope) -> str:
    then = [one for one in old.postconditions if one not in new.postconditions]
    now = [one for one in new.postconditions if one not in old.postconditions]
    if then or now:
        return f"{_join_parts(then)} then, {_join_parts(now)} now"
    if old.sampling != new.sampling:
        return f"over the sampling {old.sampling!r} then, {new.sampling!r} now"
    return f"structure {old.structure} then, {new.structure} now"


def _join_parts(parts: Sequence[str]) -> str:
    return " and ".join(_short(part) for part in parts) or "nothing else"


def _short(text: str, most: int = 120) -> str:
    # The end of a function's description is its fingerprint, which is what differs.
    return text if len(text) <= most else f"{text[: most - 21]}…{text[-20:]}"


def _claims(old: Claim, new: Claim) -> Iterator[Guard]:
    what, names = None, (old.population_name, new.population_name)
    if old.population is not new.population:
        what = f"{old.population} then, {new.population} now"
    elif new.population is PopulationClaim.SUPERPOPULATION and len({*names}) > 1:
        what = f"the population {names[0]!r} then, {names[1]!r} now"
    if what is not None:
        message = (
            f"Baseline and run make claims about different things: {what}. {_MEASURE.capitalize()} "
            "under the new claim, which starts an epoch, or claim what it claims."
        )
        yield _guard("population-claim", HARD, message)
    if old.estimand is not new.estimand:
        message = (
            f"Baseline and run estimate different rates: {old.estimand} then, {new.estimand} now. "
            f"{_MEASURE.capitalize()}, or use its estimand."
        )
        yield _guard("estimand", HARD, message)


def _denominators(baseline: Baseline, analyses: Mapping[str, Analysis]) -> Iterator[Guard]:
    """Hold whose trials count now against whose trials the baseline counts, once for each pair."""
    pairs: dict[tuple[str, Analysis], None] = {}
    for name, now in analyses.items():
        old = baseline.criteria.get(name)
        if old is None or old.excused == 0 or old.analysis == now:
            continue
        # Earlier versions counted all trials and did not say how many were not measured.
        if old.analysis is not None or now is Analysis.PER_PROTOCOL:
            pairs[old.analysis or Analysis.INTENT_TO_TREAT, now] = None
    for then, now in pairs:
        message = (
            f"Not the same trials count: {then} in the baseline, {now} in this run, which are two "
            f"different rates. {_MEASURE.capitalize()} with `analysis: {now}`, or decide by "
            f"`analysis: {then}`."
        )
        yield _guard("denominator-policy", HARD, message)


def _samplings(
    baseline: Baseline, scopes: Mapping[str, CriterionScope], claim: Claim
) -> Iterator[Guard]:
    """One guard a sampling: all its criteria share the inputs."""
    pairs = {
        (scope.sampling, old.sampling_fingerprint, scope.sampling_fingerprint): None
        for name, scope in scopes.items()
        if (old := baseline.criteria.get(name)) is not None
    }
    for sampling, then, now in pairs:
        if then == now:
            continue
        said, severity = f"others than the baseline's ({then} then, {now} now)", MINOR
        if not then or not now:
            which = "the baseline" if not then else "this run"
            said = f"{which} does not record what they were"
        elif claim.population is PopulationClaim.SUPERPOPULATION:
            said += f", taken to represent {claim.population_name} as well as those did"
        else:
            remedy = f"{_MEASURE.capitalize()}, or restore them"
            said, severity = f"{said}, and the claim is about exactly these. {remedy}", HARD
        yield _guard("sampling", severity, f"Inputs of {sampling!r}: {said}.")


def _covariates(
    old: Mapping[str, str], new: Mapping[str, str], declared: Sequence[Covariate]
) -> Iterator[Guard]:
    for name in differing_covariates(old, new):
        severity = covariate_severity(name, declared)
        if name not in old or name not in new:
            # What is not known is no mismatch, unless a match was declared indispensable.
            critical = any(one.name == name and one.critical for one in declared)
            severity = MAJOR if critical else MINOR
        then, now = old.get(name, "not recorded"), new.get(name, "not declared")
        message = (
            f"Covariate {name}: {then} when the baseline was measured, {now} now. The success "
            f"rates may not be comparable; {_MEASURE} under these conditions, or run under those."
        )
        code = "model" if severity is HARD else f"covariate:{name}"
        yield _guard(code, severity, message)


def _factors(
    baseline: Baseline,
    new: Mapping[str, str],
    profile: Mapping[str, str],
    critical: Collection[str] = (),
) -> Iterator[Guard]:
    old = baseline.factors
    said = {name for name, then in baseline.covariates.items() if profile.get(name, then) != then}
    for name in differing_covariates(old, new):
        then, now = old.get(name, "not recorded"), new.get(name, "not recorded")
        is_sealed = are_sealed_apart(then, now)
        known = name in old and name in new and not is_sealed
        # The same change under two names is one doubt, and would otherwise need two overrides.
        if known and name in said:
            continue  # by the covariate of that name
        severity = _rank(name, _HARD_FACTORS, _PLACE | _CONFIGURATION) if known else MINOR
        # Declared as critical it is grave, but never less grave than its category makes it.
        if name in critical:
            severity = min(severity, MAJOR, key=_ORDER)
        advice = _SEALED if is_sealed else _ADVICE[severity]
        message = f"Factor {name}: {then} when the baseline was measured, {now} now. {advice}"
        code = "model" if _word(name) in _MODEL and known else f"factor:{name}"
        yield _guard(code, severity, message)


def _aliases(factors: Mapping[str, str]) -> Iterator[Guard]:
    """Yield a guard for a model that is named by an alias, which may be another model by now."""
    for name, value in factors.items():
        if _word(name) in _MODEL and value.lower().endswith("latest"):
            message = (
                f"Factor {name}: {value} is an alias, which the provider may have moved to another "
                "model since the baseline was measured. Name a dated model, measure a baseline of "
                "it, and say with `validity` how long it holds."
            )
            yield _guard(f"factor:{name}", MINOR, message)


_SEALED = (
    "Nobody can tell whether the value is the same, since it was sealed with two keys: set "
    "TRIALWISE_KEY to the same text on both machines."
)
_ADVICE = {
    HARD: f"These are two services: {_MEASURE} of this one, or test that one.",
    MAJOR: f"The service may not be the one that was measured; {_MEASURE}.",
    MINOR: f"Where it matters, {_MEASURE}.",
}


def _rank(name: str, hard: Collection[str], major: Collection[str]) -> Severity:
    """Return how severe a change of a covariate is; its name tells the category."""
    if _word(name) in hard:
        return HARD
    return MAJOR if _word(name) in major else MINOR


def _guard(code: str, severity: Severity, message: str, criterion: str | None = None) -> Guard:
    return Guard(code=code, severity=severity, message=message, criterion=criterion)


def _word(name: str) -> str:
    return name.casefold().replace("-", "_").replace(" ", "_")


def _age(baseline: Baseline, now: datetime) -> Iterator[Guard]:
    if now < baseline.created_at:
        message = (
            f"Baseline {baseline.identifier} was measured at {_date(baseline.created_at)}, which "
            f"is after this run began ({_date(now)}). Check the clocks."
        )
        yield _guard("future", MINOR, message)
    expires, grace_ends = baseline.expires_at, baseline.grace_ends_at
    if expires is None or grace_ends is None:
        return
    if now >= expires:
        yield _note_expiry(baseline, now, expires, grace_ends)
        return
    left = expires - now
    for share, words in _BANDS:
        if left * share <= expires - baseline.created_at:
            message = (
                f"{words}: {baseline.identifier} is valid until {_date(expires)}, {_days(left)} "
                f"from now. {_MEASURE.capitalize()} before that."
            )
            yield _guard("expiring", MINOR, message)
            return


def _note_expiry(
    baseline: Baseline, now: datetime, expires: datetime, grace_ends: datetime
) -> Guard:
    past = f"BASELINE EXPIRED: {baseline.identifier} was valid until {_date(expires)}"
    advice = f"The service may have changed since; {_MEASURE}."
    # The grace is for the team that measures next week, not for a reference of last year (§8.4.2).
    if now < grace_ends:
        grace = f"its grace ends in {_days(grace_ends - now)}"
        return _guard("expired", MINOR, f"{past}; {grace}. {advice}")
    ago = f"{_days(now - expires)} ago, beyond its grace of {baseline.grace_days:g} days"
    return _guard("expired", MAJOR, f"{past}, {ago}. {advice}")


def _date(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _days(span: timedelta) -> str:
    hours = span / timedelta(hours=1)
    return f"{hours:.0f} h" if hours < 48 else f"{hours / 24:.0f} days"
