"""From a contract to a plan, or to the reasons why there is none.

run_plan          the whole run: experiments, criteria, latency and gates
criterion_plans   which procedure plans a criterion, and what a judge among its checks changes
"""
