"""Designs that ship, and designs that are kept."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tools.designs import list_catalogue, list_margins

from trialwise.errors import InvalidArgument
from trialwise.stats.sequential import DesignCache, SequentialDesign, design_key, shipped_designs
from trialwise.stats.sequential.bound import Hypotheses, even_mix
from trialwise.stats.sequential.design_methods import find_optimal
from trialwise.stats.sequential.shipped_designs import MARGIN_MIXES, shipped_design

SHIPPED = list(list_catalogue())
MARGINS = list(list_margins())


class Folder:
    """A cache as a caller would write one: a file for every key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.saved = 0

    def load(self, key: str) -> Mapping[str, Any] | None:
        file = self.path / f"{key}.json"
        return json.loads(file.read_text("utf-8")) if file.exists() else None

    def save(self, key: str, values: Mapping[str, Any]) -> None:
        self.saved += 1
        (self.path / f"{key}.json").write_text(json.dumps(values), "utf-8")


def test_every_common_design_ships_and_keeps_its_errors() -> None:
    """Nine thresholds and more, at the default cap and at 30, 50, 100 and 200 trials."""
    assert len(SHIPPED) >= 60
    for hypotheses, cap in SHIPPED:
        design = shipped_design(hypotheses, cap, 1)
        assert design is not None
        assert design.cap == cap
        assert design.operating_characteristic(hypotheses.p0).fails <= 0.05 + 1e-12
        assert design.operating_characteristic(hypotheses.p1).passes <= 0.20 + 1e-12


@pytest.mark.parametrize("p0", [0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97, 0.98, 0.99])
@pytest.mark.parametrize("cap", [None, 30, 50, 100, 200])
def test_the_usual_margin_ships_at_the_usual_caps(p0: float, cap: int | None) -> None:
    """p0 against p0 − 0.10 is found without a search, the default cap included."""
    design = SequentialDesign.wald(p0, cap=cap)
    hypotheses = Hypotheses(design.p0, design.p1, 0.05, 0.20)

    assert shipped_design(hypotheses, design.cap, 1) is not None


@pytest.mark.slow("hypotheses0-200", "hypotheses1-200", "hypotheses2-100")
@pytest.mark.parametrize(
    ("hypotheses", "cap"), random.Random(20260801).sample([s for s in SHIPPED if s[1] <= 200], 4)
)
def test_a_few_shipped_designs_are_as_good_as_what_the_search_finds(
    hypotheses: Hypotheses, cap: int
) -> None:
    """Chosen at random, searched anew: the certificates agree, though boundaries may differ."""
    shipped = shipped_design(hypotheses, cap, 1)
    found = find_optimal(hypotheses, cap, 1, even_mix(hypotheses))

    assert shipped is not None
    assert shipped.certificate == pytest.approx(found.objective / found.bound, abs=5e-4)


@pytest.mark.slow
def test_every_usual_margin_ships_as_contracts_ask_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 5 % and 5 %, for one criterion and for several on the same trials, without a search."""

    def search(*_: object) -> None:
        raise AssertionError("a usual design was searched for")

    monkeypatch.setattr(shipped_designs, "search_design", search)
    for hypotheses, cap, name in MARGINS:
        rates = hypotheses.p0, hypotheses.p1
        mix = MARGIN_MIXES[name](*rates)
        design = SequentialDesign.optimal(*rates, beta=0.05, cap=cap, mix=mix)
        assert (design.cap, design.mix) == (cap, mix)
        assert design.always_decides
        assert design.operating_characteristic(hypotheses.p0).fails <= 0.05 + 1e-12
        assert design.operating_characteristic(hypotheses.p1).passes <= 0.05 + 1e-12


@pytest.mark.slow("hypotheses1-127-shared")
@pytest.mark.parametrize(
    ("hypotheses", "cap", "name"),
    random.Random(20261116).sample([s for s in MARGINS if s[1] <= 200], 2),
)
def test_a_few_shipped_margins_are_what_the_search_finds(
    hypotheses: Hypotheses, cap: int, name: str
) -> None:
    """Chosen at random, searched anew: the same boundaries."""
    mix = MARGIN_MIXES[name](hypotheses.p0, hypotheses.p1)
    shipped = SequentialDesign.optimal(
        hypotheses.p0, hypotheses.p1, beta=0.05, cap=cap, mix=mix, cache=None
    )
    found = find_optimal(hypotheses, cap, 1, mix)
    assert (list(shipped.accept), list(shipped.reject)) == found.rule[:2]


@pytest.mark.slow
def test_all_shipped_designs_are_as_good_as_what_the_search_finds() -> None:
    """The whole catalogue, searched anew: no certificate differs by more than 0.05 %."""
    for hypotheses, cap in SHIPPED:
        shipped = shipped_design(hypotheses, cap, 1)
        found = find_optimal(hypotheses, cap, 1, even_mix(hypotheses))
        assert shipped is not None
        assert shipped.certificate == pytest.approx(found.objective / found.bound, abs=5e-4)


def test_a_level_computed_from_a_confidence_finds_the_shipped_design() -> None:
    """1 − 0.95 is 0.05000000000000004, and means 0.05."""
    design = SequentialDesign.optimal(0.9, 0.8, alpha=1 - 0.95, cap=50)

    assert design.accept == SequentialDesign.optimal(0.9, 0.8, cap=50).accept
    assert design.alpha == 1 - 0.95


def test_other_requests_do_not_ship() -> None:
    """Other levels, looks and caps are searched for."""
    assert shipped_design(Hypotheses(0.9, 0.8, 0.01, 0.20), 50, 1) is None
    assert shipped_design(Hypotheses(0.9, 0.8, 0.05, 0.20), 50, 5) is None
    assert shipped_design(Hypotheses(0.9, 0.8, 0.05, 0.20), 51, 1) is None
    assert shipped_design(Hypotheses(0.9, 0.79, 0.05, 0.20), 50, 1) is None


@pytest.mark.slow
def test_a_kept_design_is_not_searched_for_again(tmp_path: Path) -> None:
    """The second request reads what the first one saved."""
    folder = Folder(tmp_path)
    cache: DesignCache = folder
    first = SequentialDesign.optimal(0.9, 0.7, cap=33, batch=3, cache=cache)
    second = SequentialDesign.optimal(0.9, 0.7, cap=33, batch=3, cache=cache)

    assert first == second == SequentialDesign.optimal(0.9, 0.7, cap=33, batch=3)
    assert folder.saved == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_a_shipped_design_is_not_kept(tmp_path: Path) -> None:
    """What ships needs no second home."""
    SequentialDesign.optimal(0.9, 0.8, cap=50, cache=Folder(tmp_path))

    assert list(tmp_path.iterdir()) == []


def test_keys_tell_designs_apart() -> None:
    """Everything that determines a design is in its key, and nothing a file name cannot hold."""
    keys = [
        design_key(0.9, 0.8, cap=50),
        design_key(0.9, 0.8, cap=51),
        design_key(0.9, 0.8, cap=50, batch=2),
        design_key(0.9, 0.8, cap=50, alpha=0.1),
        design_key(0.9, 0.8, cap=50, beta=0.1),
        design_key(0.9, 0.81, cap=50),
        design_key(0.9, 0.8, cap=50, mix=((0.85, 1.0),)),
    ]

    assert len(set(keys)) == len(keys)
    assert all(set(key) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-") for key in keys)
    assert keys[0] == design_key(0.9, 0.8, cap=50, mix=((0.9, 0.5), (0.8, 0.5)))
    with pytest.raises(InvalidArgument, match="p1"):
        design_key(0.9, 0.95, cap=50)
