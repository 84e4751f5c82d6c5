"""The design as a value: what it refuses, how it decides, how it is kept, what it imports."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from trialwise.errors import InvalidArgument
from trialwise.stats import sequential
from trialwise.stats.result_types import Undefined
from trialwise.stats.sequential import Decision, Method, SequentialDesign

FIFTY = SequentialDesign.optimal(0.9, 0.8, cap=50)
EVERY = [
    FIFTY,
    SequentialDesign.wald(0.9, 0.8, cap=50, batch=7),
    SequentialDesign.calibrated(0.9, 0.8, cap=60),
    SequentialDesign.fixed(0.9, 0.8),
]


@pytest.mark.parametrize("design", EVERY, ids=lambda d: str(d.method))
def test_a_design_survives_json(design: SequentialDesign) -> None:
    """Plain values out, the same design in, and equal designs have equal hashes."""
    copy = SequentialDesign.from_dict(json.loads(json.dumps(design.to_dict())))

    assert copy == design
    assert hash(copy) == hash(design)
    assert copy.decide(7, 7) == design.decide(7, 7) if design.batch == 7 else True
    assert len({copy, design}) == 1


@pytest.mark.parametrize("design", EVERY, ids=lambda d: str(d.method))
def test_boundaries_are_in_order(design: SequentialDesign) -> None:
    """Neither boundary falls from look to look, PASS lies below FAIL, none between looks."""
    looks = [*range(design.batch, design.cap, design.batch), design.cap]
    assert (design.accept[0], design.reject[0]) == (-1, 1)
    assert len(design.accept) == len(design.reject) == design.cap + 1
    for n in range(design.cap + 1):
        if n in looks:
            assert -1 <= design.accept[n] < design.reject[n] <= n + 1
        else:
            assert (design.accept[n], design.reject[n]) == (-1, n + 1)
    for m, n in pairwise(looks):
        assert design.accept[m] <= design.accept[n]
        assert design.reject[m] <= design.reject[n]


def test_a_design_does_not_change() -> None:
    """Frozen, like every result."""
    with pytest.raises(FrozenInstanceError):
        FIFTY.cap = 60  # type: ignore[misc]


def test_decisions_follow_the_boundaries() -> None:
    """PASS, FAIL, INCONCLUSIVE at the cap, None to go on; the names are plain strings."""
    assert FIFTY.decide(0, 0) is None
    assert FIFTY.decide(13, 0) is Decision.PASS
    assert FIFTY.decide(4, 4) == "FAIL"
    assert FIFTY.decide(50, FIFTY.accept[50] + 1) == "INCONCLUSIVE"
    assert f"{Decision.PASS}" == "PASS"


def test_counts_that_cannot_be_reached_are_refused() -> None:
    """Thirty passes in a row are decided long before the thirtieth."""
    with pytest.raises(InvalidArgument, match="failures must be a count this design can reach"):
        FIFTY.decide(30, 0)
    with pytest.raises(InvalidArgument, match="failures must be a count this design can reach"):
        FIFTY.decide(12, 12)
    with pytest.raises(InvalidArgument, match="at most the cap"):
        FIFTY.decide(51, 5)
    stopped = SequentialDesign.fixed(1.0, 0.9, cap=16)
    with pytest.raises(InvalidArgument, match="can reach in 2 trials"):
        stopped.decide(2, 2)


def test_every_state_that_paths_reach_can_be_decided() -> None:
    """Reach is what walking every path finds, for looks in batches too."""
    for design in EVERY:
        open_counts = {0}
        for n in range(1, design.cap + 1):
            reached = {g for f in open_counts for g in (f, f + 1)}
            for f in range(n + 1):
                if f in reached:
                    design.decide(n, f)
                else:
                    with pytest.raises(InvalidArgument):
                        design.decide(n, f)
            open_counts = {f for f in reached if design.decide(n, f) is None}


def test_only_an_optimal_design_has_a_certificate() -> None:
    """A number for `optimal`, a reason for the others."""
    assert isinstance(FIFTY.certificate, float)
    for design in EVERY[1:]:
        assert isinstance(design.certificate, Undefined)
        assert "optimal" in design.certificate.reason


def test_the_default_cap_is_twice_the_fixed_sample_in_whole_batches() -> None:
    """156 for 0.90 against 0.80, 160 with looks every 20."""
    assert SequentialDesign.wald(0.9, 0.8).cap == 156
    assert SequentialDesign.optimal(0.9, 0.8).cap == 156
    assert SequentialDesign.wald(0.9, 0.8, batch=20).cap == 160


@pytest.mark.parametrize("method", ["optimal", "wald", "calibrated", "fixed"])
@pytest.mark.parametrize(
    ("arguments", "options", "name"),
    [
        ((0.8, 0.9), {}, "p1"),
        ((1.5, 0.9), {}, "p0"),
        ((True, 0.9), {}, "p0"),
        ((0.9, 0.0), {}, "p1"),
        ((0.9, 0.8), {"alpha": 0}, "alpha"),
        ((0.9, 0.8), {"beta": 1.0}, "beta"),
        ((0.9, 0.8), {"alpha": 0.6, "beta": 0.5}, "beta"),
        ((0.9, 0.8), {"alpha": float("nan")}, "alpha"),
        ((0.9, 0.8), {"cap": 0}, "cap"),
        ((0.9, 0.8), {"cap": 2.5}, "cap"),
        ((0.9, 0.8), {"cap": 10**7}, "cap"),
        ((0.9, 0.8), {"batch": 0}, "batch"),
    ],
)
def test_impossible_requests_name_their_argument(
    method: str, arguments: tuple[float, float], options: dict[str, Any], name: str
) -> None:
    """Every method refuses the same things in the same words."""
    with pytest.raises(InvalidArgument, match=f"^{name} must"):
        getattr(SequentialDesign, method)(*arguments, **options)


@pytest.mark.parametrize("mix", [(), ((0.9, 0.5),), ((1.2, 1.0),), ((0.9, -1), (0.8, 2)), (0.9,)])
def test_a_mix_is_rates_with_weights_that_add_up(mix: Any) -> None:
    """Anything else is refused."""
    with pytest.raises(InvalidArgument, match=r"^mix must"):
        SequentialDesign.optimal(0.9, 0.8, cap=20, mix=mix)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"accept": (-1,) * 50}, "accept must have 51 entries"),
        ({"accept": (0, *(-1,) * 50)}, "accept must give no verdict between looks"),
        ({"accept": (*FIFTY.accept[:50], -1)}, "accept must never fall"),
        ({"reject": (*FIFTY.reject[:50], 60)}, "in order after 50 trials"),
        ({"reject": (*FIFTY.reject[:50], 10.0)}, "reject must be whole numbers"),
        ({"accept": (*FIFTY.accept[:50], 12)}, "in order after 50 trials"),
        ({"p1": 0.95}, "p1 must lie below"),
        ({"method": "guess"}, "method must be one of"),
        ({"certificate": -1.0}, "certificate must"),
    ],
)
def test_a_design_cannot_be_built_wrong(changes: dict[str, Any], match: str) -> None:
    """Boundaries and claim are checked however the design is made."""
    with pytest.raises(InvalidArgument, match=match):
        replace(FIFTY, **changes)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"colour": 1}, "values must be a mapping"),
        ({"method": "guess"}, "method must"),
        ({"accept": None}, "accept must be a list"),
        ({"mix": [[1, 2, 3]]}, "mix must"),
    ],
)
def test_other_dictionaries_are_refused(changes: dict[str, Any], match: str) -> None:
    """Unknown keys and wrong values name what is wrong."""
    with pytest.raises(InvalidArgument, match=match):
        SequentialDesign.from_dict({**FIFTY.to_dict(), **changes})


def test_using_a_shipped_design_imports_no_array_library() -> None:
    """Finding, deciding, operating characteristic and interval: standard library only."""
    program = (
        "import sys\n"
        "from trialwise.stats.sequential import SequentialDesign\n"
        "design = SequentialDesign.optimal(0.9, 0.8, cap=50)\n"
        "design.operating_characteristic(0.9), design.interval(13, 0), design.decide(1, 0)\n"
        "SequentialDesign.optimal(0.9, 0.7, cap=30)\n"
        "searched = 'trialwise.stats.sequential.flip_search' in sys.modules\n"
        "assert searched and not {'numpy', 'scipy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_stub_and_the_lazy_names_agree() -> None:
    """Type checkers see what the interpreter sees, and every name resolves."""
    assert sequential.__file__ is not None
    stub = Path(sequential.__file__).with_name("__init__.pyi")
    declared = {
        (alias.name, (node.module or "").removeprefix("trialwise.stats.sequential."))
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    exported: dict[str, str] = vars(sequential)["_EXPORTS"]
    assert declared == set(exported.items())
    assert set(exported) <= set(dir(sequential))
    assert sequential.SequentialDesign is SequentialDesign
    assert Method("fixed") is Method.FIXED
    with pytest.raises(AttributeError, match="SequentialDesing"):
        _ = sequential.SequentialDesing  # type: ignore[attr-defined]
