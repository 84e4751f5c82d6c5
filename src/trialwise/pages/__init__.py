"""Pages: what is shown of a record, a plan or a check of the set-up, as documents.

A page chooses every sentence and every number. How they look is up to the renderers.

- `finding_facts`: the word, the rate and the interval that stand for one finding
"""
