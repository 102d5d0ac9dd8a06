"""Checkpoints: what a run needs to go on, in files that are whole or not there."""
