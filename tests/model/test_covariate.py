"""Covariates: concrete values by the clock of a named zone, at every edge of a day."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.model.baseline import (
    Covariate,
    CovariateKind,
    differing_covariates,
    resolve_covariates,
)

ZURICH = ZoneInfo("Europe/Zurich")


def resolved(now: datetime, **given: Any) -> str:
    return resolve_covariates([Covariate(name="one", **given)], now, {})["one"]


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("2026-01-09T23:59:59.999999", "WEEKDAY"),  # Friday
        ("2026-01-10T00:00:00", "WEEKEND"),
        ("2026-01-11T23:59:59", "WEEKEND"),
        ("2026-01-12T00:00:00", "WEEKDAY"),
    ],
)
def test_the_weekend_begins_and_ends_at_midnight(moment: str, expected: str) -> None:
    """Saturday and Sunday, to the microsecond."""
    assert expected == resolved(datetime.fromisoformat(f"{moment}+00:00"), kind="weekday")


@given(st.dates(min_value=date(1990, 1, 1), max_value=date(2100, 1, 1)))
def test_five_days_of_seven_are_weekdays(day: date) -> None:
    """Any seven days in a row, whatever day they begin with."""
    start = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    week = [resolved(start + timedelta(days=k), kind="weekday") for k in range(7)]

    assert {"WEEKDAY": 5, "WEEKEND": 2} == {kind: week.count(kind) for kind in sorted(set(week))}


@pytest.mark.parametrize(
    ("time", "hours", "expected"),
    [
        ("00:00", 4, "00:00/4h"),
        ("03:59:59.999999", 4, "00:00/4h"),
        ("04:00", 4, "04:00/4h"),
        ("23:59", 4, "20:00/4h"),
        ("09:30", 24, "00:00/24h"),
        ("09:30", 1, "09:00/1h"),
        ("12:00", 12, "12:00/12h"),
    ],
)
def test_a_time_of_day_is_the_window_it_lies_in(time: str, hours: int, expected: str) -> None:
    """The beginning belongs to the window and the end does not."""
    now = datetime.fromisoformat(f"2026-01-10T{time}+00:00")

    assert expected == resolved(now, kind="time-of-day", window_hours=hours)


def test_the_clock_is_read_in_the_runs_own_zone() -> None:
    """The same instant is another time of day elsewhere, and another day."""
    now = datetime(2026, 1, 9, 23, 30, tzinfo=UTC)  # Friday
    east = now.astimezone(timezone(timedelta(hours=9)))

    assert ("20:00/4h", "WEEKDAY") == (
        resolved(now, kind="time-of-day"),
        resolved(now, kind="weekday"),
    )
    assert ("08:00/4h", "WEEKEND") == (
        resolved(east, kind="time-of-day"),
        resolved(east, kind="weekday"),
    )


def test_a_declared_zone_makes_machines_agree() -> None:
    """Wherever the clock stands, the value is that of the zone, and says so."""
    now = datetime(2026, 1, 9, 23, 30, tzinfo=UTC)
    zones = [now, now.astimezone(ZURICH), now.astimezone(timezone(timedelta(hours=-8)))]
    times = {resolved(one, kind="time-of-day", zone="Europe/Zurich") for one in zones}
    days = {resolved(one, kind="weekday", zone="Europe/Zurich") for one in zones}

    assert {"00:00/4h Europe/Zurich"} == times  # half past midnight in Zurich
    assert {"WEEKEND Europe/Zurich"} == days


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        ("2026-03-29T00:59:59+00:00", "01:00/1h"),  # the last second of winter time
        ("2026-03-29T01:00:00+00:00", "03:00/1h"),  # there is no 02:00
        ("2026-10-25T00:30:00+00:00", "02:00/1h"),  # 02:30 for the first time
        ("2026-10-25T01:30:00+00:00", "02:00/1h"),  # 02:30 for the second time
        ("2026-10-25T02:00:00+00:00", "03:00/1h"),
        ("2026-03-28T23:00:00+00:00", "00:00/1h"),  # midnight of the short day
        ("2026-10-25T22:59:59+00:00", "23:00/1h"),  # the last second of the long day
    ],
)
def test_windows_follow_the_wall_clock_over_a_change_of_time(instant: str, expected: str) -> None:
    """Twice the same hour is twice the same window, and a missing hour is nobody's."""
    now = datetime.fromisoformat(instant)

    assert f"{expected} Europe/Zurich" == resolved(
        now, kind="time-of-day", window_hours=1, zone="Europe/Zurich"
    )
    assert expected == resolved(now.astimezone(ZURICH), kind="time-of-day", window_hours=1)


