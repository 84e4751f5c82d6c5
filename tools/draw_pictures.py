"""Draws the pictures of the documentation with the package's own charts.

`python -m tools.draw_pictures` writes them into `docs/pictures`. Every number is exact: it is
enumerated from the design, not simulated. The picture of the terminal shows the red result of
docs/tutorial.md, which the tests run. `tests/repo/test_pictures.py` fails where a picture is not
current.

`python -m tools.draw_pictures REPORT.html` also takes the picture of a report, with Chromium.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html import escape
from pathlib import Path

from trialwise.documents.charts import Guide, chart_shares
from trialwise.renderers.html.page_frame import render_chart_file
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


#: A terminal's columns, the height of a line and the width of a character in pixels.
_COLUMNS, _LINE, _CHARACTER = 80, 20, 8.4
_COLOURS = {"PASS": "#56d364", "FAIL": "#ff7b72", "INCONCLUSIVE": "#e3b341"}


def draw_terminal() -> str:
    """Return the red result of the tutorial, as a terminal shows it."""
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    printed = re.search(r"```console\n(\$ trialwise run .*?)\n\nNeeds attention", text, re.DOTALL)
    assert printed is not None, "the tutorial shows a red run"
    lines = printed[1].splitlines()
    width, height = round(_COLUMNS * _CHARACTER + 40), len(lines) * _LINE + 60
    rows = "\n".join(
        f'<text x="20" y="{58 + place * _LINE}" xml:space="preserve">{_paint(line)}</text>'
        for place, line in enumerate(lines)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">\n'
        f"<title>A run of trialwise in the terminal</title>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#161b22"/>\n'
        '<g fill="#484f58"><circle cx="22" cy="20" r="6"/><circle cx="42" cy="20" r="6"/>'
        '<circle cx="62" cy="20" r="6"/></g>\n'
        '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" '
        f'font-size="14" fill="#e6edf3">\n{rows}\n</g>\n</svg>\n'
    )


def _paint(line: str) -> str:
    """Return a line of the terminal with its verdicts in colour."""
    return re.sub(
        r"\b(PASS|FAIL|INCONCLUSIVE)\b",
        lambda word: f'<tspan fill="{_COLOURS[word[1]]}" font-weight="bold">{word[1]}</tspan>',
        escape(line, quote=False),
    )


def photograph_report(report: Path) -> None:
    """Write the picture of a report; a browser's pixels are not compared by any test."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("the picture of a report needs Chromium")
    subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            "--window-size=1100,1290",
            f"--screenshot={FOLDER / PHOTOGRAPHS[0]}",
            report.resolve().as_uri(),
        ],
        check=True,
    )


#: The pictures that are drawn, by file.
PICTURES = {"terminal.svg": draw_terminal, "verdicts.svg": draw_verdicts}
#: The pictures that a browser takes.
PHOTOGRAPHS = ("report.png",)


def main() -> None:
    """Write every picture."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")
        print(f"docs/pictures/{name}")
    for report in sys.argv[1:]:
        photograph_report(Path(report))


if __name__ == "__main__":
    main()
