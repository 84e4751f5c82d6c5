"""The command line: reads options, calls `trialwise.runtime`, prints pages. Only it has click.

main                  finds the subcommand; turns what happens into an exit code
options               options that commands share, kinds of values, help pages
<name>_command        a subcommand, loaded when it is called; `stored_commands` has four of them
plan                  `trialwise plan`, question by question
watching, watched_run the loop of `run --watch`, and one run of it
printing, exits       standard output; exit codes
"""
