"""Outcomes that somebody else produced, read from files: who was asked what, and whether it held.

| format      | file                                      | an input is         | a criterion is |
|-------------|-------------------------------------------|---------------------|----------------|
| `jsonl`     | one JSON object a line, or a list of them | a field             | a result field |
| `csv`       | a table with a header line                | a column            | a column       |
| `junit`     | JUnit XML: pytest, Surefire, Jest         | a test's parameters | a test         |
| `inspect`   | Inspect AI logs, `.eval` and `.json`      | a sample            | a scorer       |
| `promptfoo` | promptfoo results, `.json` and `.jsonl`   | a test's variables  | `success`      |

Each module describes its format with an example; `read_outcomes` tells them apart by content.
"""
