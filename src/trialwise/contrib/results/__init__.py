"""Readers of result files that other tools write, for `trialwise score`.

- `junit_reports`: JUnit XML of pytest, Maven, Gradle and Jest
- `inspect_results`: logs of Inspect AI, `.eval` and `.json`
- `promptfoo_results`: results of promptfoo, `.json` and `.jsonl`
- `zip_archives`: archives within bounds, for `.eval` logs

Each of the first three declares its `FORMAT`; `trialwise.outcomes.outcome_reading` finds it.
"""
