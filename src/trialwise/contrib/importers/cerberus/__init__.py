"""Suites of cerberus.

- `cerberus_suite`: the file, its adapter and its studies
- `cerberus_criteria`: one contract of a study as a criterion
- `cerberus_judges`: judge contracts, and the models they ask
- `assertion_idioms`: an assertion in JavaScript as checks, and the list of what is converted
- `assertion_syntax`, `assertion_parts`, `assertion_patterns`: the parser, the parts of an output,
  and regular expressions
"""
