"""Least squares with weights of at least 0 that SciPy's nnls is wrong about."""

from __future__ import annotations

import numpy as np

# No column leads towards the target, but for rounding. Under some BLAS kernels nnls of
# SciPy 1.16 to 1.17.1 claims a residual of 0.915; that of its weights is 1.344.
A_ROUNDED = np.array(
    [
        [0.09869686526223068, 0.07601600106484643, 0.15018089357457218],
        [-0.38520742206597486, 0.0045350290317346656, -0.4264728949980235],
        [0.12542098421592032, 0.5013838817470087, -0.5180317341078938],
        [-0.7767682966300574, -0.8197131988591311, -0.5482817860440146],
        [-0.4719902126542925, 0.26624326439221485, -0.4760218215446659],
    ]
)
B_ROUNDED = np.array(
    [
        0.9762790907348218,
        -0.0030235889242815656,
        0.1371070223858664,
        0.16508154645022988,
        -0.02863114280094579,
    ]
)
# Under other kernels the same nnls is wrong here. The answer is 1 for the first column.
A_WHOLE = np.array(
    [[2.0, -2.0, -1.0, 0.0], [3.0, 0.0, -3.0, 2.0], [2.0, 3.0, -1.0, 0.0]]
)
B_WHOLE = np.array([3.0, 3.0, 1.0])
