"""Designs that need not be searched for again: the common ones ship, the others can be kept.

The shipped catalogues are JSON files beside this module; reading them is the only input of the
package. `python -m tools.designs` says how it is written again after a change of the search.

Where other designs are kept is the caller's business: anything with `load` and `save` will do.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any, Protocol

from trialwise.decimals import complement
from trialwise.errors import InvalidArgument
from trialwise.stats.sequential.bound import (
    Hypotheses,
    Mix,
    even_mix,
    likely_mix,
    list_looks,
    shared_mix,
)
from trialwise.stats.sequential.design import Method, SequentialDesign
from trialwise.stats.sequential.walks import Rule, never

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
DEFAULT_CAPS = {
    0.5: 26,
    0.6: 37,
    0.66: 48,
    0.7: 55,
    0.75: 72,
    0.8: 92,
    0.85: 133,
    0.9: 215,
    0.92: 270,
    0.95: 464,
    0.96: 581,
    0.97: 778,
    0.98: 1000,
    0.985: 1000,
    0.99: 1000,
    0.995: 1000,
}

#: What every shipped design has in common.
ALPHA, BETA, BATCH = 0.05, 0.20, 1

#: The shipped pairs of rates: the usual margin of 0.10, and narrower ones where rates are high.
RATES = (
    *((p0, round(p0 - 0.10, 2)) for p0 in (0.50, 0.70, 0.80, 0.85, 0.90, 0.95, 0.97, 0.98, 0.99)),
    *((p0, round(p0 - 0.05, 2)) for p0 in (0.90, 0.95, 0.97, 0.98, 0.99)),
    *((p0, round(p0 - 0.02, 2)) for p0 in (0.98, 0.99)),
)


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
    parts: list[object] = [
        hypotheses.p0,
        hypotheses.p1,
        hypotheses.alpha,
        hypotheses.beta,
        cap,
        batch,
    ]
    if mix is not None and mix != even_mix(hypotheses):
        parts.extend(f"{rate!r}x{weight!r}" for rate, weight in mix)
    return "-".join(["optimal", str(EDITION), *map(str, parts)])


def optimal_design(
    hypotheses: Hypotheses, cap: int, batch: int, mix: Mix | None, cache: DesignCache | None
) -> SequentialDesign:
    """The optimal design from the shipped catalogue, the cache, or the search."""
    if mix is None or mix == even_mix(hypotheses):
        shipped = shipped_design(hypotheses, cap, batch)
    else:
        shipped = _find_margin_design(hypotheses, cap, batch, mix)
    if shipped is not None:
        return shipped
    key = design_key(
        hypotheses.p0,
        hypotheses.p1,
        alpha=hypotheses.alpha,
        beta=hypotheses.beta,
        cap=cap,
        batch=batch,
        mix=mix,
    )
    kept = (
        _accept_kept_design(cache.load(key), hypotheses, cap, batch) if cache is not None else None
    )
    if kept is not None:
        return kept
    design = search_design(hypotheses, cap, batch, mix or even_mix(hypotheses))
    if cache is not None:
        cache.save(key, design.to_dict())
    return design


def strict_design(
    hypotheses: Hypotheses, cap: int | None, batch: int, cache: DesignCache | None
) -> SequentialDesign:
    """The strict design from the shipped catalogue, the cache, or the search."""
    limit = cap or default_strict_cap(hypotheses.p0, hypotheses.alpha, hypotheses.beta)
    usual = all(math.isclose(level, STRICT_LEVEL) for level in (hypotheses.alpha, hypotheses.beta))
    if usual and batch == BATCH:
        for entry in _read_catalogue("strict_designs.json"):
            if (entry["rate"], entry["cap"]) == (hypotheses.p0, limit):
                return _decode_strict(hypotheses, entry)
    parts = (hypotheses.p0, hypotheses.alpha, hypotheses.beta, limit, batch)
    key = "-".join(["strict", str(EDITION), *map(str, parts)])
    kept = cache and _accept_kept_design(cache.load(key), hypotheses, limit, batch)
    if kept:
        return kept
    design = search_strict(hypotheses, limit, batch)
    if cache is not None:
        cache.save(key, design.to_dict())
    return design


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
    from trialwise.stats.sequential.best_rules import usual_cap

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
    from trialwise.stats.sequential.best_rules import default_objective
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
    return SequentialDesign.from_rule(
        Method.STRICT,
        hypotheses,
        batch,
        found.rule,
        mix=normalize(objective.trials),
        certificate=found.certificate,
    )


def _accept_kept_design(
    values: Mapping[str, Any] | None, hypotheses: Hypotheses, cap: int, batch: int
) -> SequentialDesign | None:
    """A kept design if it is one, is the one asked for, and keeps its errors; else None."""
    if values is None:
        return None
    try:
        design = SequentialDesign.from_dict(values)
    except (InvalidArgument, TypeError, KeyError):
        return None
    asked = (hypotheses.p0, hypotheses.p1, hypotheses.alpha, hypotheses.beta, cap, batch)
    same = asked == (design.p0, design.p1, design.alpha, design.beta, design.cap, design.batch)
    sound = (
        design.operating_characteristic(hypotheses.p0).fails <= hypotheses.alpha_limit
        and design.operating_characteristic(hypotheses.p1).passes <= hypotheses.beta_limit
    )
    return design if same and sound else None


def shipped_design(hypotheses: Hypotheses, cap: int, batch: int) -> SequentialDesign | None:
    """The design of the catalogue for two hypotheses, or None."""
    # A level computed as 1 − 0.95 is meant to be 0.05.
    usual = math.isclose(hypotheses.alpha, ALPHA) and math.isclose(hypotheses.beta, BETA)
    if not usual or batch != BATCH or (hypotheses.p0, hypotheses.p1) not in RATES:
        return None
    for entry in _read_catalogue("designs.json"):
        if (entry["p0"], entry["p1"], entry["cap"]) == (hypotheses.p0, hypotheses.p1, cap):
            return _decode_design(hypotheses, entry)
    return None


def _find_margin_design(
    hypotheses: Hypotheses, cap: int, batch: int, mix: Mix
) -> SequentialDesign | None:
    """The design of the catalogue for a margin as contracts ask for it, or None."""
    rates, levels = (hypotheses.p0, hypotheses.p1), (hypotheses.alpha, hypotheses.beta)
    usual = all(math.isclose(level, MARGIN_LEVEL) for level in levels)
    if not usual or batch != BATCH or rates not in RATES:
        return None
    names = [name for name, make in MARGIN_MIXES.items() if make(*rates) == mix]
    for entry in _read_catalogue("margin_designs.json"):
        if (entry["p0"], entry["p1"], entry["cap"]) == (*rates, cap) and entry["mix"] in names:
            return replace(_decode_design(hypotheses, entry), mix=mix)
    return None


def find_paired_design(question: str, alpha: float) -> SequentialDesign | None:
    """Return the design of the catalogue for a paired comparison at a two-sided level, or None.

    It is in discordant pairs: a success is a win of B.
    """
    tests = round(PAIRED_LEVEL / alpha)
    if tests < 1 or not math.isclose(alpha, PAIRED_LEVEL / tests, rel_tol=1e-9):
        return None
    for entry in _read_catalogue("paired_designs.json"):
        if (entry["question"], entry["tests"]) == (question, tests):
            if question == "different":
                levels = Hypotheses.of_rate(0.5, alpha / 2, alpha / 2)
                mix = normalize(paired_mix(PAIRED_SPLIT))
                return _decode_two_sided(levels, entry, mix)
            levels = Hypotheses.from_numbers(PAIRED_SPLIT, 0.5, complement(PAIRED_POWER), alpha / 2)
            return _decode_design(levels, entry)
    return None


def paired_mix(split: float, equal: float = 0.5) -> Mix:
    """Return the splits, with weights, at which a two-sided design minimises its expected pairs.

    `equal` is the weight of equal arms; a better and a worse B share the rest.
    """
    return ((split, (1 - equal) / 2), (0.5, equal), (1 - split, (1 - equal) / 2))


@cache
def _read_catalogue(name: str) -> list[dict[str, Any]]:
    import json
    from pkgutil import get_data  # `importlib.resources` loads temporary files and archives

    found: list[dict[str, Any]] = json.loads(get_data("trialwise.stats.sequential", name) or "[]")
    return found


def search_design(hypotheses: Hypotheses, cap: int, batch: int, mix: Mix) -> SequentialDesign:
    """Compute the optimal design, which can take minutes."""
    from trialwise.stats.sequential.design_methods import find_optimal

    found = find_optimal(hypotheses, cap, batch, mix)
    return SequentialDesign.from_rule(
        Method.OPTIMAL,
        hypotheses,
        batch,
        found.rule,
        mix=mix,
        certificate=found.certificate,
    )


def _decode_design(hypotheses: Hypotheses, entry: Mapping[str, Any]) -> SequentialDesign:
    rule = _decode_rule(entry)
    return SequentialDesign.from_rule(
        Method.OPTIMAL, hypotheses, BATCH, rule, certificate=entry["certificate"]
    )


def _decode_rule(entry: Mapping[str, Any]) -> Rule:
    rule = never(entry["cap"])
    accept, reject = sorted(entry["accept"]), sorted(entry["reject"])
    for n in list_looks(entry["cap"], BATCH):
        rule.accept[n] = bisect_right(accept, n) - 1
        rule.reject[n] = bisect_right(reject, n) + 1
    return rule


def _decode_strict(hypotheses: Hypotheses, entry: Mapping[str, Any]) -> SequentialDesign:
    from trialwise.stats.sequential.best_rules import default_objective

    mix = normalize(default_objective(hypotheses.p0, entry["cap"]).trials)
    return _decode_two_sided(hypotheses, entry, mix)


def _decode_two_sided(
    hypotheses: Hypotheses, entry: Mapping[str, Any], mix: Mix
) -> SequentialDesign:
    cap = entry["cap"]
    futile = [(n + 1, -1) for n in range(cap + 1)]
    for start, stop, low, high in entry["futile"]:
        futile[start:stop] = [(low, high)] * (stop - start)
    return SequentialDesign.from_rule(
        Method.STRICT,
        hypotheses,
        BATCH,
        _decode_rule(entry)._replace(futile=futile),
        mix=mix,
        certificate=entry["certificate"],
    )


def normalize(mix: Mix) -> Mix:
    """The same rates with weights that add up to 1."""
    total = math.fsum(weight for _, weight in mix)
    return tuple((rate, weight / total) for rate, weight in mix)
