"""Choosing a baseline: the newest of the run's own index, else the nearest, else an error."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import BaselineError, InvalidArgument
from trialwise.model.baseline import Baseline, Covariate, CriterionBaseline
from trialwise.model.evidence import Severity
from trialwise.procedures.selection import reference_of, select_baseline

CREATED = datetime(2026, 5, 15, 9, 0, tzinfo=UTC)
EU = {"region": "EU", "day": "WEEKDAY"}


def baseline(identifier: str, days: float = 0.0, **given: Any) -> Baseline:
    one = CriterionBaseline(trials=1000, passed=953, structure="5f3a")
    defaults: dict[str, Any] = {
        "identifier": identifier,
        "contract": "advice",
        "created_at": CREATED + timedelta(days=days),
        "criteria": {"well-formed": one},
        "covariates": EU,
    }
    return Baseline(**defaults | given)


def test_the_newest_of_the_runs_index_is_taken() -> None:
    """An older one of the same index and a newer one of another do not win."""
    candidates = [
        baseline("old"),
        baseline("new", 1),
        baseline("elsewhere", 2, covariates=EU | {"region": "US"}),
        baseline("other contract", 3, contract="search"),
    ]
    selected = select_baseline(candidates, contract="advice", profile=EU)

    assert "new" == selected.baseline.identifier


def test_several_that_fit_are_a_minor_warning() -> None:
    """It says which was taken, and which was not (§8.4.4)."""
    candidates = [baseline("old", epoch=2), baseline("new", 1, epoch=2)]
    (warning,) = select_baseline(candidates, contract="advice", profile=EU).warnings

    assert ("several-baselines", Severity.MINOR) == (warning.code, warning.severity)
    assert "new (epoch 2, 2026-05-16), was taken, not old (epoch 2, 2026-05-15)" in warning.message


def test_a_refreshed_baseline_supersedes_the_older_epochs_of_its_index() -> None:
    """Measuring anew is the ordinary way: nothing to warn of (§8.5)."""
    candidates = [baseline("old"), baseline("new", 1, epoch=2)]
    selected = select_baseline(candidates, contract="advice", profile=EU)

    assert ("new", ()) == (selected.baseline.identifier, selected.warnings)


def test_one_that_fits_is_no_warning() -> None:
    """Whatever else there is under another index."""
    candidates = [baseline("eu"), baseline("us", covariates=EU | {"region": "US"})]

    assert () == select_baseline(candidates, contract="advice", profile=EU).warnings


def test_profiles_must_be_equal_to_match() -> None:
    """A covariate that one side does not know is a difference."""
    bare = baseline("bare", 9, covariates={"region": "EU"})
    more = baseline("more", 9, covariates=EU | {"tier": "gold"})
    selected = select_baseline([bare, baseline("fits"), more], contract="advice", profile=EU)
    assert "fits" == selected.baseline.identifier


def test_the_nearest_is_taken_where_none_matches() -> None:
    """Fewest differences first, then the newest."""
    profile = {"a": "1", "b": "1", "c": "1"}
    candidates = [
        baseline("two differ", 5, covariates={"a": "2", "b": "2", "c": "1"}),
        baseline("one differs", 1, covariates={"a": "1", "b": "2", "c": "1"}),
        baseline("one differs, newer", 2, covariates={"a": "2", "b": "1", "c": "1"}),
    ]
    selected = select_baseline(candidates, contract="advice", profile=profile)

    assert "one differs, newer" == selected.baseline.identifier


def test_critical_covariates_weigh_more_than_any_number_of_others() -> None:
    """A baseline of the right tier on another day before one of another tier."""
    covariates = [
        Covariate(name="tier", value="gold", critical=True),
        Covariate(name="a", value="1"),
        Covariate(name="b", value="1"),
    ]
    profile = {"tier": "gold", "a": "1", "b": "1"}
    candidates = [
        baseline("other tier", 9, covariates=profile | {"tier": "silver"}),
        baseline("right tier", 1, covariates={"tier": "gold", "a": "2", "b": "2"}),
    ]
    chosen = select_baseline(
        candidates, contract="advice", profile=profile, covariates=covariates
    ).baseline
    assert "right tier" == chosen.identifier

    plain = select_baseline(candidates, contract="advice", profile=profile).baseline
    assert "other tier" == plain.identifier


def test_an_identifier_is_taken_whatever_its_index() -> None:
    """The one that fits best is passed over."""
    candidates = [baseline("fits"), baseline("us", covariates=EU | {"region": "US"})]
    selected = select_baseline(candidates, contract="advice", profile=EU, identifier="us")

    assert ("us", ()) == (selected.baseline.identifier, selected.warnings)


def test_an_identifier_that_is_not_there_is_an_error_that_lists_what_is() -> None:
    """And says whose it is, where it is another contract's."""
    candidates = [baseline("fits"), baseline("other", contract="search")]

    with pytest.raises(BaselineError, match=r"no baseline 'gone'.*There are fits \(epoch 1"):
        select_baseline(candidates, contract="advice", profile=EU, identifier="gone")
    with pytest.raises(BaselineError, match=r"'other'.*It is one of 'search'"):
        select_baseline(candidates, contract="advice", profile=EU, identifier="other")


