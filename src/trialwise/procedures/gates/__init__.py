"""Gates: limits on numbers of repeated runs. They have no error rate.

run_groups             how many runs each input gets
gate_findings          what each gate comes to, and which criteria say whether a run passes
reliability_metrics    do all runs of an input succeed?
stability_metrics      how steady were the sessions?
score_metrics          pass@k, pass^k, weighted scores and flakiness
gate_intervals         these numbers with their intervals
"""
