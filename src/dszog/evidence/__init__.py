"""What an answer rests on: fresh values, bounds, residuals."""