def test_no_baseline_is_an_error_that_says_to_measure() -> None:
    """The contract is named, and what there is instead."""
    with pytest.raises(
        BaselineError, match=r"'advice'. There is none. Measure .*trialwise measure"
    ):
        select_baseline([], contract="advice", profile=EU)
    others = [baseline("x", contract=f"c{k:02d}") for k in range(20)]
    with pytest.raises(BaselineError, match=r"'c00', 'c01', .* and 12 more"):
        select_baseline(others, contract="advice", profile=EU)


candidates_of = st.lists(
    st.builds(
        baseline,
        st.text("abc", min_size=1, max_size=3),
        st.integers(0, 3),
        covariates=st.dictionaries(st.sampled_from("xyz"), st.sampled_from("12")),
        epoch=st.integers(1, 2),
    ),
    min_size=1,
    unique_by=lambda one: one.identifier,
)


@given(candidates_of, st.dictionaries(st.sampled_from("xyz"), st.sampled_from("12")), st.randoms())
def test_the_choice_is_the_least_different_and_does_not_depend_on_order(
    candidates: list[Baseline], profile: dict[str, str], chance: random.Random
) -> None:
    """Shuffled, the same; and nothing differs less, or as little and is newer."""
    selected = select_baseline(candidates, contract="advice", profile=profile)
    shuffled = chance.sample(candidates, len(candidates))
    assert selected == select_baseline(shuffled, contract="advice", profile=profile)

    def differences(one: Baseline) -> int:
        names = {*one.covariates, *profile}
        return sum(one.covariates.get(name) != profile.get(name) for name in names)

    fewest = min(map(differences, candidates))
    nearest = [one for one in candidates if differences(one) == fewest]
    assert differences(selected.baseline) == fewest
    latest: dict[str, int] = {}
    for one in nearest:
        index = repr(sorted(one.covariates.items()))
        latest[index] = max(one.epoch, latest.get(index, 0))
    in_force = [one for one in nearest if one.epoch == latest[repr(sorted(one.covariates.items()))]]
    assert max(one.created_at for one in in_force) == selected.baseline.created_at
    assert (len(in_force) > 1) == bool(selected.warnings)


def test_a_reference_keeps_what_an_auditor_needs() -> None:
    """Identifier, counts, conditions, expiration and epoch (§8.4.3)."""
    one = baseline("advice-1", valid_days=90, epoch=3, factors={"model": "m-1"})
    reference = reference_of(one, "well-formed", EU, file="baselines/advice/advice-1.json")

    assert ("advice-1", "baselines/advice/advice-1.json", 3) == (
        reference.identifier,
        reference.file,
        reference.epoch,
    )
    assert (1000, 953, 0.953) == (reference.trials, reference.passed, reference.rate)
    assert (CREATED, CREATED + timedelta(days=90)) == (reference.created_at, reference.expires_at)
    assert ("OK", {"model": "m-1"}) == (reference.covariate_match, reference.factors)


def test_a_reference_carries_the_divergence() -> None:
    """Any inference under another index says so (§1.5.3)."""
    reference = reference_of(baseline("advice-1"), "well-formed", {"region": "US", "tier": "gold"})

    assert (
        "day: WEEKDAY then, not declared now; region: EU then, US now; "
        "tier: not recorded then, gold now" == reference.covariate_match
    )


def test_a_criterion_that_the_baseline_does_not_hold_has_no_reference() -> None:
    """It is never made up."""
    with pytest.raises(InvalidArgument, match="'well-formed'"):
        reference_of(baseline("advice-1"), "grounded", EU)
