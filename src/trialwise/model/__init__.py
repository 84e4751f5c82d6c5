"""Frozen data types: no clock, no files, no network.

contract, criterion, claim              what is promised, of which inputs, about whom
postcondition, matcher                  what is checked, and what a number is held against
options, run_settings                   how a run is made
gate, metrics                           limits on repeated runs, and what came of them
plan                                    a run, resolved before the first trial
reply, trace, trial                     what came back, and what it was checked for
trial_table, trial_columns, trial_lines trials in columns, and the line of each in a journal
evidence                                what reports need, and what a decision rests on
verdict                                 findings, and the verdict that keeps them
baseline                                what was observed of an earlier version, and under what
run                                     a run as it is kept: its trials and what they name
codec (`plain_forms`, `lines`)          values as plain JSON and back
fingerprint, stored_plans               short names of contents and plans, and earlier records
"""
