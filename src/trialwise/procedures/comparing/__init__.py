"""Is a candidate better than the control? Arms, pair by pair: pure, from the records of their runs.

run_comparison         the whole comparison of two or more arms
criterion_conclusion   what is concluded of one criterion under two arms
answer_sentences       the sentences that answer the question
trial_pairing          which trials belong together, and what they took
change_assessment      which test is valid for a criterion, and what it says
score_lift             how much the mean score changed
comparison_findings    the types of what is concluded
"""
