"""Checks of numbers and arrays that users pass, whether of Python, of NumPy, or similar."""

from __future__ import annotations

import numbers
import operator
import os
from typing import Any, Mapping, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def as_floats(
    value: Any, shape: Tuple[Optional[int], ...], letters: str, name: str, *, finite: bool = True
) -> Floats:
    """Return ``value`` as an array of float64 in C order: itself where it is one, else a copy.

    ``shape`` holds None where any size will do; errors call that size by its letter in ``letters``.
    Raises ``TypeError`` unless it holds real numbers, and ``ValueError`` for another shape, naming
    the expected one, and, with ``finite``, for the first number that is not finite.
    """
    expected = ", ".join(
        letter if size is None else str(size) for size, letter in zip(shape, letters)
    )
    try:
        array = np.asarray(value)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{name} must be of shape [{expected}]: {error}") from None
    if array.dtype.kind == "O":  # fractions, say
        try:
            array = np.array([number(own, name) for own in array.flat]).reshape(array.shape)
        except TypeError:
            pass
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got an array of {array.dtype}")
    fits = array.ndim == len(shape) and all(
        size is None or size == own for size, own in zip(shape, array.shape)
    )
    if not fits:
        raise ValueError(f"{name} must be of shape [{expected}], got {list(array.shape)}")
    out = np.ascontiguousarray(array, dtype=np.float64)
    is_finite = np.isfinite(out)
    if finite and not is_finite.all():
        where = np.argwhere(~is_finite)[0]
        place = ", ".join(str(i) for i in where)
        raise ValueError(f"{name}[{place}] is {out[tuple(where)]}: must be finite")
    return out


def number(value: Any, name: str) -> float:
    """Return a real number of any kind (a NumPy scalar, an array of one entry, a fraction) as float.

    Raises ``TypeError`` for anything else.
    """
    if type(value) is float:
        return value
    scalar = _scalar(value)
    if isinstance(scalar, (bool, int, float)):
        return float(scalar)
    if not isinstance(scalar, (str, bytes, complex)) and hasattr(scalar, "__float__"):
        return float(scalar)
    raise TypeError(f"{name} must be a number, got {_shown(value)}")


def whole(value: Any, name: str) -> int:
    """Return a whole number of any kind, 3.0 included, as int.

    Raises ``TypeError`` unless it is a number, and ``ValueError`` for 3.5.
    """
    if type(value) is int:
        return value
    scalar = _scalar(value)
    try:
        return operator.index(scalar)
    except TypeError:
        pass
    try:
        given = number(scalar, name)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {_shown(value)}") from None
    if not given.is_integer():
        raise ValueError(f"{name} must be a whole number, got {given}")
    return int(given)


def flag(value: Any, name: str) -> bool:
    """Return a truth value of any kind, 1 and 0 included, as bool.

    Raises ``TypeError`` unless it is a number, and ``ValueError`` for another number.
    """
    if type(value) is bool:
        return value
    given = number(value, name)
    if given not in (0.0, 1.0):
        raise ValueError(f"{name} must be true or false, got {given}")
    return bool(given)


def plain(value: Any) -> Any:
    """Return ``value`` with NumPy numbers and arrays, tuples and paths replaced by what JSON knows.

    Works on nested values; leaves what it does not know. Raises ``TypeError`` for complex numbers.
    """
    if value is None or isinstance(value, (str, bool)):
        return str(value) if isinstance(value, str) else value
    if type(value) in (int, float):
        return value
    if isinstance(value, Mapping):
        return {plain(key): plain(own) for key, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(own) for own in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (np.generic, np.ndarray)) or hasattr(value, "__array__"):
        array = np.asarray(value)
        if array.dtype.kind == "g" or array.dtype == np.longdouble:  # which json does not know
            array = array.astype(np.float64)
        if array.dtype.kind not in "fiubUO":
            raise TypeError(f"a system holds real numbers, got {_shown(value)}")
        own = array.tolist()
        return plain(own) if array.dtype.kind == "O" and own is not value else own
    if isinstance(value, int):  # an enumeration, say
        return int(value)
    return float(value) if isinstance(value, numbers.Real) else value


def _scalar(value: Any) -> Any:
    """Return the entry of an array of one entry as a Python number; anything else as it is."""
    if isinstance(value, (np.generic, np.ndarray)) or hasattr(value, "__array__"):
        array = np.asarray(value)
        if array.size == 1 and array.dtype.kind in "fiub":
            # `item` of a long double returns a long double.
            return float(array.item()) if array.dtype.kind == "f" else array.item()
        return _NoNumber()
    return value


class _NoNumber:
    """Stands for an array that is not one number; `number` refuses it."""


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {list(value.shape)} of {value.dtype}"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def dimensions(value: Any) -> int:
    """Return the number of dimensions of ``value`` as an array; -1 where it cannot be one."""
    try:
        return int(np.ndim(value))
    except ValueError:
        return -1


def refuse_text(names: Sequence[str]) -> None:
    """Refuse one name in place of a list of names, which would be split into its letters."""
    if isinstance(names, str):
        raise TypeError(f"names of quantities are a list: [{names!r}]")
