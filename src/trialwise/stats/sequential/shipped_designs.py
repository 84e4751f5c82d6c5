"""Designs that need not be searched for again: the common ones ship, the others can be kept.

The shipped catalogues are JSON files beside this module; reading them is the only input of the
package. `python -m tools.designs` says how it is written again after a change of the search.

Where other designs are kept is the caller's business: anything with `load` and `save` will do.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import astuple
from functools import cache
from itertools import pairwise
from pkgutil import get_data  # `importlib.resources` loads temporary files and archives
from typing import TYPE_CHECKING, Any, Protocol

from trialwise.decimals import complement
from trialwise.errors import InvalidArgument
from trialwise.stats.sequential.best_rules import StrictObjective, default_objective, usual_cap
from trialwise.stats.sequential.bound import (
    Hypotheses,
    Mix,
    even_mix,
    likely_mix,
    list_looks,
    shared_mix,
)
from trialwise.stats.sequential.design import Method, SequentialDesign
from trialwise.stats.sequential.walks import never

if TYPE_CHECKING:
    from trialwise.stats.sequential.design_methods import Found

#: Part of every key, and changed with the search, so that no older design is taken for a new one.
EDITION = 1

#: The error levels of the shipped strict designs.
STRICT_LEVEL = 0.05

#: The split of discordant pairs and the power of the shipped designs for paired comparisons, whose
#: two-sided level is this one over the number of tests.
PAIRED_SPLIT, PAIRED_POWER, PAIRED_LEVEL = 0.7, 0.80, 0.05

#: Nobody is made to pay for more trials than this without having said so.
MOST_WITHOUT_CONSENT = 1_000

#: The fewest trials with which a service with half the allowed failure rate passes a strict design
#: in 80 % of runs, for the rates that ship; `python -m tools.designs --strict` finds them.
# fmt: off
DEFAULT_CAPS = {
    0.5: 26, 0.6: 37, 0.66: 48, 0.7: 55, 0.75: 72, 0.8: 92, 0.85: 133, 0.9: 215, 0.92: 270,
    0.95: 464, 0.96: 581, 0.97: 778, 0.98: 1000, 0.985: 1000, 0.99: 1000, 0.995: 1000,
}
# fmt: on
#: What every shipped design has in common.
ALPHA, BETA, BATCH = 0.05, 0.20, 1

#: The error levels of the shipped designs for a margin, as `confidence` sets them by default.
MARGIN_LEVEL = 0.05

#: How the designs for a margin are averaged: for one criterion, and for several on the same trials.
MARGIN_MIXES = {"likely": likely_mix, "shared": shared_mix}


class DesignCache(Protocol):
    """Where designs are kept between runs. Saving the same key twice is harmless."""

    def load(self, key: str) -> Mapping[str, Any] | None:
        """The values saved under a key, or None."""

    def save(self, key: str, values: Mapping[str, Any]) -> None:
        """Keep plain values, fit for JSON, under a key."""


def design_key(
    p0: float,
    p1: float,
    *,
    cap: int,
    alpha: float = 0.05,
    beta: float = 0.20,
    batch: int = 1,
    mix: Mix | None = None,
) -> str:
    """The name under which an optimal design is kept: all that determines it, fit for a file name.

    Parameters
    ----------
    p0, p1, alpha, beta, cap, batch, mix
        As in `SequentialDesign.optimal`, with the cap resolved.

    Examples
    --------
    >>> design_key(0.90, 0.80, cap=50)
    'optimal-1-0.9-0.8-0.05-0.2-50-1'
    """
    hypotheses = Hypotheses.from_numbers(p0, p1, alpha, beta)
    parts = [*astuple(hypotheses), cap, batch]
    if mix is not None and mix != even_mix(hypotheses):
        parts += [f"{rate!r}x{weight!r}" for rate, weight in mix]
    return name_key("optimal", *parts)


def name_key(kind: str, *parts: object) -> str:
    """Return the name under which a design is kept: all that determines it."""
    return "-".join([kind, str(EDITION), *map(str, parts)])


def find_kept(
    cache: DesignCache | None,
    key: str,
    is_sound: Callable[[SequentialDesign], bool],
    search: Callable[[], SequentialDesign],
) -> SequentialDesign:
    """Return a kept design if it is sound; otherwise search for one, and keep it."""
    values = None if cache is None else cache.load(key)
    if values is not None:
        # A file may be cut, old or edited: a design is used only after its own errors are checked.
        with suppress(InvalidArgument, TypeError, KeyError):
            kept = SequentialDesign.from_dict(values)
            if is_sound(kept):
                return kept
    design = search()
    if cache is not None:
        cache.save(key, design.to_dict())
    return design


def keeps_errors(design: SequentialDesign, hypotheses: Hypotheses) -> bool:
    """Whether the exact errors of a design are at most those of the hypotheses."""
    return (
        design.operating_characteristic(hypotheses.p0).fails <= hypotheses.alpha_limit
        and design.operating_characteristic(hypotheses.p1).passes <= hypotheses.beta_limit
    )


def optimal_design(
    hypotheses: Hypotheses, cap: int, batch: int, mix: Mix | None, cache: DesignCache | None
) -> SequentialDesign:
    """The optimal design from the shipped catalogue, the cache, or the search."""
    shipped = shipped_design(hypotheses, cap, batch, mix)
    p0, p1, alpha, beta = astuple(hypotheses)
    key = design_key(p0, p1, alpha=alpha, beta=beta, cap=cap, batch=batch, mix=mix)
    return shipped or find_kept(
        cache,
        key,
        lambda kept: _is_asked(kept, hypotheses, cap, batch),
        lambda: search_design(hypotheses, cap, batch, mix or even_mix(hypotheses)),
    )


def strict_design(
    hypotheses: Hypotheses, cap: int | None, batch: int, cache: DesignCache | None
) -> SequentialDesign:
    """The strict design from the shipped catalogue, the cache, or the search."""
    rate, alpha, beta = hypotheses.p0, hypotheses.alpha, hypotheses.beta
    limit = cap or default_strict_cap(rate, alpha, beta)
    shipped = None
    if batch == BATCH and _are_levels(hypotheses, STRICT_LEVEL, STRICT_LEVEL):
        mix = normalize(default_objective(rate, limit).trials)
        shipped = _find_design("strict_designs.json", hypotheses, mix, rate=rate, cap=limit)
    return shipped or find_kept(
        cache,
        name_key("strict", rate, alpha, beta, limit, batch),
        lambda kept: _is_asked(kept, hypotheses, limit, batch),
        lambda: search_strict(hypotheses, limit, batch),
    )


def default_strict_cap(rate: float, alpha: float = STRICT_LEVEL, beta: float = STRICT_LEVEL) -> int:
    """The most trials of a strict design where nobody says.

    Enough for a service with half the allowed failure rate to PASS in 80 % of runs, and at most
    1,000. Exactly the fewest for the rates that ship; for others interpolated between these, which
    is within a few trials.

    Examples
    --------
    >>> default_strict_cap(0.99)
    1000
    """
    estimate = usual_cap(rate, alpha, beta)
    if all(math.isclose(level, STRICT_LEVEL) for level in (alpha, beta)):
        if rate in DEFAULT_CAPS:
            return DEFAULT_CAPS[rate]
        points = [(1 - rate_, cap) for rate_, cap in DEFAULT_CAPS.items()]
        for (x, low), (y, high) in pairwise(points):
            if y <= 1 - rate <= x:
                share = (x - (1 - rate)) / (x - y)
                scale = low * x + share * (high * y - low * x)
                return min(MOST_WITHOUT_CONSENT, math.ceil(scale / (1 - rate)))
    return max(1, min(MOST_WITHOUT_CONSENT, math.ceil(estimate)))


def search_strict(hypotheses: Hypotheses, cap: int, batch: int) -> SequentialDesign:
    """Search for a strict design."""
    from trialwise.stats.sequential.design_methods import find_strict

    levels = hypotheses.alpha, hypotheses.beta
    least = math.log(hypotheses.beta) / math.log(hypotheses.p0)
    found = None
    for times in (1.0, 2.0, 4.0, 8.0):
        objective = default_objective(hypotheses.p0, cap, *levels, times=times)
        # With few trials and strict levels giving up at once may be cheapest. Nobody wants that of
        # a service without failures, so a missing decision is made to cost more.
        must_pass = least <= cap and times < 8
        found = find_strict(hypotheses, cap, batch, objective, must_pass=must_pass)
        if found:
            break
    assert found is not None
    return make_strict(hypotheses, batch, found, objective)


def make_strict(
    levels: Hypotheses, batch: int, found: Found, objective: StrictObjective
) -> SequentialDesign:
    """Return a rule that was found as a design for one required rate."""
    mix, certificate = normalize(objective.trials), found.certificate
    return SequentialDesign.from_rule(
        Method.STRICT, levels, batch, found.rule, mix=mix, certificate=certificate
    )


def _is_asked(design: SequentialDesign, hypotheses: Hypotheses, cap: int, batch: int) -> bool:
    """Whether a kept design is the one asked for, and keeps its errors."""
    made_for = design.p0, design.p1, design.alpha, design.beta, design.cap, design.batch
    return made_for == (*astuple(hypotheses), cap, batch) and keeps_errors(design, hypotheses)


def _are_levels(hypotheses: Hypotheses, alpha: float, beta: float) -> bool:
    """Whether these are the error levels; one computed as 1 − 0.95 is meant to be 0.05."""
    return math.isclose(hypotheses.alpha, alpha) and math.isclose(hypotheses.beta, beta)


def shipped_design(
    hypotheses: Hypotheses, cap: int, batch: int, mix: Mix | None = None
) -> SequentialDesign | None:
    """The shipped design for two hypotheses, or None; a margin of a contract has its own mix."""
    name, levels = "designs.json", (ALPHA, BETA)
    p0, p1 = hypotheses.p0, hypotheses.p1
    asked: dict[str, object] = {"p0": p0, "p1": p1, "cap": cap}
    if mix is not None and mix != even_mix(hypotheses):
        name, levels = "margin_designs.json", (MARGIN_LEVEL, MARGIN_LEVEL)
        asked["mix"] = next((one for one, make in MARGIN_MIXES.items() if make(p0, p1) == mix), "")
    if batch != BATCH or not _are_levels(hypotheses, *levels):
        return None
    return _find_design(name, hypotheses, mix, **asked)


def find_paired_design(question: str, alpha: float) -> SequentialDesign | None:
    """Return the design of the catalogue for a paired comparison at a two-sided level, or None.

    It is in discordant pairs: a success is a win of B.
    """
    tests = round(PAIRED_LEVEL / alpha)
    if tests < 1 or not math.isclose(alpha, PAIRED_LEVEL / tests, rel_tol=1e-9):
        return None
    mix = None
    levels = Hypotheses.from_numbers(PAIRED_SPLIT, 0.5, complement(PAIRED_POWER), alpha / 2)
    if question == "different":
        levels = Hypotheses.of_rate(0.5, alpha / 2, alpha / 2)
        mix = normalize(paired_mix(PAIRED_SPLIT))
    return _find_design("paired_designs.json", levels, mix, question=question, tests=tests)


def paired_mix(split: float, equal: float = 0.5) -> Mix:
    """Return the splits, with weights, at which a two-sided design minimises its expected pairs.

    `equal` is the weight of equal arms; a better and a worse B share the rest.
    """
    return ((split, (1 - equal) / 2), (0.5, equal), (1 - split, (1 - equal) / 2))


@cache
def _read_catalogue(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(get_data("trialwise.stats.sequential", name) or "[]")
    return found


def search_design(hypotheses: Hypotheses, cap: int, batch: int, mix: Mix) -> SequentialDesign:
    """Compute the optimal design, which can take minutes."""
    from trialwise.stats.sequential.design_methods import find_optimal

    found = find_optimal(hypotheses, cap, batch, mix)
    return SequentialDesign.from_rule(
        Method.OPTIMAL, hypotheses, batch, found.rule, mix=mix, certificate=found.certificate
    )


def _find_design(
    name: str, hypotheses: Hypotheses, mix: Mix | None = None, /, **asked: object
) -> SequentialDesign | None:
    """Return the first design of a catalogue that was made for what is asked, or None.

    An entry holds the trials at which each boundary steps up.
    """
    made = (one for one in _read_catalogue(name) if all(one[k] == v for k, v in asked.items()))
    entry = next(made, None)
    if entry is None:
        return None
    cap = entry["cap"]
    rule, futile = never(cap), [(n + 1, -1) for n in range(cap + 1)]
    accept, reject = sorted(entry["accept"]), sorted(entry["reject"])
    for n in list_looks(cap, BATCH):
        rule.accept[n] = bisect_right(accept, n) - 1
        rule.reject[n] = bisect_right(reject, n) + 1
    for start, stop, low, high in entry.get("futile", ()):
        futile[start:stop] = [(low, high)] * (stop - start)
    return SequentialDesign.from_rule(
        Method.STRICT if hypotheses.p0 == hypotheses.p1 else Method.OPTIMAL,
        hypotheses,
        BATCH,
        rule._replace(futile=futile),
        mix=mix,
        certificate=entry["certificate"],
    )


def normalize(mix: Mix) -> Mix:
    """The same rates with weights that add up to 1."""
    total = math.fsum(weight for _, weight in mix)
    return tuple((rate, weight / total) for rate, weight in mix)
