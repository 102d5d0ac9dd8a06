"""The probability distribution over the constraints, and how it learns."""

from dszog.kernels.projection import project_onto_simplex, project_with_background
from dszog.kernels.tables import DualStep
from dszog.maths.distribution.base import Distribution
from dszog.maths.distribution.dense import DenseDistribution
from dszog.maths.distribution.sparse import SparseDistribution
from dszog.maths.distribution.uniform import UniformDistribution

DISTRIBUTIONS: dict[str, type[Distribution]] = {
    "sparse": SparseDistribution,
    "dense": DenseDistribution,
    "uniform": UniformDistribution,
}
"""Every distribution by the name `DSZOG(distribution=...)` knows it by."""

__all__ = [
    "DISTRIBUTIONS",
    "DenseDistribution",
    "Distribution",
    "DualStep",
    "SparseDistribution",
    "UniformDistribution",
    "project_onto_simplex",
    "project_with_background",
]
