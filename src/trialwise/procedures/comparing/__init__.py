"""Is a candidate better than the control? Arms, pair by pair: pure, from the records of their runs.

run_comparison         the whole comparison of two or more arms
criterion_conclusion   what is concluded of one criterion under two arms
family_levels          how all tests share a level, and what that guarantees
answer_sentences       the sentences that answer the question
trial_pairing          which trials belong together
pair_following         the pairs of each test in order, and when they decide it
validity_checks        whether the arms saw the same cases and were measured alike
change_assessment      which test is valid for a criterion
pair_evidence          what pairs say, by each of these tests
preference_evidence    which arm's replies a judge prefers, as one more criterion
amount_findings        all that is found beside the pass rate
amount_differences     what pairs took, in time, money and tokens
arm_costs              what a success costs
repeat_spread          how much repeats of one input scatter, and which inputs are flaky
unpaired_evidence      what arms that cannot be paired say
score_lift             how much the mean score changed
amount_types           the types of what is found beside the pass rate
comparison_findings    the types of what is concluded
choice_following       the rounds of a choice between arms in order, and which arms are still asked
choice_conclusion      which arm is best, or how arms are described beside each other
choice_findings        the types of both
"""
