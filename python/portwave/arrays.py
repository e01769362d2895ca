"""Arrays of users, checked."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def as_floats(value: Any, shape: Tuple[Optional[int], ...], letters: str, name: str) -> Floats:
    """``value`` as an array of float64 in C order: itself where it is one, else a copy.

    ``shape``: None where any size will do, which errors call by its letter. Errors: ``TypeError``
    where it does not hold real numbers; ``ValueError`` for another shape, naming the one that is
    expected, and for the first number that is not finite.
    """
    expected = ", ".join(
        letter if size is None else str(size) for size, letter in zip(shape, letters)
    )
    try:
        array = np.asarray(value)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{name} must be of shape [{expected}]: {error}") from None
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got an array of {array.dtype}")
    fits = array.ndim == len(shape) and all(
        size is None or size == own for size, own in zip(shape, array.shape)
    )
    if not fits:
        raise ValueError(f"{name} must be of shape [{expected}], got {list(array.shape)}")
    out = np.ascontiguousarray(array, dtype=np.float64)
    finite = np.isfinite(out)
    if not finite.all():
        where = np.argwhere(~finite)[0]
        place = ", ".join(str(i) for i in where)
        raise ValueError(f"{name}[{place}] is {out[tuple(where)]}: inputs must be finite")
    return out


def dimensions(value: Any) -> int:
    """How many it has as an array; -1 where it cannot be one."""
    try:
        return int(np.ndim(value))
    except ValueError:
        return -1
