"""What `procedures.comparison` and `procedures.choice` are made of: pure, from the records of runs.

findings        the types of what is asked and concluded
amount_types    the types of what is found beside the pass rate
pairing         which trials belong together, and whether the arms were measured alike
pair_following  the pairs of each test in order, when they decide it, and how often a service
                differs from itself
evidence        what pairs say by each test, and what arms that cannot be paired say
assessment      which test is valid for a criterion, and for a judge's preferences
amounts         what trials and successes cost, how scores changed, how steady the arms are
words           the sentences
"""
