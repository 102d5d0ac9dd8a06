"""`python -m dszog` is `dszog`."""

from dszog.cli import main

main()
