"""What a page is made of, before anyone decides how it is shown.

- `blocks`: sections, badges, facts, prose, tables and details; a document holds them
- `charts`: one model for every chart, intervals and bars included
- `axes`: the two sides of a chart, and round values on them
- `tables`: tables built column by column
- `cards`: one card for each of many trials, and the calls of an agent
- `extent`: how much of a page a block takes, and texts cut to fit
- `results`: the results of a suite, a line for each criterion
- `numbers`: how numbers are written: rates, percents, counts, money, durations
- `phrases`: words that several pages share: stop reasons and refusals
- `printable`: text that fits its columns and cannot move a cursor

Procedures and pages build documents; renderers show them. Nothing here knows a run.
"""
