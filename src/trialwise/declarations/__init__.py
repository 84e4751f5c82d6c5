"""How a check, a service or a setting is declared: once, beside what it does.

A declaration says what a key is called, which kind of value it holds and what it means. The suite
reader, the JSON Schema, the reference page, the options of the command line, the pytest marker and
the stubs are all derived from it.

    written      what a value looks like to a kind: its place, and who reads it; Python values;
                 which name was probably meant
    scalars      kinds of single values: text, flag, count, number, choice, rate, time, pace, money
    structures   kinds made of others: list, mapping, record with keys
    resources    kinds that reach outside: URLs, commands, folders, functions and secrets
    amounts      parsers of "90%", "30s", "5/s" and "$2", and of the options of commands
    signatures   keys from the signature and the docstring of a constructor, and its call; keys
                 from the fields of the settings of runs and criteria
"""
