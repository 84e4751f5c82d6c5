"""Suites of promptfoo.

- `promptfoo_suite`: the file, and its prompts and providers as contracts
- `promptfoo_cases`: tests, their variables and the assertions they share
- `promptfoo_groups`: tests that assert the same, as one criterion
- `promptfoo_assertions`: one assertion as a check or a judge
- `promptfoo_providers`: a provider as a service
- `promptfoo_prompts`: prompts, and the variables in them
- `embedded_json`: the check that an output contains JSON
- `provider_calls`: calls a provider that is a Python file
"""
