"""Renderers: documents as text for a terminal, a browser or a CI server.

A renderer chooses no sentence and no number; it only lays out what a page holds.

- `capabilities`: what a stream can show, and how text stands out on it
- `character_charts`: charts in a terminal
- `html`: pages, fragments for notebooks, and charts as SVG
"""
