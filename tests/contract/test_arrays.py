import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dszog.contract.arrays import is_among

NUMBERS = st.lists(st.integers(0, 9) | st.integers(0, 10**12), max_size=30)


@given(NUMBERS, NUMBERS)
def test_numbers_are_found_among_others_as_numpy_finds_them(
    numbers: list[int], others: list[int]
) -> None:
    a, b = (np.array(some, dtype=np.int64) for some in (numbers, others))

    np.testing.assert_array_equal(is_among(a, b), np.isin(a, b))
    np.testing.assert_array_equal(is_among(a, np.sort(b)), np.isin(a, b))
