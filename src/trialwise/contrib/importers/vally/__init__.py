"""Suites of vally.

- `vally_suite`: the file, and its stimuli as samplings
- `vally_graders`: one grader as a check or a judge
"""
