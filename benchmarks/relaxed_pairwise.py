"""Compute the optimum of the relaxed pairwise problem for some data seeds.

Prints and stores what `dszog_bench.relaxed.load_optimum` reads ::

    python benchmarks/relaxed_pairwise.py
"""

import argparse
from pathlib import Path

from dszog_bench.relaxed import DEFAULT_CACHE, reference_optimum, save_optima


def main() -> None:
    """Compute, print and store the optimum for each data seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE)
    arguments = parser.parse_args()
    optima = {}
    for seed in arguments.seeds:
        found = reference_optimum(seed, arguments.starts)
        optima[seed] = found
        print(
            f"seed {seed}: value {found.value:.6f}, norm {found.norm:.4f}, violation "
            f"{found.worst_violation:.1e}, KKT residual {found.kkt_residual:.1e}, "
            f"multipliers sum to {found.multiplier_sum:.5f}, "
            f"{found.n_starts_at_best} of {found.n_starts} starts at the best, "
            f"{found.seconds:.2f} s; without constraints value "
            f"{found.unconstrained_value:.6f}, violation "
            f"{found.unconstrained_worst_violation:.4f}",
            flush=True,
        )
    save_optima(optima, arguments.cache)
    print(f"Stored in {arguments.cache}")


if __name__ == "__main__":
    main()
