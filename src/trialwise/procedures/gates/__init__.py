"""Gates on numbers that repeated runs have: how many runs they take, and what they come to."""
