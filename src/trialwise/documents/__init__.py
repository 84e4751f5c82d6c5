"""What a page is made of, before anyone decides how it is shown.

    blocks    headings, badges, facts, prose, tables, charts and details; a document holds them
    charts    one model for every chart
    numbers   how numbers are written: rates, percents, counts, money, durations
    printable text that fits its columns and cannot move a cursor
    phrases   words that several pages share: stop reasons, decisions, plurals

Procedures and pages build documents; renderers show them. Nothing here knows a run.
"""
