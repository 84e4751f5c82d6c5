"""Readers of result files that other tools write, for `trialwise score`.

- `junit_reports`: JUnit XML of pytest, Maven, Gradle and Jest
- `inspect_results`: logs of Inspect AI, `.eval` and `.json`
- `promptfoo_results`: results of promptfoo, `.json` and `.jsonl`
- `vally_results`: results of vally, `results.jsonl`
- `deepeval_results`, `pydantic_evals_results`, `lm_eval_results`: reports of these tools, as JSON
- `langfuse_scores`: scores that Langfuse exports
- `graded_trials`: trials with grades by name, which the last five share
- `zip_archives`: archives within bounds, for `.eval` logs

Each but the last two declares its `FORMAT`; `trialwise.outcomes.outcome_reading` finds it.
"""
