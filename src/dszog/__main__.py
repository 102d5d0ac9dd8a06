"""`python -m dszog` is `dszog`."""

from dszog.cli import main

if __name__ == "__main__":
    main()
