"""The stability sub-scores against the document's examples, its readings, and hostile traces."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import permutations
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.stats.toolbox.stability_across_runs import agent_stability, agent_stability_across
from trialwise.stats.trace_stability import (
    DEFAULT_GATE,
    DEFAULT_MINIMUM,
    StabilityFloors,
    StabilityGate,
    StabilityReport,
    drift_flags,
)

NAMES = ("tool_usage_stability", "response_consistency", "redundancy", "cost_per_progress")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=15,
)


def call(name: object = "search", server: object = "docs", args: object = None) -> dict[str, Any]:
    return {"name": name, "server": server, "args": {"q": "a"} if args is None else args}


def trace(
    calls: object = (), lengths: tuple[int, ...] = (), tokens: object = 0
) -> dict[str, object]:
    return {
        "tool_calls": calls,
        "conversation": {
            "tokens": {"total": tokens},
            "turns": [{"role": "assistant", "content": "x" * length} for length in lengths],
        },
    }


def report(*scores: float) -> StabilityReport:
    values: dict[str, Any] = dict(zip(NAMES, scores, strict=True))
    return StabilityReport(**values)


def scores(result: StabilityReport) -> list[float]:
    return [getattr(result, name) for name in NAMES]


def shuffled(value: object, chance: random.Random) -> object:
    """The same JSON value with the keys of every object in another order."""
    if isinstance(value, dict):
        items = [(key, shuffled(member, chance)) for key, member in value.items()]
        chance.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        return [shuffled(member, chance) for member in value]
    return value


def distinct(*args: object) -> int:
    shape = agent_stability(trace([call(args=each) for each in args])).shape
    assert shape is not None
    return shape.distinct_calls


# The guard


@pytest.mark.parametrize(
    "envelope",
    [
        {},
        trace(),
        trace([call()], (3,), 3000),
        trace([], (50,), 10_000),
        {"conversation": {"tokens": {"total": 9000}, "turns": [{"role": "user"}] * 9}},
    ],
)
def test_a_trace_without_progression_is_trivially_stable(envelope: dict[str, object]) -> None:
    """Empty or one-turn traces score 1 everywhere, the document's own sample included."""
    assert scores(agent_stability(envelope)) == [1.0] * 4


def test_missing_turns_do_not_wave_a_loop_through() -> None:
    """Ten repeats in a trace without turns are still a loop."""
    result = agent_stability({"tool_calls": [call()] * 10})

    assert result.redundancy == 0.1
    assert result.weakest_score == 0.1


# The four sub-scores


@pytest.mark.parametrize(
    ("tools", "expected"), [("aaaaa", 1.0), ("abcab", 0.5), ("abcde", 0.0), ("ab", 0.0), ("a", 1.0)]
)
def test_tool_usage_falls_with_every_fresh_tool(tools: str, expected: float) -> None:
    """5 calls to 1, 3 and 5 tools; 2 calls to 2 tools score 0 however healthy."""
    envelope = trace([call(name) for name in tools], (9, 9))

    assert agent_stability(envelope).tool_usage_stability == expected


def test_the_same_name_on_two_servers_is_two_tools() -> None:
    """A tool is a name on a server."""
    result = agent_stability(trace([call(server="a"), call(server="b"), call(server="b")]))

    assert result.tool_usage_stability == 0.5


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ((100, 300), 0.5),
        ((100, 200), 0.667),
        ((50, 150, 400), 0.264),
        ((7, 7, 7), 1.0),
        ((0, 0), 1.0),
        ((0, 0, 0, 0, 9), 0.0),
    ],
)
def test_consistency_uses_the_population_deviation(
    lengths: tuple[int, ...], expected: float
) -> None:
    """The readings' values; the sample deviation would put 100 and 300 below the floor."""
    assert round(agent_stability(trace(lengths=lengths)).response_consistency, 3) == expected


