"""Is the candidate better than the reference? Two runs, pair by pair: pure, from their records.

run_comparison          the whole comparison
criterion_comparison    one criterion of both runs
trial_pairing           which trials belong together
change_assessment       what the pairs show
compared_amounts        latency, tokens and money of both runs
comparison_evidence     the numbers behind a finding
comparison_findings     what is concluded
"""
