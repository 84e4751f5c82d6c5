"""What the core statistics accept, refuse and promise about every value they return."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from collections.abc import Callable, Iterator
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from trialwise import validation
from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.stats.binomial import binomial_cdf, binomial_pmf, binomial_tail
from trialwise.stats.compliance_cutoffs import compliance_cutoff, minimum_trials
from trialwise.stats.rate_intervals import (
    clopper_pearson,
    rule_of_three,
    wald,
    wilson_interval,
    wilson_lower,
    wilson_upper,
)
from trialwise.stats.regression_cutoffs import design_false_alarm, design_power, regression_cutoff
from trialwise.stats.result_types import Interval, Refusal, Undefined
from trialwise.stats.toolbox.binomial_weights import binomial_pmfs
from trialwise.stats.toolbox.other_intervals import jeffreys, wilson_lower_rate
from trialwise.stats.toolbox.precedence_law import precedence_cdf, precedence_rank

NAN, INF = math.nan, math.inf

#: What is never a whole number of trials.
NOT_COUNTS: list[Any] = [-1, 1.0, 2.5, True, False, NAN, INF, "3", None, [1], Decimal(3), 1j]
#: What is never a real number.
NOT_NUMBERS: list[Any] = [NAN, INF, -INF, True, False, None, "many", [0.5], 1j]
NOT_RATES: list[Any] = [*NOT_NUMBERS, -0.01, 1.01, -1e-300, math.nextafter(1, 2)]
NOT_OPEN_RATES: list[Any] = [*NOT_RATES, 0, 1, 0.0, 1.0, -0.0]
NOT_RULES: list[Any] = ["Wilson", "bayes", "", None, 0, ["wilson"]]
NOT_SIDES: list[Any] = ["both", "LOWER", "", None, 1]

COUNT, TRIALS = NOT_COUNTS, [*NOT_COUNTS, 0]

#: Every public function with good arguments, and for each argument what it must refuse.
FUNCTIONS: list[tuple[Callable[..., object], dict[str, Any], dict[str, list[Any]]]] = [
    (binomial_pmf, {"k": 1, "n": 3, "p": 0.5}, {"n": COUNT, "p": NOT_RATES}),
    (binomial_cdf, {"k": 1, "n": 3, "p": 0.5}, {"n": COUNT, "p": NOT_RATES}),
    (binomial_tail, {"k": 1, "n": 3, "p": 0.5}, {"n": COUNT, "p": NOT_RATES}),
    (binomial_pmfs, {"n": 3, "p": 0.5}, {"n": COUNT, "p": NOT_RATES}),
    *(
        (
            method,
            {"successes": 9, "trials": 10, "confidence": 0.95},
            {"successes": [*COUNT, 11], "trials": [*TRIALS, 8], "confidence": NOT_OPEN_RATES},
        )
        for method in (wilson_interval, wilson_lower, wilson_upper, jeffreys, wald)
    ),
    (
        clopper_pearson,
        {"successes": 9, "trials": 10, "confidence": 0.95, "side": "lower"},
        {
            "successes": [*COUNT, 11],
            "trials": TRIALS,
            "confidence": NOT_OPEN_RATES,
            "side": NOT_SIDES,
        },
    ),
    (
        wilson_lower_rate,
        {"rate": 0.9, "trials": 10, "confidence": 0.95},
        {"rate": NOT_RATES, "trials": TRIALS, "confidence": NOT_OPEN_RATES},
    ),
    (rule_of_three, {"trials": 10}, {"trials": TRIALS}),
    (
        compliance_cutoff,
        {"required_rate": 0.9, "trials": 50, "alpha": 0.05, "rule": "exact"},
        {
            "required_rate": NOT_OPEN_RATES,
            "trials": TRIALS,
            "alpha": NOT_OPEN_RATES,
            "rule": NOT_RULES,
        },
    ),
    (
        minimum_trials,
        {"required_rate": 0.9, "alpha": 0.05, "rule": "exact"},
        {"required_rate": NOT_OPEN_RATES, "alpha": NOT_OPEN_RATES, "rule": NOT_RULES},
    ),
    (
        regression_cutoff,
        {
            "baseline_successes": 9,
            "baseline_trials": 10,
            "trials": 5,
            "alpha": 0.05,
            "rule": "exact",
        },
        {
            "baseline_successes": [*COUNT, 11],
            "baseline_trials": TRIALS,
            "trials": TRIALS,
            "alpha": NOT_OPEN_RATES,
            "rule": NOT_RULES,
        },
    ),
    (
        design_false_alarm,
        {"rate": 0.9, "baseline_trials": 10, "trials": 5, "alpha": 0.05, "rule": "exact"},
        {"baseline_trials": TRIALS, "trials": TRIALS, "alpha": NOT_OPEN_RATES, "rule": NOT_RULES},
    ),
    (
        design_power,
        {
            "baseline_rate": 0.9,
            "rate": 0.8,
            "baseline_trials": 10,
            "trials": 5,
            "alpha": 0.05,
            "rule": "exact",
        },
        {
            "baseline_rate": NOT_RATES,
            "rate": NOT_RATES,
            "baseline_trials": TRIALS,
            "trials": TRIALS,
            "alpha": NOT_OPEN_RATES,
            "rule": NOT_RULES,
        },
    ),
    (
        precedence_cdf,
        {"rank": 2, "count": 1, "baseline": 5, "test": 3},
        {"rank": [*TRIALS, 6], "count": [*COUNT, 4], "baseline": TRIALS, "test": TRIALS},
    ),
    (
        precedence_rank,
        {"count": 1, "baseline": 5, "test": 3, "alpha": 0.05},
        {"count": [*COUNT, 4], "baseline": TRIALS, "test": TRIALS, "alpha": NOT_OPEN_RATES},
    ),
    (compliance_cutoff(0.9, 50, rule="wilson").power, {"rate": 0.9}, {"rate": NOT_RATES}),
    (regression_cutoff(9, 10, 5, rule="wilson").power, {"rate": 0.9}, {"rate": NOT_RATES}),
    (
        regression_cutoff(9, 10, 5, rule="wilson").power_at_margin,
        {"margin": 0.1},
        {"margin": NOT_RATES},
    ),
]

BAD_CALLS = [
    pytest.param(
        function, {**good, name: value}, name, value, id=f"{function.__name__}-{name}-{value!r}"
    )
    for function, good, refused in FUNCTIONS
    for name, values in refused.items()
    for value in values
]

#: Results of every kind of design, the degenerate ones included.
RESULTS: list[Callable[[], object]] = [
    lambda: wilson_interval(9, 10),
    lambda: clopper_pearson(0, 10, side="upper"),
    lambda: jeffreys(10, 10),
    lambda: wald(10, 10),
    lambda: compliance_cutoff(0.9, 50, rule="wilson"),
    lambda: compliance_cutoff(0.95, 10, rule="exact"),
    lambda: regression_cutoff(951, 1000, 100, rule="wilson"),
    lambda: regression_cutoff(0, 10, 10, rule="wilson"),
    lambda: regression_cutoff(10, 10, 10, rule="wilson"),
    lambda: regression_cutoff(9, 10, 10, rule="exact"),
    lambda: regression_cutoff(10, 10, 11, rule="exact"),
    lambda: Undefined("no trial was judged"),
    lambda: Refusal.COMPLIANCE_INFEASIBLE,
]


def leaves(value: object) -> Iterator[object]:
    """Every plain value inside a result."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from leaves(getattr(value, field.name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield value