@given(lengths=st.lists(st.integers(0, 500), min_size=2, max_size=12))
def test_consistency_agrees_with_numpy_in_any_order(lengths: list[int]) -> None:
    """1 − min(1, std/mean) with ddof 0."""
    result = agent_stability(trace(lengths=tuple(lengths))).response_consistency
    cv = float(np.std(lengths) / np.mean(lengths)) if any(lengths) else 0.0

    assert result == pytest.approx(1 - min(1.0, cv), abs=1e-12)
    assert result == agent_stability(trace(lengths=tuple(reversed(lengths)))).response_consistency


def test_lengths_are_code_points_of_assistant_turns_only() -> None:
    """Four emoji are as long as four letters, and nobody else's turns count."""
    turns = [
        {"role": "assistant", "content": "🙂🙂🙂🙂"},
        {"role": "user", "content": "x" * 1000},
        {"role": "assistant", "content": "four"},
    ]
    result = agent_stability({"conversation": {"turns": turns}})

    assert result.shape is not None
    assert result.shape.assistant_lengths == (4, 4)
    assert result.response_consistency == 1.0


@pytest.mark.parametrize(("distinct_calls", "expected"), [(1, 0.25), (2, 0.5), (4, 1.0)])
def test_redundancy_is_the_share_of_distinct_calls(distinct_calls: int, expected: float) -> None:
    """Four identical calls score a quarter."""
    calls = [call(args={"q": place % distinct_calls}) for place in range(4)]

    assert agent_stability(trace(calls)).redundancy == expected


@pytest.mark.parametrize(
    ("calls", "tokens", "expected"),
    [
        ([call()], 3000, 2 / 3),
        ([call(args={"q": 1}), call(args={"q": 2})], 3000, 1.0),
        ([call(args={"q": 1}), call(args={"q": 2})], 10_000, 0.4),
        ([call()] * 5, 10_000, 0.2),
        ([], 1, 0.0),
        ([], 0, 1.0),
        ([call()], 2000, 1.0),
    ],
)
def test_cost_counts_tokens_per_distinct_call(
    calls: list[object], tokens: int, expected: float
) -> None:
    """With two turns, so that the guard does not apply; a repeat is no progress."""
    result = agent_stability(trace(calls, (9, 9), tokens))

    assert result.cost_per_progress == pytest.approx(expected, rel=1e-15)


def test_the_token_anchor_is_a_parameter() -> None:
    """Doubling the anchor doubles a score below 1; it must be a positive number."""
    envelope = trace([call()], (9, 9), 8000)

    assert agent_stability(envelope).cost_per_progress == 0.25
    assert agent_stability(envelope, tokens_per_call=4000).cost_per_progress == 0.5
    for anchor in (0, -1, math.nan, math.inf):
        with pytest.raises(InvalidArgument, match="tokens_per_call must"):
            agent_stability(envelope, tokens_per_call=anchor)


def test_order_of_calls_does_not_matter() -> None:
    """Every order of the same calls has the same report."""
    calls = [call("a"), call("b", args={"q": 1}), call("a", args={"q": 2}), call("a")]

    assert len({agent_stability(trace(order, (1, 2), 900)) for order in permutations(calls)}) == 1


# Canonical arguments


@pytest.mark.slow
@given(args=st.dictionaries(st.text(max_size=3), JSON), seed=st.integers())
def test_shuffled_keys_are_the_same_call(args: dict[str, object], seed: int) -> None:
    """At every depth, and after a round trip through JSON text."""
    other = shuffled(args, random.Random(seed))

    assert distinct(args, other, json.loads(json.dumps(other))) == 1


