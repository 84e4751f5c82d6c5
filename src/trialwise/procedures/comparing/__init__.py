"""Is the candidate better than the reference? Two runs, pair by pair: pure, from their records.

run_comparison         the whole comparison, and what is concluded of each criterion
trial_pairing          which trials belong together, and what they took
change_assessment      which test is valid for a criterion, and what it says
score_lift             how much the mean score changed
comparison_findings    the types of what is concluded
"""
