"""How many trials a question needs, and what they cost, as frozen tables.

sizing_plans          one function for each question
sizing_questions      the questions, with what was asked for
sequential_sizing     a required rate, decided early
fixed_sizing          a required rate, or an interval of a width, by a fixed number
regression_sizing     a drop from a baseline
latency_sizing        percentiles
comparison_sizing     two runs, pair by pair
trial_costs           trials in money and time, and the rates at which curves are drawn
"""