@given(left=JSON, right=JSON)
def test_two_calls_are_the_same_exactly_when_their_json_is(left: object, right: object) -> None:
    """Against the standard library's sorted JSON, with whole floats written as integers."""

    def spelled(value: object) -> object:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, list):
            return [spelled(member) for member in value]
        if isinstance(value, dict):
            return {key: spelled(member) for key, member in value.items()}
        return value

    def text(value: object) -> str:
        return json.dumps(spelled(value), sort_keys=True)

    assert distinct([left], [right]) == (1 if text([left]) == text([right]) else 2)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ({"n": 1}, {"n": 1.0}, 1),
        ({"n": 0}, {"n": -0.0}, 1),
        ({"n": 1}, {"n": True}, 2),
        ({"n": 0}, {"n": False}, 2),
        ({"n": 1}, {"n": "1"}, 2),
        ({"n": None}, {}, 2),
        ({"n": None}, {"n": "None"}, 2),
        ({"n": [1, 2]}, {"n": [2, 1]}, 2),
        ({"n": [[1], 2]}, {"n": [[1, 2]]}, 2),
        ({"n": ["a", "b"]}, {"n": ["ab"]}, 2),
        ({"a": "b;1"}, {"a;": "b1"}, 2),
        ({"n": 2**53}, {"n": 2**53 + 1}, 2),
        ({"n": math.nan}, {"n": math.nan}, 1),
        ({"n": math.inf}, {"n": -math.inf}, 2),
        ([1], {"0": 1}, 2),
        ((1, 2), [1, 2], 1),
    ],
)
def test_what_is_equal_and_what_is_not(left: object, right: object, expected: int) -> None:
    """1 is 1.0 but not true; lists keep their order; no two spellings run together."""
    assert distinct(left, right) == expected


def test_missing_arguments_are_empty_ones() -> None:
    """No `args`, a null and an empty object are one call; server and name tell calls apart."""
    calls = [
        {"name": "a", "server": "s"},
        {"name": "a", "server": "s", "args": None},
        {"args": {}, "server": "s", "name": "a"},
        {"name": "a", "server": None, "args": {}},
        {"name": "a"},
        {"name": "b"},
    ]
    shape = agent_stability({"tool_calls": calls}).shape

    assert shape is not None
    assert (shape.total_calls, shape.distinct_calls, shape.distinct_tools) == (6, 3, 3)


def test_values_outside_json_are_told_apart_by_their_text() -> None:
    """Equal fractions are the same call; objects without a text of their own are by class."""
    assert distinct({"x": Fraction(1, 2)}, {"x": Fraction(2, 4)}, {"x": Fraction(1, 3)}) == 2
    assert distinct({"x": object()}, {"x": object()}) == 1


# Hostile traces


class Hostile:
    """An object on which everything fails."""

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __repr__(self) -> str:
        raise RuntimeError("repr")

    def __len__(self) -> int:
        raise RuntimeError("len")

    def __bool__(self) -> bool:
        raise RuntimeError("bool")


class HostileMapping(Mapping[str, object]):
    """A mapping that promises keys and then fails."""

    def __getitem__(self, key: str) -> object:
        raise RuntimeError("getitem")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("iter")

    def __len__(self) -> int:
        raise RuntimeError("len")


class HostileList(list[object]):
    """A list that cannot be walked."""

    def __iter__(self) -> Iterator[object]:
        raise RuntimeError("iter")


