"""Renderers: documents as text for a terminal, a browser or a CI server.

A renderer chooses no sentence and no number; it only lays out what a page holds.

- `capabilities`: what a stream can show, and how text stands out on it
- `document_text`: any document as text, with its tables, charts and intervals
- `results_text`: the results of a suite in a terminal
- `document_markdown`: a document as Markdown, in which nothing acts
- `ci_formats`: the results of a suite for CI servers and programs
- `progress`, `progress_status`: how runs, or several arms together, are going, while they are going
- `html`: pages, fragments for notebooks, and charts as SVG
"""
