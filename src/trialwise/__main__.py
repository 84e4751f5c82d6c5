"""`python -m trialwise`: the command line, where its script is not on the path."""

from trialwise.cli.main import main

if __name__ == "__main__":
    main()
