"""Pages: what is shown of a record, a plan or a check of the set-up, as documents.

A page chooses every sentence and every number. How they look is up to the renderers.

Of one finding:

- `finding_facts`: the word, the rate and the interval that stand for one finding
- `requirements`: what a criterion asks, and why its trials ended
- `criterion_evidence`: the rule that decided it, and by what
- `corrected_rates`: what a judge's errors leave of its rate

The report of a run and of a suite, section by section:

- `run_report`: the whole document
- `verdict_meaning`: the verdict, what it means and what it does not
- `error_rates`: how often the rules err
- `criterion_details`: the criteria, in a table and one by one
- `interval_strips`: all intervals on one scale
- `path_chart`, `counted_trials`: where the run went, between which bounds
- `design_curves`: what the design does at every true rate
- `latency_distribution`: how long trials took
- `gate_details`, `reliability_decay`, `stability_scores`: gates and their evidence
- `failure_reasons`: why trials failed
- `input_rates`: every input against every criterion
- `trial_selection`, `trial_cards`, `call_timeline`, `worst_trace`: trials to read
- `run_costs`: time, tokens and money
- `provenance`: where the numbers come from, and what qualifies them

The results, as every short format shows them:

- `results`: the results of a run and of a suite
- `result_lines`: a line for each criterion, input, latency limit and gate
- `attention`: what a reader must not miss
- `failure_groups`: which trials a finding counts, and why those that failed did
- `suite_totals`: what a suite decides, how often it errs, and what it took
- `gate_facts`, `judge_facts`: what is said of gates and of judged rates in the same way
- `json_report`: everything a program may want to know

The full analysis; what only a procedure can say comes from its `explain`:

- `analysis`: the whole document
- `analysis_run`, `analysis_criterion`, `analysis_latency`, `analysis_gates`,
  `analysis_guardrail`: its sections

How many trials are needed:

- `sizing`: the page of each question
- `sizing_sequential`, `sizing_fixed`, `sizing_regression`, `sizing_latency`,
  `sizing_comparison`: one question each
- `sizing_tables`, `sizing_words`: what they share

Elsewhere:

- `comparison`: two services on the same inputs
- `run_rules`: what a run will do, before its first trial
- `notebook_summary`: results in a notebook
"""
