"""Readers of data files. They are strict, and no file can make them run code.

A file is read as it stands or refused: with its name, the line, the column, what is
wrong there and what to do. Nothing is guessed, skipped or filled in.
"""

from dszog.readers.csv import Table, read_csv
from dszog.readers.libsvm import LabelledRows, read_libsvm

__all__ = ["LabelledRows", "Table", "read_csv", "read_libsvm"]
