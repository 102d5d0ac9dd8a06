"""What people see of a run: plots, progress, loggers."""
