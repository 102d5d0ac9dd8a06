"""A real grid: the cheapest dispatch that survives every outage, ours and others'."""