def test_values_are_given_or_read_from_the_environment() -> None:
    """A region and a custom covariate have one source each."""
    covariates = [
        Covariate(name="region", kind="region", value="EU"),
        Covariate(name="tier", environment="TIER"),
    ]
    now = datetime(2026, 1, 10, tzinfo=UTC)

    assert {"region": "EU", "tier": "gold"} == resolve_covariates(covariates, now, {"TIER": "gold"})


@pytest.mark.parametrize("environment", [{}, {"TIER": ""}, {"TIER": "  "}])
def test_an_environment_variable_that_is_not_set_is_an_error(environment: dict[str, str]) -> None:
    """An unknown condition is not a condition; the variable and the covariate are named."""
    covariate = Covariate(name="tier", environment="TIER")

    with pytest.raises(InvalidArgument, match="TIER must be set: the covariate 'tier'"):
        resolve_covariates([covariate], datetime(2026, 1, 10, tzinfo=UTC), environment)


def test_a_clock_without_a_zone_is_an_error() -> None:
    """An hour of nowhere is not an hour."""
    with pytest.raises(InvalidArgument, match="name its time zone"):
        resolve_covariates([], datetime(2026, 1, 10), {})


def test_a_name_is_declared_once() -> None:
    """Two values under one name would hide one."""
    twice = [Covariate(name="a", value="1"), Covariate(name="a", value="2")]

    with pytest.raises(InvalidArgument, match="declared once"):
        resolve_covariates(twice, datetime(2026, 1, 10, tzinfo=UTC), {})


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"name": ""}, "name"),
        ({"kind": "moon"}, "kind"),
        ({}, "value"),
        ({"value": "a", "environment": "A"}, "value"),
        ({"value": ""}, "value"),
        ({"kind": "weekday", "value": "MONDAY"}, "value"),
        ({"kind": "weekday", "environment": "DAY"}, "value"),
        ({"kind": "time-of-day", "window_hours": 5}, "window_hours"),
        ({"kind": "time-of-day", "window_hours": 0}, "window_hours"),
        ({"kind": "time-of-day", "window_hours": 48}, "window_hours"),
        ({"kind": "time-of-day", "zone": "Europe/Nowhere"}, "zone"),
        ({"kind": "time-of-day", "zone": "../../etc/passwd"}, "zone"),
        ({"kind": "weekday", "zone": ""}, "zone"),
        ({"kind": "region", "value": "EU", "zone": "UTC"}, "zone"),
    ],
)
def test_a_covariate_cannot_be_built_wrong(given: dict[str, Any], argument: str) -> None:
    """Each mistake is named by its argument."""
    with pytest.raises(InvalidArgument) as caught:
        Covariate(**{"name": "one"} | given)

    assert argument == caught.value.argument


def test_a_kind_may_be_spelled() -> None:
    """Suite files write texts."""
    assert Covariate(name="day", kind="weekday").kind is CovariateKind.WEEKDAY


profiles = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"))


@given(profiles, profiles)
def test_profiles_differ_by_nothing_exactly_when_they_are_equal(
    ours: dict[str, str], theirs: dict[str, str]
) -> None:
    """It is symmetric, and what only one side knows differs."""
    differing = differing_covariates(ours, theirs)

    assert (ours == theirs) == (differing == ())
    assert differing == differing_covariates(theirs, ours)
    assert set(ours) ^ set(theirs) <= set(differing)
