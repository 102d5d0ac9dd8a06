"""A figure that a notebook shows by itself, and that belongs to no window."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

__all__ = ["Figure", "Picture"]


class Picture(Figure):
    """A matplotlib Figure; nothing is kept of it once it is no longer used."""

    def _repr_png_(self) -> bytes:
        with io.BytesIO() as file:
            self.savefig(file, format="png")
            return file.getvalue()
