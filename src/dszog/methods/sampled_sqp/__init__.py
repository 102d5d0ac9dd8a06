"""The sampled SQP: models of constraints that matter, learned by values and kept."""

from dszog.methods.sampled_sqp.method import SampledSQP
from dszog.methods.sampled_sqp.state import SampledSQPState

__all__ = ["SampledSQP", "SampledSQPState"]
