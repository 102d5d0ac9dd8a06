"""The sampled SQP where one call of the user's function returns many constraints."""
