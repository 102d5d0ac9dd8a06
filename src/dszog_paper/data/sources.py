"""Where the real data come from, and how to tell that they are what they should be.

None of them is part of this package. A checksum is that of the text with line feeds
for line ends, not compressed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dszog_paper.data.prepare import keep_compas_columns, name_communities_columns

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"


@dataclass(frozen=True, kw_only=True)
class Original:
    """A published file that is changed before it is used."""

    sha256: str
    prepare: Callable[[bytes], bytes]
    n_bytes: int  # or an upper bound


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """One file: its name in a folder, its source, and its fingerprint.

    In a folder it may also be compressed, as ``name.xz``, ``name.gz`` or ``name.bz2``.
    """

    name: str
    url: str
    sha256: str
    n_bytes: int
    original: Original | None = None

    @property
    def max_bytes(self) -> int:
        """How much is downloaded at most: line ends may take two bytes there."""
        return 2 * (self.original.n_bytes if self.original else self.n_bytes)


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set: its files by part, how to cite it, and on what terms it is given."""

    name: str
    files: dict[str, DataFile]  # by part: "train", "test"
    citation: str
    licence: str


def _libsvm(
    name: str, train: tuple[str, int], test: tuple[str, int]
) -> dict[str, DataFile]:
    files = {"train": (name, *train), "test": (f"{name}.t", *test)}
    return {
        part: DataFile(name=file, url=f"{_LIBSVM}/{file}", sha256=sha256, n_bytes=size)
        for part, (file, sha256, size) in files.items()
    }


_A9A = DataSet(
    name="a9a",
    files=_libsvm(
        "a9a",
        ("f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906", 2_329_875),
        ("1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9", 1_164_628),
    ),
    citation="C.-C. Chang and C.-J. Lin, LIBSVM, ACM TIST 2(3):27, 2011; made from "
    "Adult by J. Platt, 1998",
    licence="derived from Adult, CC BY 4.0",
)
_W8A = DataSet(
    name="w8a",
    files=_libsvm(
        "w8a",
        ("6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2", 3_478_238),
        ("618929ecb01bebb841daec4cae4aa07b97832d29b08652452775598929547fde", 1_045_870),
    ),
    citation="J. Platt, Fast training of support vector machines using sequential "
    "minimal optimization, in Advances in Kernel Methods, MIT Press, 1998",
    licence="none stated",
)
_SVMGUIDE3 = DataSet(
    name="svmguide3",
    files=_libsvm(
        "svmguide3",
        ("ada17021fdf508bcaac7b7adea825886478f915935eccb24470f22c806dc4508", 304_339),
        ("cee704e709725edbb8d200f5973e3bae83691aea1e15dbba121d6d8629110cd5", 10_241),
    ),
    citation="C.-W. Hsu, C.-C. Chang and C.-J. Lin, A practical guide to support "
    "vector classification, 2003",
    licence="none stated",
)
_ADULT = DataSet(
    name="adult",
    files={
        "train": DataFile(
            name="adult.data",
            url=f"{_UCI}/adult/adult.data",
            sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            n_bytes=3_974_305,
        ),
        "test": DataFile(
            name="adult.test",
            url=f"{_UCI}/adult/adult.test",
            sha256="a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
            n_bytes=2_003_153,
        ),
    },
    citation="B. Becker and R. Kohavi, Adult, UCI Machine Learning Repository, 1996, "
    "https://doi.org/10.24432/C5XW20",
    licence="CC BY 4.0",
)
_COMMUNITIES = DataSet(
    name="communities",
    files={
        "train": DataFile(
            name="communities.csv",
            url=f"{_UCI}/communities/communities.data",
            sha256="748b3de18ff7f09f0e357a3f2510b043a414f5c30916962eda7e3f78bbe21c07",
            n_bytes=1_102_568,
            original=Original(
                sha256=(
                    "d90d85bd66bad9a00fa0ed6c15ac017b5966d528e55ba2940ad028d071353f95"
                ),
                prepare=name_communities_columns,
                n_bytes=1_100_821,
            ),
        )
    },
    citation="M. Redmond, Communities and Crime, UCI Machine Learning Repository, "
    "2002, https://doi.org/10.24432/C53W3X",
    licence="CC BY 4.0",
)
_COMPAS = DataSet(
    name="compas",
    files={
        "train": DataFile(
            name="compas-two-years.csv",
            url="https://raw.githubusercontent.com/propublica/compas-analysis/master/"
            "compas-scores-two-years.csv",
            sha256="0c78cd80f36d90c5c479bd670ec2f29b85e0256169d307460bcacd880000f1b2",
            n_bytes=546_776,
            original=Original(
                sha256=(
                    "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d"
                ),
                prepare=keep_compas_columns,
                n_bytes=8_000_000,
            ),
        )
    },
    citation="J. Larson, S. Mattu, L. Kirchner and J. Angwin, How we analyzed the "
    "COMPAS recidivism algorithm, ProPublica, 2016, "
    "https://github.com/propublica/compas-analysis",
    licence="none stated",
)

DATA_SETS: dict[str, DataSet] = {
    each.name: each for each in (_A9A, _W8A, _SVMGUIDE3, _ADULT, _COMPAS, _COMMUNITIES)
}
"""The real data sets by name."""
