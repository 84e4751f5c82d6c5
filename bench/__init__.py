"""Speed, measured as ratios within one run: `python -m bench`, or `make bench`."""
