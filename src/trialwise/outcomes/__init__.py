"""Decide outcomes that another tool produced, read from its result files.

| format      | file                                      | an input is         | a criterion is |
|-------------|-------------------------------------------|---------------------|----------------|
| `jsonl`     | one JSON object a line, or a list of them | a field             | a result field |
| `csv`       | a table with a header line                | a column            | a column       |
| `junit`     | JUnit XML: pytest, Surefire, Jest         | a test's parameters | a test         |
| `inspect`   | Inspect AI logs, `.eval` and `.json`      | a sample            | a scorer       |
| `promptfoo` | promptfoo results, `.json` and `.jsonl`   | a test's variables  | `success`      |

`trialwise.contrib.results` reads `junit`, `inspect` and `promptfoo`. Each reader describes its
format with an example.

- `outcome_reading`: reads files, and finds the reader of each
- `csv_tables`, `json_lines`: the readers of this package; `field_records`: what both share, and
  which field means what
- `bounded_files`: files within bounds on their size, single values, and the error that lists what
  is wrong with a file
- `outcome_rows`: the rows of a file; `outcome_trials`: the trials they belong to, and their order
- `outcome_questions`: what a user asks; `outcome_plans`: the plan for it
- `used_trials`: the trials that decide; `outcome_metrics`: numbers beside the verdict
"""
