"""Writes the catalogues of sequential designs that ship, after a change of the search.

python -m tools.designs > src/trialwise/stats/sequential/designs.json
python -m tools.designs --margin > src/trialwise/stats/sequential/margin_designs.json
python -m tools.designs --strict > src/trialwise/stats/sequential/strict_designs.json
python -m tools.designs --paired > src/trialwise/stats/sequential/paired_designs.json
python -m tools.designs --regression > src/trialwise/stats/staged_schemes.json

With --strict it also says on standard error which caps belong into `shipped_designs.DEFAULT_CAPS`.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise, product
from typing import Any

from trialwise.stats.paired_designs import find_two_sided_cap, search_two_sided
from trialwise.stats.sequential import SequentialDesign
from trialwise.stats.sequential.best_rules import usual_cap
from trialwise.stats.sequential.bound import (
    Hypotheses,
    even_mix,
    find_shared_caps,
    first_deciding,
    resolve_cap,
)
from trialwise.stats.sequential.shipped_designs import (
    ALPHA,
    BATCH,
    BETA,
    MARGIN_LEVEL,
    MARGIN_MIXES,
    MOST_WITHOUT_CONSENT,
    PAIRED_LEVEL,
    PAIRED_POWER,
    PAIRED_SPLIT,
    STRICT_LEVEL,
    search_design,
    search_strict,
)
from trialwise.stats.staged_regression import search_scheme, start_scheme

#: The shipped pairs of rates: the usual margin of 0.10, and narrower ones where rates are high.
RATES = (
    *((p0, round(p0 - 0.10, 2)) for p0 in (0.50, 0.70, 0.80, 0.85, 0.90, 0.95, 0.97, 0.98, 0.99)),
    *((p0, round(p0 - 0.05, 2)) for p0 in (0.90, 0.95, 0.97, 0.98, 0.99)),
    *((p0, round(p0 - 0.02, 2)) for p0 in (0.98, 0.99)),
)

#: The rates of the strict designs that ship, and the power that sets their caps.
STRICT_RATES = (
    *(0.50, 0.60, 0.66, 0.70, 0.75, 0.80, 0.85, 0.90, 0.92, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99),
    0.995,
)
WANTED_POWER = 0.80

#: The shipped caps, besides twice the exact fixed sample.
CAPS = (30, 50, 100, 200)

#: Designs for paired comparisons ship for families of up to so many tests.
MOST_PAIRED_TESTS = 10
#: What a missing decision costs in them, as shares of the cap: the first that leads to the power.
PAIRED_COSTS = (0.5, 0.7, 1.0, 1.5)

#: (trials of the baseline, margin) of the schemes for comparisons that ship.
SCHEMES = (
    *((size, 0.10) for size in (50, 100, 150, 200, 250, 300, 400, 500, 600, 800, 1000)),
    *((size, 0.10) for size in (1200, 1500, 2000, 3000, 5000)),
    *((size, 0.05) for size in (100, 200, 300, 400, 500, 1000, 2000)),
)


def list_catalogue() -> Iterator[tuple[Hypotheses, int]]:
    """Every pair of hypotheses in the catalogue with every cap, in the order of the file."""
    for p0, p1 in RATES:
        hypotheses = Hypotheses(p0, p1, ALPHA, BETA)
        for cap in sorted({*CAPS, 2 * first_deciding(hypotheses, start=1).trials}):
            yield hypotheses, cap


def catalogue_text() -> str:
    """The catalogue, searched anew: one design a line."""
    lines = (
        json.dumps(_encode_design(search_design(c, n, BATCH, even_mix(c))))
        for c, n in list_catalogue()
    )
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _encode_design(design: SequentialDesign) -> dict[str, Any]:
    """A design as where its boundaries step up: entry f is the trial count of step f."""
    return {
        "p0": design.p0,
        "p1": design.p1,
        "cap": design.cap,
        "certificate": design.certificate,
        "accept": _steps(design.accept),
        "reject": _steps(design.reject),
    }


def _steps(boundary: tuple[int, ...]) -> list[int]:
    return [n for n, (a, b) in enumerate(pairwise(boundary), 1) for _ in range(b - a)]


def list_margins() -> Iterator[tuple[Hypotheses, int, str]]:
    """Every design for a margin as contracts ask for it, with the name of its mix."""
    for rates in RATES:
        hypotheses = Hypotheses(*rates, MARGIN_LEVEL, MARGIN_LEVEL)
        usual = resolve_cap(hypotheses, None, BATCH)
        levels = {"alpha": MARGIN_LEVEL, "beta": MARGIN_LEVEL}
        yield hypotheses, usual, "likely"
        for cap in find_shared_caps(*rates, most=usual, **levels):
            yield hypotheses, cap, "shared"


def margin_catalogue_text() -> str:
    """The catalogue of designs for a margin, searched anew, one design a line."""
    lines = []
    for hypotheses, cap, name in list_margins():
        mix = MARGIN_MIXES[name](hypotheses.p0, hypotheses.p1)
        design = search_design(hypotheses, cap, BATCH, mix)
        lines.append(json.dumps({"mix": name, **_encode_design(design)}))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def strict_catalogue_text() -> str:
    """The catalogue of strict designs, searched anew, one design a line."""
    lines = []
    for rate in STRICT_RATES:
        design = find_default(rate)
        sys.stderr.write(f"    {rate}: {design.cap},  # {design.certificate:.4f}\n")
        lines.append(json.dumps(_encode_strict(design)))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def find_default(rate: float) -> SequentialDesign:
    """The design with the fewest trials that passes half the allowed failure rate often enough."""
    half = (1 + rate) / 2

    def design_at(cap: int) -> SequentialDesign:
        return search_strict(Hypotheses.of_rate(rate, STRICT_LEVEL, STRICT_LEVEL), cap, BATCH)

    def suffices(design: SequentialDesign) -> bool:
        return design.operating_characteristic(half).passes >= WANTED_POWER

    low, high = 0, min(MOST_WITHOUT_CONSENT, math.ceil(usual_cap(rate)))
    best = design_at(high)
    while not suffices(best) and high < MOST_WITHOUT_CONSENT:
        low, high = high, min(MOST_WITHOUT_CONSENT, math.ceil(1.15 * high))
        best = design_at(high)
    if high == MOST_WITHOUT_CONSENT and not suffices(best):
        return best
    low = max(low, round(0.8 * high))
    while high - low > 1:
        middle = (low + high) // 2
        design = design_at(middle)
        if suffices(design):
            high, best = middle, design
        else:
            low = middle
    return best


def _encode_strict(design: SequentialDesign) -> dict[str, Any]:
    """A strict design: the steps of its boundaries, and runs of trials with one futile span."""
    spans: list[list[int]] = []
    for n, (low, high) in enumerate(design.futile):
        if low > high:
            continue
        if spans and spans[-1][1] == n and spans[-1][2:] == [low, high]:
            spans[-1][1] = n + 1
        else:
            spans.append([n, n + 1, low, high])
    return {
        "rate": design.p0,
        "cap": design.cap,
        "certificate": design.certificate,
        "accept": _steps(design.accept),
        "reject": _steps(design.reject),
        "futile": spans,
    }


def scheme_catalogue_text() -> str:
    """The catalogue of schemes for comparisons with a baseline, searched anew, one a line."""
    lines = []
    for size, margin in SCHEMES:
        found = search_scheme(start_scheme(size, margin))
        if found is None:
            raise SystemExit(f"no scheme for a baseline of {size} and a margin of {margin}")
        lines.append(json.dumps(asdict(found)))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def paired_catalogue_text() -> str:
    """The catalogue of designs for paired comparisons, searched anew, one design a line."""
    lines = []
    for question, tests in product(("different", "better"), range(1, MOST_PAIRED_TESTS + 1)):
        alpha = PAIRED_LEVEL / tests
        if question == "better":
            levels = Hypotheses(PAIRED_SPLIT, 0.5, round(1 - PAIRED_POWER, 9), alpha / 2)
            cap = resolve_cap(levels, None, BATCH)
            design = search_design(levels, cap, BATCH, even_mix(levels))
        else:
            design = find_two_sided(alpha)
        entry = _encode_strict(design)
        del entry["rate"]
        lines.append(json.dumps({"question": question, "tests": tests, **entry}))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def find_two_sided(alpha: float) -> SequentialDesign:
    """The two-sided design at the first of a few costs of a missing decision with the power.

    Its power is a little more than asked for at the split of 70:30, so that it suffices for 80 %
    against 90 %, a split of 69:31.
    """
    cap = find_two_sided_cap(PAIRED_SPLIT, alpha, PAIRED_POWER)
    designs = (search_two_sided(PAIRED_SPLIT, alpha, cap, cost) for cost in PAIRED_COSTS)
    return next(
        design
        for design in designs
        if design.operating_characteristic(PAIRED_SPLIT).passes >= PAIRED_POWER
    )


if __name__ == "__main__":
    if "--paired" in sys.argv[1:]:
        sys.stdout.write(paired_catalogue_text())
    elif "--regression" in sys.argv[1:]:
        sys.stdout.write(scheme_catalogue_text())
    elif "--strict" in sys.argv[1:]:
        sys.stdout.write(strict_catalogue_text())
    elif "--margin" in sys.argv[1:]:
        sys.stdout.write(margin_catalogue_text())
    else:
        sys.stdout.write(catalogue_text())
