"""The experiments of the paper: its data, its two applications, tables and figures.

Nothing in `dszog` needs this package; it is the library's first user.
"""
