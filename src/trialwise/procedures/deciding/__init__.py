"""From a plan and its trials to a verdict: pure, so that anybody can decide a record again.

run_verdict         the whole run
criterion_finding   one criterion: which trials count, what its procedure concludes
trial_rows          trials as a criterion sees them, and what counting them says, also about
                    their independence
partial_findings    plans that were cut short, or certain before their end
judge_corrections   what a judge's measured errors leave of a conclusion
containment         what a challenge sampling says of a guardrail
"""
