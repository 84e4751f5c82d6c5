"""The words of the full analysis that only a procedure can say about its own findings.

    analysis_sections   sections and rows that several procedures share
    fixed_samples       compliance and regression: an integer cutoff and its exact error rates
    corpus_samples      an enumerated corpus, sampled or known whole
    stopping_rules      sequential designs: boundaries, errors, and the exact inference after a stop
    observations        observational criteria, which claim nothing about a rate

A procedure's `explain` imports its module when somebody asks for the analysis.
"""
