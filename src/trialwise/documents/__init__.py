"""What a page is made of, before anyone decides how it is shown.

- `blocks`: sections, badges, facts, prose, tables, details and cards; a document holds them
- `charts`: one model for every chart, intervals included, with its axes
- `results`: the results of a suite, a line for each criterion
- `numbers`: how numbers are written, and words that several pages share, such as stop reasons
- `printable`: text that fits its columns and cannot move a cursor, and how much a block takes

Procedures and pages build documents; renderers show them. Nothing here knows a run.
"""
