"""The mathematics: estimates, penalties, draws, weights, and small subproblems."""
