"""One run: the loop, what it counts and keeps, and what it reports."""
