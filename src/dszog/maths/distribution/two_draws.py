r"""One estimate for the weights from two draws: the uniform one and that from them.

The constraints that are drawn from the weights are evaluated at the iterate as well, so
their penalties are known for nothing. A penalty that either draw may bring to light is
divided by the chance that at least one of them does [1]_,

.. math:: \pi_j = 1 - (1 - p_j)^{|M_2|} \, (1 - |M_3| / m),

which leaves the estimate unbiased. In the paper a constraint is heard of once in
:math:`m / |M_3|` iterations, however large its weight, and then with this factor; here
one of weight is heard of in nearly every iteration, with a factor of nearly 1.

References
----------
.. [1] D. G. Horvitz and D. J. Thompson, "A generalization of sampling without
   replacement from a finite universe", Journal of the American Statistical Association
   47(260), 1952.
"""

from __future__ import annotations

from dszog.contract.arrays import FloatArray, IntArray
from dszog.kernels.plain import combine
from dszog.maths.distribution.base import Distribution


def combined(
    distribution: Distribution,
    drawn: IntArray,
    drawn_penalties: FloatArray,
    duals: IntArray,
    dual_penalties: FloatArray,
    spread: float,
) -> tuple[IntArray, FloatArray]:
    """Return all that was drawn, and penalties for :meth:`Distribution.learn`.

    `drawn` comes from the distribution, with repeats, ascending, and `duals` from the
    uniform draw, each of which stands for `spread` constraints. Returned are distinct
    indices, ascending, and penalties scaled such that each stands for as many.
    """
    return combine(
        *(drawn, drawn_penalties, duals, dual_penalties),
        *(distribution.weights_of, spread),
    )
