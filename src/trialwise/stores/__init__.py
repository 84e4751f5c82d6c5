"""What is kept on disk.

runs        a folder for each run: plan, journal and record
comparisons  a folder for each comparison: its arms, its rules and its verdict
run_refusals  why a run cannot be resumed, or its record not be kept
run_files   plan and record, read in any format
journal     one checksummed line for each trial, durable as it completes
journal_repair  sets damaged lines of an unfinished run aside
journal_trials  the trials of a journal, read line by line
line_types  the types of what stands in a line
run_texts   inputs and tracebacks of a run, each once
record_parts  plans and verdicts, read back from a file
baselines   measured baselines, as files that people and git can read
designs     sequential designs, so that none is searched for twice
"""
