"""What is measured: problems with known answers, yardsticks, and other libraries.

Nothing in `dszog` needs this package; `dszog bench` runs it.
"""
