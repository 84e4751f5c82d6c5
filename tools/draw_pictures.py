"""Draws the pictures of the documentation with the package's own charts.

`python -m tools.draw_pictures` writes them into `docs/pictures`. Every number is exact: it is
enumerated from the design, not simulated. `tests/repo/test_pictures.py` fails where a picture is
not current.
"""

from __future__ import annotations

from pathlib import Path

from trialwise.documents.charts import Guide, chart_shares
from trialwise.renderers.html.chart_file import render_chart_file
from trialwise.stats.sequential import SequentialDesign

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
_REQUIRED = 0.90
#: True rates of the curves, in steps of half a point.
_RATES = [rate / 200 for rate in range(140, 201)]


def draw_verdicts() -> str:
    """How often `at_least: 90%` gives each verdict, by the true rate of the service."""
    design = SequentialDesign.strict(_REQUIRED)
    curves = [design.operating_characteristic(rate) for rate in _RATES]
    chart = chart_shares(
        f"Verdicts of at_least: 90% (at most {design.cap} trials)",
        "At a true rate of 90 %, at most 5 % of runs PASS and at most 5 % FAIL; the rest are "
        "INCONCLUSIVE. Further away from 90 %, almost every run gets the right verdict.",
        "true rate of the service",
        "share of runs",
        rates=_RATES,
        bands=[
            ("PASS", "pass", [curve.passes for curve in curves]),
            ("INCONCLUSIVE", "open", [curve.inconclusive for curve in curves]),
            ("FAIL", "fail", [curve.fails for curve in curves]),
        ],
        guides=(Guide(value=_REQUIRED, label="required 90 %"),),
    )
    return render_chart_file([chart])


#: The pictures, by file.
PICTURES = {"verdicts.svg": draw_verdicts}


def main() -> None:
    """Write every picture."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")
        print(f"docs/pictures/{name}")


if __name__ == "__main__":
    main()
