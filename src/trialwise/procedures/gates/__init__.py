"""Gates: limits on numbers of repeated runs. They have no error rate.

run_groups             how many runs each input gets
run_grades             which criteria say whether a run passes
gate_findings          what each gate comes to
reliability_metrics    do all runs of an input succeed?
stability_metrics      how steady were the sessions?
score_metrics          pass@k, pass^k, weighted scores and flakiness
gate_intervals         intervals of these numbers
measured_numbers       a number with its interval
"""
