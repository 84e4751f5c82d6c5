"""How many trials a question needs, and what they cost, as frozen tables.

sizing_base           what all questions share, and the ways to ask for a required rate
sequential_sizing     a required rate, decided early
fixed_sizing          a required rate, or an interval of a width, by a fixed number
regression_sizing     a drop from a baseline, and latency percentiles
paired_sizing         a question about a candidate, pair by pair
comparison_sizing     two runs, pair by pair, and the best of several arms
"""