# Refused


@pytest.mark.parametrize(("function", "arguments", "name", "value"), BAD_CALLS)
def test_a_bad_argument_is_named_with_its_value(
    function: Callable[..., object], arguments: dict[str, Any], name: str, value: object
) -> None:
    """InvalidArgument, a ValueError, whose message names the argument and the value."""
    with pytest.raises(InvalidArgument) as caught:
        function(**arguments)
    error = caught.value

    assert isinstance(error, ValueError)
    assert isinstance(error, TrialwiseError)
    if name == "trials" and value == 8:
        # Nine successes do not fit into eight trials: the successes are named, with the limit.
        assert error.argument == "successes"
        assert "trials (8)" in str(error)
    else:
        assert error.argument == name
        assert str(error) == f"{name} must {error.allowed}, got {value!r}"


@pytest.mark.parametrize("rule", ["wilson", "exact"])
@pytest.mark.parametrize("function", [compliance_cutoff, minimum_trials])
def test_a_required_rate_of_one_is_refused_with_advice(
    function: Callable[..., object], rule: str
) -> None:
    """No finite run shows a rate of 1; the message says what to do instead (companion §1.4.5)."""
    arguments = {"required_rate": 1.0, "rule": rule}
    if function is compliance_cutoff:
        arguments["trials"] = 1000

    with pytest.raises(InvalidArgument, match=r"required_rate must lie strictly .*observe.*1\.0"):
        function(**arguments)


