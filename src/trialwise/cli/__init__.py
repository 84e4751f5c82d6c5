"""The command line: reads options, calls `trialwise.runtime`, prints. The only place with click.

main                  finds the subcommand; turns what happens into an exit code
<name>_command        one module for each subcommand, loaded when it is called
plan                  `trialwise plan`, question by question
selecting             the suite, its contracts, and the settings that options change
stored                where runs are kept, and which ones an argument means
watching, watched_run the loop of `run --watch`, and one run of it
output_files          the option `-o`, and where answers about several arms go
printing, exits       standard output; exit codes
baseline_listing, trial_listing, judge_texts   what commands print
"""
