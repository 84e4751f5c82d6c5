"""Writes the catalogue of sequential designs that ship, after a change of the search.

python -m tools.designs > src/trialwise/stats/sequential/designs.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from trialwise.stats.sequential import SequentialDesign
from trialwise.stats.sequential.bound import first_deciding
from trialwise.stats.sequential.hypotheses import Hypotheses, even_mix
from trialwise.stats.sequential.shipped_designs import ALPHA, BATCH, BETA, RATES, search_design

#: The shipped caps, besides twice the exact fixed sample.
CAPS = (30, 50, 100, 200)


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


if __name__ == "__main__":
    sys.stdout.write(catalogue_text())
