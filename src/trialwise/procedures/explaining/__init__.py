"""The words of the full analysis that only a procedure can say about its own findings.

    analysis_sections   sections and rows that several procedures share
    fixed_samples       compliance, regression and corpus: a cutoff and its exact error rates
    other_rules         what other rules say of a comparison with a baseline
    stopping_rules      sequential designs: boundaries, errors, and the exact inference after a stop

A procedure's `explain` imports its module when somebody asks for the analysis.
"""
