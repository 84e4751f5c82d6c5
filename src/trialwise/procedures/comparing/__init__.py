"""Is the candidate better than the reference? Two runs, pair by pair: pure, from their records."""
