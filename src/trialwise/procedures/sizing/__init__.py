"""How many trials a question needs, and what they cost, as frozen tables.

sizing_base           what all questions and answers have in common
sizing_questions      the question of a sequential plan
sequential_sizing     a required rate, decided early
fixed_sizing          a required rate, or an interval of a width, by a fixed number
regression_sizing     a drop from a baseline
latency_sizing        percentiles
comparison_sizing     two runs, pair by pair
choice_sizing         the best of several arms, by simulation
trial_costs           trials in money and time, and the rates at which curves are drawn
"""
