"""Frozen data types: no clock, no files, no network.

contract, criterion, sampling, claim    what is promised, of which inputs, about whom
postcondition, matcher, covariate       what is checked, what is expected, what may differ
options, run_settings, intent           how a run is made, and what it is for
gate, metrics                           limits on repeated runs, and what came of them
plan                                    a run, resolved before the first trial
reply, trace, outcome, trial, tally     what came back, what it was checked for, and counts
trial_table, run_trials                 trials in columns, of an experiment and of a run
                                        (`trial_signs`, `expense_columns`, `score_columns`,
                                        `kept_trial`: what is in them)
successful_latencies                    how long successful trials took
evidence                                what reports need, and what a decision rests on
verdict                                 findings, and the verdict that keeps them
baseline                                what was observed of an earlier version
run, kept_texts, trial_text             a run as it is kept, what its trials name, and their lines
codec (`_forms`, `_hints`, `lines`)     values as plain JSON and back
fingerprint                             short names of contents
foreign_fields                          objects that somebody else wrote
upgrade                                 records of earlier versions
"""
