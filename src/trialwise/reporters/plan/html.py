"""A plan as a page of its own: one file, no network, light or dark as the reader's system is.

Written by hand on the same blocks as the terminal's; everything that is not markup is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.reporters.page.markup import escape, safe
from trialwise.reporters.page.palette import palette_css
from trialwise.reporters.plan.charts import Chart
from trialwise.reporters.plan.page import Block, Page, Prose, Row, Table, Tone
from trialwise.reporters.plan.svg import SVG_STYLE, render_svg

__all__ = ["render_plan_html"]

_STYLE = (
    palette_css()
    + """\
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:52rem;margin:0 auto;padding:2rem 1.25rem 3rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 1rem}
h2{font-size:1.05rem;margin:0 0 .6rem}
section,.advice{background:var(--card);border:1px solid var(--edge);border-radius:.6rem;
padding:1rem 1.2rem;margin:1rem 0}
.advice{border-left:.3rem solid var(--accent);background:var(--wash);font-size:1.05rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:0}
dt{color:var(--quiet)}dd{margin:0}
.scroll{overflow-x:auto}.scroll:focus-visible{outline:2px solid var(--accent)}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;font-size:1.05rem;padding:0 0 .5rem}
th,td{padding:.3rem .6rem;text-align:right;white-space:nowrap;border-top:1px solid var(--edge)}
thead th{border-top:0;color:var(--quiet);font-weight:500;vertical-align:bottom;white-space:pre}
th:first-child{text-align:left}tbody th{font-weight:500}
tr.chosen{background:var(--wash)}tr.broken th,tr.broken td{color:var(--fail)}
tr.broken{background:var(--fail-wash)}tr.limit th,tr.limit td{color:var(--quiet);font-style:italic}
p{margin:.4rem 0}.note{color:var(--quiet);font-size:.92rem}
summary{cursor:pointer;color:var(--accent)}
figure{margin:0}.tw-chart{width:100%;height:auto;display:block}
footer{color:var(--quiet);font-size:.85rem;margin-top:1.5rem}
@media print{body{font-size:11pt}main{max-width:none;padding:0}
section,.advice{break-inside:avoid;border-radius:0}.scroll{overflow:visible}}
"""
)

_TONES: dict[Tone, str] = {"plain": "", "chosen": "recommended", "broken": "", "limit": ""}


def render_plan_html(page: Page) -> str:
    """The page as a complete HTML document.

    Args:
        page: What to show.
    """
    facts = "".join(f"<dt>{safe(label)}</dt><dd>{safe(value)}</dd>" for label, value in page.facts)
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        '<head><meta charset="utf-8"/>',
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
        '<meta name="generator" content="trialwise"/>',
        f"<title>{safe(page.title)}</title>",
        f"<style>{_STYLE}{SVG_STYLE}</style></head>",
        f"<body><main><h1>{safe(page.title)}</h1>",
        f'<p class="advice"><strong>Recommendation.</strong> {safe(page.recommendation)}</p>',
        f'<section aria-label="What was asked"><dl>{facts}</dl></section>',
    ]
    for number, block in enumerate(page.blocks, start=1):
        parts += _block(block, number)
    parts.append(
        "<footer>Made by trialwise plan. Probabilities are computed, not simulated.</footer>"
    )
    parts.append("</main></body></html>")
    return "\n".join(parts) + "\n"


def _block(block: Block, number: int) -> Iterator[str]:
    if isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, Prose):
        yield from _prose(block)
    else:
        yield from _chart(block, number)


def _table(table: Table) -> Iterator[str]:
    label = escape(table.heading, quote=True)
    yield f'<section><div class="scroll" role="region" aria-label="{label}" tabindex="0"><table>'
    yield f"<caption>{safe(table.heading)}</caption>"
    heads = "".join(f'<th scope="col">{safe(column)}</th>' for column in table.columns)
    yield f"<thead><tr>{heads}</tr></thead><tbody>"
    yield from (_row(row) for row in table.rows)
    yield "</tbody></table></div>"
    yield from (f'<p class="note">{safe(note)}</p>' for note in table.notes)
    yield "</section>"


def _row(row: Row) -> str:
    name, *values = row.cells
    cells = "".join(f"<td>{safe(value)}</td>" for value in values)
    title = f' title="{_TONES[row.tone]}"' if _TONES[row.tone] else ""
    return f'<tr class="{row.tone}"{title}><th scope="row">{safe(name)}</th>{cells}</tr>'


def _prose(block: Prose) -> Iterator[str]:
    yield f"<section><h2>{safe(block.heading)}</h2>"
    yield from (f"<p>{safe(paragraph)}</p>" for paragraph in block.paragraphs)
    if block.details:
        yield f"<details><summary>{safe(block.details_heading)}</summary>"
        yield from (f"<p>{safe(paragraph)}</p>" for paragraph in block.details)
        yield "</details>"
    yield "</section>"


def _chart(chart: Chart, number: int) -> Iterator[str]:
    yield f"<section><h2>{safe(chart.heading)}</h2><figure>"
    yield render_svg(chart, identity=f"chart-{number}")
    yield f'<figcaption class="note">{safe(chart.description)}</figcaption></figure></section>'
