"""The commands of the periphery; the command line finds them by name.

- `import_command`: `trialwise import`
- `conformance_command`: `trialwise conformance`
"""
