"""What is kept on disk.

runs          a folder for each run: plan, journal and record
run_files     plan and record, read in any format; why a run cannot be resumed or kept
run_journals  trials, texts and what was set aside, read line by line and repaired
journal       one checksummed line for each trial, durable as it completes
comparisons   a folder for each comparison: its arms, its rules and its verdict
baselines     measured baselines, as files that people and git can read, and the cache of designs
"""
