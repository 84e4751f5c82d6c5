"""From a contract to a plan, or to the reasons why there is none.

run_plan          the whole run: experiments, criteria, latency and gates
criterion_plans   which procedure plans a criterion
judged_plans      what a judge among the checks changes in a plan
latency_plans     the latency limits of a plan
"""