def test_design_false_alarm_names_the_rate_the_caller_wrote() -> None:
    """It delegates to design_power, whose first parameter has another name."""
    for value in NOT_RATES:
        with pytest.raises(InvalidArgument) as caught:
            design_false_alarm(value, 10, 5, rule="wilson")
        assert caught.value.value is value
        assert caught.value.argument in {"rate", "baseline_rate"}


def test_design_false_alarm_calls_its_rate_rate() -> None:
    """The parameter's name, as the caller wrote it."""
    with pytest.raises(InvalidArgument, match=r"^rate must"):
        design_false_alarm(1.5, 10, 5, rule="wilson")


@pytest.mark.parametrize("function", [binomial_pmf, binomial_cdf, binomial_tail])
@pytest.mark.parametrize("value", [1.5, NAN, True, "1", None])
def test_a_count_that_is_none_is_refused(function: Callable[..., float], value: Any) -> None:
    """k may lie outside 0 … n, but it is a whole number."""
    with pytest.raises(InvalidArgument, match=r"^k must"):
        function(value, 3, 0.5)


@pytest.mark.parametrize("value", ["0.5", b"0.5", " 5e-1 "])
def test_text_is_not_a_number(value: Any) -> None:
    """A number in quotes is refused, not read."""
    for call in (
        lambda: wilson_interval(9, 10, confidence=value),
        lambda: compliance_cutoff(value, 10, rule="wilson"),
        lambda: binomial_pmf(1, 2, value),
        lambda: minimum_trials(0.9, alpha=value, rule="wilson"),
    ):
        with pytest.raises(InvalidArgument):
            call()


@pytest.mark.parametrize("value", [10**400, -(10**400), Fraction(10**400)], ids="+-/")
def test_a_number_beyond_every_float_is_refused(value: Any) -> None:
    """As any other number outside the range."""
    with pytest.raises(InvalidArgument):
        wilson_lower(9, 10, confidence=value)


def test_several_bad_arguments_still_give_one_clear_refusal() -> None:
    """The first one found is named."""
    with pytest.raises(InvalidArgument, match=r"^(baseline_trials|baseline_successes) must"):
        regression_cutoff(-1, 0, -5, alpha=2, rule="wilson")


# The checks themselves


def test_a_count_is_anything_that_is_an_index() -> None:
    """numpy integers and integer enumerations are whole numbers and come out builtin."""

    class Size(IntEnum):
        small = 5

    for value in (5, np.int64(5), np.uint8(5), Size.small):
        count = validation.require_count("trials", value)
        assert count == 5
    assert type(validation.require_count("trials", np.int32(3))) is int


@pytest.mark.parametrize(
    "value", [0.5, np.float64(0.5), np.float32(0.5), Fraction(1, 2), Decimal("0.5")]
)
def test_a_real_is_anything_with_a_float(value: Any) -> None:
    """It comes out as a builtin float."""
    for check in (
        validation.require_real,
        validation.require_rate,
        validation.require_open_rate,
        validation.require_positive,
    ):
        assert check("rate", value) == 0.5
        assert type(check("rate", value)) is float


def test_the_ends_that_each_check_lets_through() -> None:
    """0 and 1 are rates but not open ones; 0 is real but not positive."""
    assert [validation.require_rate("p", end) for end in (0, 1)] == [0, 1]
    assert validation.require_open_rate("alpha", 5e-324) == 5e-324
    assert validation.require_open_rate("alpha", math.nextafter(1, 0)) < 1
    assert validation.require_real("x", -1e308) == -1e308
    assert validation.require_positive("x", 5e-324) > 0
    assert validation.require_successes(0, 1) == (0, 1)
    assert validation.require_successes(1, 1) == (1, 1)
    assert validation.require_count("n", 0) == 0
    for value in (0, -1.0, INF, NAN):
        with pytest.raises(InvalidArgument, match=r"^x must be a finite number above 0, got"):
            validation.require_positive("x", value)
    for value in (INF, -INF, NAN):
        with pytest.raises(InvalidArgument, match=r"^x must be a finite number, got"):
            validation.require_real("x", value)


def test_a_choice_lists_what_is_allowed() -> None:
    """The message of an unknown rule shows the known ones."""
    assert validation.require_choice("rule", "exact", ("wilson", "exact")) == "exact"
    with pytest.raises(InvalidArgument, match="rule must be one of 'wilson', 'exact', got 'wald'"):
        validation.require_choice("rule", "wald", ("wilson", "exact"))


# Promised


@pytest.mark.parametrize(("function", "good", "_refused"), FUNCTIONS)
def test_good_arguments_give_numbers_of_the_builtin_kind(
    function: Callable[..., object], good: dict[str, Any], _refused: object
) -> None:
    """Nothing is NaN, infinite or a foreign number type."""
    for value in leaves(function(**good)):
        assert value is None or type(value) in {int, float, str, Refusal}
        assert not isinstance(value, float) or math.isfinite(value)


