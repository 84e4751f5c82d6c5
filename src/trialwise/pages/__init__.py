"""Pages: what is shown of a record, a plan or a check of the set-up, as documents.

A page chooses every sentence and every number. How they look is up to the renderers.

Of one finding:

- `finding_facts`: its word, rate and interval, what it asks, and why its trials ended
- `judge_facts`: what was measured of a judge, and what its errors leave of a rate
- `gate_facts`: what is said of a gate in the same way everywhere

The report of a run and of a suite, section by section:

- `run_report`: the whole document
- `verdict_meaning`: the verdict, what it means, what it does not, and how often the rules err
- `criterion_details`: all intervals on one scale, and the criteria one by one
- `criterion_charts`: where the run went, and what its design does at every true rate
- `latency_details`: latency limits, and how long trials took
- `gate_details`: gates and their evidence
- `trial_sections`: which trials to read, and every input against every criterion
- `trial_cards`: one trial to read, with what an agent said and did in order

The results, as every short format shows them:

- `results`: the results of a run and of a suite, and what a reader must not miss
- `results_page`: the same as a page, and the pieces of it that others show
- `result_lines`: a line for each criterion, input, latency limit and gate
- `failure_groups`: which trials a finding counts, and why those that failed did
- `suite_totals`: what a suite decides, how often it errs, and what it took
- `json_report`: everything a program may want to know

The full analysis; what only a procedure can say comes from its `explain`:

- `analysis`: the whole document, what it says of the run, and the checklist of conformance
- `analysis_criterion`: the sections of a criterion

How many trials are needed:

- `sizing`: the page of each question; regression and latency
- `sizing_sequential`, `sizing_fixed`, `sizing_compare`: rates, and two arms

Elsewhere:

- `comparison`: two services on the same inputs
- `arm_standings`: several arms beside each other, and what a choice will take
- `run_rules`: what a run will do, before its first trial
"""
