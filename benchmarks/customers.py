"""Compute the reference of the problem in which no customer gets worse ::

python benchmarks/customers.py --model linear neural --m 10000 100000 1000000
"""

import argparse
from dataclasses import asdict

from dszog_bench.customers import MODELS, Customers, save_reference


def main() -> None:
    """Compute, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--m", nargs="+", type=int, default=[10**4, 10**5, 10**6])
    parser.add_argument("--starts", type=int, default=5)
    arguments = parser.parse_args()
    for model in arguments.model:
        for m in arguments.m:
            found = Customers(model, m).reference(arguments.starts)
            print({k: v for k, v in asdict(found).items() if k != "w"}, flush=True)
            print(f"Stored in {save_reference(found)}", flush=True)


if __name__ == "__main__":
    main()