class HostileText(str):
    """A text that cannot be compared or measured."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __len__(self) -> int:
        raise RuntimeError("len")


def endless() -> list[object]:
    members: list[object] = []
    members += [members, {"again": members}] * 3
    return members


def deep() -> list[object]:
    nested: list[object] = []
    for _ in range(50_000):
        nested = [nested]
    return nested


WEIRD: list[object] = [
    None,
    True,
    7,
    -3.5,
    math.nan,
    math.inf,
    10**5000,
    "text",
    b"bytes",
    [],
    [None],
    {},
    {1: 2, None: 3},
    {"name": {"a": [1]}, "args": {2, 3}},
    {"role": "assistant", "content": 12},
    set(),
    object(),
    Hostile(),
    HostileMapping(),
    HostileList([1]),
    HostileText("assistant"),
    [Hostile(), HostileMapping(), HostileList(), HostileText("x")],
    {"args": Hostile(), "total": Hostile()},
    range(3),
    float,
]


# By place, since pytest itself cannot handle some of them.
@pytest.mark.parametrize("place", range(len(WEIRD)))
def test_no_part_of_an_envelope_can_make_it_raise(place: int) -> None:
    """Whatever stands in whichever place, the scores exist and lie in [0, 1]."""
    weird: Any = WEIRD[place]
    envelopes: list[Any] = [
        weird,
        {"tool_calls": weird, "conversation": weird},
        {"tool_calls": [weird, weird, call(weird), call(server=weird), {"args": weird}]},
        {"tool_calls": [call(args={"x": weird, "y": [weird]})] * 2},
        {"conversation": {"tokens": weird, "turns": weird}},
        {
            "conversation": {
                "tokens": {"total": weird},
                "turns": [weird, {"role": weird, "content": weird}]
                + [{"role": "assistant", "content": weird}] * 2,
            }
        },
    ]
    for envelope in envelopes:
        assert all(0 <= score <= 1 for score in scores(agent_stability(envelope)))


@given(envelope=JSON | st.fixed_dictionaries({"tool_calls": JSON, "conversation": JSON}))
def test_any_json_is_read(envelope: Any) -> None:
    """Arbitrary JSON gives scores in [0, 1], and the same ones each time."""
    result = agent_stability(envelope)

    assert all(0 <= score <= 1 for score in scores(result))
    assert result == agent_stability(envelope)


@pytest.mark.slow
def test_endless_and_bottomless_arguments_end() -> None:
    """A value that contains itself, or is nested deeper than the stack, is still compared."""
    assert distinct(endless(), endless()) == 1
    assert distinct(deep(), deep(), [deep()]) == 2


def test_malformed_calls_are_calls() -> None:
    """A loop cannot hide by being malformed; equal entries are repeats."""
    shape = agent_stability({"tool_calls": ["ping", "ping", None, 3]}).shape

    assert shape is not None
    assert (shape.total_calls, shape.distinct_calls) == (4, 3)


@pytest.mark.parametrize("tokens", [None, "9000", -5, math.nan, True, [9000], {}])
def test_unreadable_tokens_are_no_tokens(tokens: object) -> None:
    """They are absent, not an error and not a cost."""
    assert agent_stability(trace((), (9, 9), tokens)).cost_per_progress == 1.0


@pytest.mark.parametrize("tokens", [math.inf, 10**400])
def test_too_many_tokens_are_too_many(tokens: object) -> None:
    """A number beyond doubles is not read as none."""
    assert agent_stability(trace([call()], (9, 9), tokens)).cost_per_progress == 0.0


def test_any_mapping_will_do() -> None:
    """An envelope need not be a dict, nor its lists lists."""
    plain = trace([call(), call()], (1, 3), 5000)
    proxied = MappingProxyType({**plain, "tool_calls": (MappingProxyType(call()), call())})

    assert agent_stability(proxied) == agent_stability(plain)


# The report


def test_the_weakest_score_is_the_minimum_of_the_four() -> None:
    """And a sub-score can be left out by name."""
    result = report(1, 0.5, 0.25, 0.667)

    assert result.weakest_score == 0.25
    assert result.weakest_score_without(["redundancy"]) == 0.5
    for wrong in (["typo"], NAMES, "redundancy"):
        with pytest.raises(InvalidArgument, match="excluding must"):
            result.weakest_score_without(wrong)


def test_the_summary_is_one_line_with_all_four() -> None:
    """Each by its name, with three decimals."""
    line = report(1, 0.5, 0.25, 2 / 3).summary()

    assert line == (
        "tool_usage_stability=1.000 response_consistency=0.500 redundancy=0.250 "
        "cost_per_progress=0.667 weakest_score=0.250"
    )


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, None, True])
def test_reports_and_floors_hold_rates(bad: Any) -> None:
    """Neither can be built with anything else."""
    for build in (StabilityReport, StabilityFloors):
        with pytest.raises(InvalidArgument, match="redundancy must"):
            build(**{**dict.fromkeys(NAMES, 0.5), "redundancy": bad})


# Drift


def test_drift_is_strictly_below_the_floor() -> None:
    """At the floor is no drift; a floor of 0 never fires, one of 1 flags all but perfect."""
    result = report(0.5, 0.499, 1.0, 0.0)

    assert drift_flags(result) == ("response_consistency", "cost_per_progress")
    assert drift_flags(result, StabilityFloors(**dict.fromkeys(NAMES, 0.0))) == ()
    assert drift_flags(result, StabilityFloors(**dict.fromkeys(NAMES, 1.0))) == (
        "tool_usage_stability",
        "response_consistency",
        "cost_per_progress",
    )


def test_the_default_floors_are_one_half() -> None:
    """The same line as the default gate."""
    assert [getattr(StabilityFloors(), name) for name in NAMES] == [0.5] * 4
    assert DEFAULT_MINIMUM == 0.5
    assert StabilityGate(target="stability.weakest_score", minimum=0.5) == DEFAULT_GATE


# Across runs


def test_the_targets_of_the_published_example() -> None:
    """0.9, 0.8, 0.7, 0.6, 0.5: mean 0.7, minimum 0.5, population variance 0.02."""
    across = agent_stability_across([report(1, 1, 1, s) for s in (0.9, 0.8, 0.7, 0.6, 0.5)])

    assert across.resolve_target("stability.score") == pytest.approx(0.7, rel=1e-15)
    assert across.resolve_target("stability.weakest_score") == 0.5
    assert across.resolve_target("stability.variance") == pytest.approx(0.02, rel=1e-14)
    assert across.runs == 5
    assert across.meets()
    assert not across.meets(StabilityGate(target="stability.score", minimum=0.71))


@given(values=st.lists(st.floats(0, 1), min_size=2, max_size=12), data=st.data())
def test_aggregates_are_exact_and_ignore_order(values: list[float], data: st.DataObject) -> None:
    """Mean and variance as rounded rationals; equal runs have exactly no variance."""
    across = agent_stability_across([report(1, s, 1, 1) for s in values])
    exact = [Fraction(s) for s in values]
    mean = sum(exact) / len(exact)
    other = data.draw(st.permutations(values))

    assert across.score == float(mean)
    assert across.variance == float(sum((s - mean) ** 2 for s in exact) / len(exact))
    assert 0 <= across.variance <= 0.25
    assert across.weakest_score == min(values)
    assert across.score == agent_stability_across([report(1, s, 1, 1) for s in other]).score
    assert agent_stability_across([report(1, values[0], 1, 1)] * 3).variance == 0


def test_envelopes_and_reports_mix() -> None:
    """An envelope is folded first, with the anchor given."""
    looping = trace([call()] * 4, (), 8000)

    across = agent_stability_across([looping, report(1, 1, 1, 0.5)], tokens_per_call=4000)

    assert across.run_scores == (0.25, 0.5)
    assert across.weakest_score == 0.25
    assert not across.meets()


def test_a_sub_score_can_be_left_out_of_every_run() -> None:
    """Two healthy calls to two tools fail the default gate only through tool usage."""
    healthy = trace([call("a"), call("b")], (10, 10), 100)

    assert agent_stability_across([healthy] * 2).weakest_score == 0.0
    without = agent_stability_across([healthy] * 2, excluding=["tool_usage_stability"])
    assert without.weakest_score == 1.0
    assert without.excluding == ("tool_usage_stability",)


@pytest.mark.parametrize(
    "runs", [[], [report(1, 1, 1, 1)], None, "ab", {"a": 1, "b": 2}, [None, None], [{}, 3]]
)
def test_one_run_has_no_variance(runs: object) -> None:
    """At least two runs, each an envelope or a report."""
    with pytest.raises(InvalidArgument, match="runs must be a sequence of at least two"):
        agent_stability_across(runs)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["stability.mean", "score", "", "reliability.runs", None])
def test_an_unknown_path_lists_the_known_ones(path: object) -> None:
    """A misspelt target is an error, never a null."""
    across = agent_stability_across([{}, {}])

    with pytest.raises(InvalidArgument, match=r"path must .*'stability\.score'.*variance"):
        across.resolve_target(path)  # type: ignore[arg-type]