@pytest.mark.parametrize("rule", ["wilson", "exact"])
def test_no_design_contains_a_nan(rule: Any) -> None:
    """Small designs of every shape, degenerate baselines and extreme levels included."""
    for alpha in (1e-9, 0.05, 0.5):
        for nb in (1, 2, 5, 20):
            for k in range(nb + 1):
                for n in (1, 2, 9, 20, 21):
                    design = regression_cutoff(k, nb, n, alpha=alpha, rule=rule)
                    assert all(value == value for value in leaves(design))  # noqa: PLR0124
        for rate in (1e-9, 0.5, 0.999, 1 - 1e-6):
            for n in (1, 2, 60, 5000):
                design_ = compliance_cutoff(rate, n, alpha=alpha, rule=rule)
                assert all(value == value for value in leaves(design_))  # noqa: PLR0124


def test_an_interval_states_its_confidence_as_a_float() -> None:
    """Whatever number type the caller used."""
    for method in (wilson_interval, clopper_pearson, jeffreys, wald):
        assert type(method(9, 10, confidence=np.float64(0.9)).confidence) is float


@pytest.mark.parametrize("make", RESULTS)
def test_a_result_is_a_value(make: Callable[[], object]) -> None:
    """Equal when recomputed, hashable, and unchanged by a copy or a trip through pickle."""
    first, second = make(), make()

    assert first == second
    assert hash(first) == hash(second)
    assert repr(first) == repr(second)
    assert copy.deepcopy(first) == first
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(first, protocol))
        assert again == first
        assert repr(again) == repr(first)


@pytest.mark.parametrize("make", RESULTS[:-1])
def test_a_result_is_frozen(make: Callable[[], object]) -> None:
    """No field can be changed, and none added."""
    result: Any = make()
    for field in dataclasses.fields(result):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(result, field.name, 0)
    with pytest.raises((AttributeError, TypeError)):
        result.comment = "better"


def test_a_design_keeps_its_inputs() -> None:
    """A result explains itself."""
    regression = regression_cutoff(9, 10, 5, alpha=0.1, rule="exact")
    compliance = compliance_cutoff(0.9, 50, alpha=0.1, rule="wilson")

    assert (regression.baseline_successes, regression.baseline_trials) == (9, 10)
    assert (regression.trials, regression.alpha, regression.rule) == (5, 0.1, "exact")
    assert (compliance.required_rate, compliance.trials) == (0.9, 50)
    assert (compliance.alpha, compliance.rule) == (0.1, "wilson")


def test_undefined_is_false_and_says_why() -> None:
    """It never passes for a number."""
    undefined: object = Undefined("a correlation needs two groups")

    assert not undefined
    assert undefined != 0
    assert "two groups" in repr(undefined)
    assert (undefined or 0.5) == 0.5


@pytest.mark.parametrize("value", [0, 1.5, "text", None, (1, 2), NAN])
def test_an_invalid_argument_survives_pickling(value: object) -> None:
    """Message and parts come back, so that a worker process can raise it."""
    error = InvalidArgument("trials", value, "be at least 1")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(error, protocol))
        assert type(again) is InvalidArgument
        assert str(again) == str(error) == f"trials must be at least 1, got {value!r}"
        assert (again.argument, again.allowed) == ("trials", "be at least 1")
        assert repr(again.value) == repr(value)
    assert str(copy.copy(error)) == str(error)


def test_a_raised_refusal_survives_pickling() -> None:
    """The one a function raises, not only one built by hand."""
    with pytest.raises(InvalidArgument) as caught:
        wilson_lower(11, 10)
    again = pickle.loads(pickle.dumps(caught.value))

    assert str(again) == "successes must be at most trials (10), got 11"
    assert (again.argument, again.value) == ("successes", 11)


def test_refusals_are_their_own_names() -> None:
    """Each code is the text that reports and reference cases use."""
    for refusal in Refusal:
        assert refusal == refusal.name
        assert f"{refusal}" == refusal.value


def test_an_interval_of_a_pair() -> None:
    """Positional ends, keyword-only provenance."""
    interval = Interval(0.1, 0.2, confidence=0.9, method="wilson")

    assert list(interval) == [0.1, 0.2]
    assert interval == Interval(0.1, 0.2)
    with pytest.raises(TypeError):
        Interval(0.1, 0.2, 0.9)  # type: ignore[call-arg]
