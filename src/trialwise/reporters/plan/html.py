"""A plan as a page of its own."""

from __future__ import annotations

from trialwise.documents import blocks
from trialwise.renderers.html.page_frame import render_document
from trialwise.reporters.plan.page import Block, Page, Prose, Table

__all__ = ["render_plan_html"]


def render_plan_html(page: Page) -> str:
    """The page as a complete HTML document.

    Args:
        page: What to show.
    """
    document = blocks.Document(
        kind="Plan",
        title=page.title,
        lead=page.recommendation,
        facts=page.facts,
        blocks=tuple(_convert_block(block) for block in page.blocks),
    )
    return render_document(document)


def _convert_block(block: Block) -> blocks.Block:
    if isinstance(block, Table):
        rows = tuple(blocks.Row(cells=row.cells, tone=row.tone) for row in block.rows)
        return blocks.Table(
            heading=block.heading, columns=block.columns, rows=rows, notes=block.notes
        )
    if not isinstance(block, Prose):
        return block
    prose = blocks.Prose(paragraphs=block.paragraphs)
    more = blocks.Prose(paragraphs=block.details)
    details = (blocks.Details(summary=block.details_heading, blocks=(more,)),)
    return blocks.Section(
        heading=block.heading, blocks=(prose, *(details if block.details else ()))
    )
