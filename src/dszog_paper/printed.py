"""The numbers that the paper prints, in percent, to stand beside ours.

W. Shi, H. Gao and B. Gu, "Gradient-Free Method for Heavily Constrained Nonconvex
Optimization", ICML 2022. Means and, where given, standard deviations over ten runs.
"""

from __future__ import annotations

from typing import TypeAlias

Printed: TypeAlias = tuple[float, float | None]  # mean and spread
Rows: TypeAlias = dict[str, dict[str, Printed]]  # by data set, then by column

_TEXT = """
2   dszog       zoscgd      zopsgd      acczomda    accszofw
a9a 75.90+-0.26 75.35+-0.13 75.37+-0.19 75.52+-0.21 75.22+-0.12
w8a 89.94+-0.28 83.53+-0.58 89.02+-0.97 89.14+-0.23 89.34+-0.33
gen 82.33+-0.76 66.33+-0.07 66.83+-0.57 72.84+-0.45 72.03+-0.23
svm 79.56+-0.49 71.21+-0.57 78.63+-0.26 79.01+-0.21 71.88+-0.34

3   dszog       zoscgd      zopsgd      acczomda    accszofw
D1  87.33+-0.38 51.08+-0.57 59.16+-0.37 66.33+-0.19 55.23+-0.46
D2  84.75+-0.25 69.70+-0.24 68.00+-0.54 69.55+-0.29 76.13+-0.45
D3  83.58+-0.14 66.33+-0.30 66.84+-0.57 66.35+-0.45 60.47+-0.66
D4  64.91+-0.94 52.16+-0.38 55.25+-0.90 55.40+-0.51 54.86+-0.43

6   0.01        0.001       0.0001
D1  87.33+-0.38 87.21+-0.34 80.68+-0.32
D2  84.75+-0.25 83.01+-0.24 67.34+-0.78
D3  83.58+-0.14 83.78+-0.45 77.22+-0.32
D4  64.91+-0.94 63.27+-0.45 55.13+-0.46

7   0.01        0.001       0.0001
a9a 75.90+-0.26 74.45+-0.67 65.33+-0.43
w8a 89.94+-0.28 88.28+-0.80 56.88+-0.22
gen 82.33+-0.76 81.78+-0.45 57.34+-0.22
svm 79.56+-0.49 79.56+-0.45 56.23+-0.75

8   0.01        0.001       0.0001
D1  87.33+-0.38 86.12+-0.23 85.13+-0.22
D2  84.75+-0.25 83.22+-0.14 83.05+-0.03
D3  83.58+-0.14 83.29+-0.31 81.18+-0.22
D4  64.91+-0.94 62.12+-0.31 62.23+-0.22

9   0.01        0.001       0.0001
a9a 75.90+-0.26 73.33+-0.31 73.64+-0.22
w8a 89.94+-0.28 89.23+-0.17 88.82+-0.56
gen 82.33+-0.76 82.11+-0.64 81.28+-0.34
svm 79.56+-0.49 78.56+-0.44 78.45+-0.76

10  dszog zoscgd zopsgd
D1  84.25 55.75  62.75
D2  78.50 58.25  53.25
D3  87.50 60.25  57.50
D4  59.52 54.50  52.25

11  0.1   1     10
D1  84.25 84.73 83.12
D2  78.50 77.98 78.33
D3  87.50 87.67 87.85
D4  59.52 58.61 58.98

12  a=0.9,b=0.1 a=0.9,b=0.5 a=0.9,b=0.9 b=0.9,a=0.1 b=0.9,a=0.5 b=0.9,a=0.9
D1  83.93       84.12       84.25       82.12       83.21       84.25
D2  78.33       78.27       78.50       77.29       78.45       78.50
D3  85.34       87.41       87.50       87.23       87.14       87.50
D4  58.82       57.23       59.52       58.78       59.48       59.52
"""


def _table(text: str) -> tuple[int, Rows]:
    """Read a table: its number and columns, then a line for each data set."""
    (number, *columns), *lines = (line.split() for line in text.splitlines())
    return int(number), {
        data: dict(zip(columns, map(_entry, entries), strict=True))
        for data, *entries in lines
    }


def _entry(text: str) -> Printed:
    mean, _, spread = text.partition("+-")
    return float(mean), float(spread) if spread else None


PRINTED: dict[int | str, Rows] = dict(map(_table, _TEXT.strip().split("\n\n")))
"""The tables of accuracies, by number."""
