"""Decide outcomes that are there already, read from result files.

| format      | file                                      | an input is         | a criterion is |
|-------------|-------------------------------------------|---------------------|----------------|
| `trialwise` | the rows that `run -o results.jsonl` wrote | a field             | a grader       |
| `jsonl`     | one JSON object a line, or a list of them | a field             | a result field |
| `csv`       | a table with a header line                | a column            | a column       |
| `junit`     | JUnit XML: pytest, Surefire, Jest         | a test's parameters | a test         |
| `inspect`   | Inspect AI logs, `.eval` and `.json`      | a sample            | a scorer       |
| `promptfoo` | promptfoo results, `.json` and `.jsonl`   | a test's variables  | `success`      |

This package reads the first. The files of other tools are read by `trialwise.contrib.results`,
where each reader describes its format with an example.

- `outcome_rows`: the rows of a file, and reading files within bounds on their size
- `outcome_reading`: what a format is, which field means what, and our own format
- `outcome_trials`: the trials that rows belong to, their order, and their numbers
- `outcome_plans`: what a user asks, and the plan for it

A name loads its module on first use; type checkers read `__init__.pyi`.
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

#: Where each public name lives.
_MODULES = {
    "outcome_reading": "read_outcomes",
    "outcome_rows": "OutcomeRow Outcomes OutcomesUnreadable",
    "trialwise.runtime.outcome_scoring": "Scored measure_outcomes score",
}
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
