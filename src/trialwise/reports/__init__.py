"""Reports: the files that a user asks for, each in a declared format.

    formats   every format, declared once, and a report written whole or not at all, of runs
              and of several arms

To add a format, write a function from `ReportSource` to text and declare it with `report_format`:
in `formats` for a built-in, or in any distribution under the entry point group
`trialwise.reporters`. The suite key `reports`, `-o`, `--format` and their help derive from it.
"""
