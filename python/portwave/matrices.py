"""Matrices in memory: sparse ones of SciPy and dense ones of NumPy, as systems hold them."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

Handed = Tuple[str, int, int, NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]

# Dense matrices with fewer numbers travel as rows of JSON.
_FEW = 4096


class Entries:
    """A matrix by its entries, never changed. Equal places add up.

    Raises ``TypeError`` unless it holds real numbers, and ``ValueError`` for one that is no matrix.
    """

    def __init__(self, value: Any) -> None:
        if hasattr(value, "tocoo"):
            own = value.tocoo()
            shape, rows, columns, values = own.shape, own.row, own.col, own.data
        else:
            if isinstance(value, (str, os.PathLike)):
                raise TypeError(
                    f"must be a matrix, got the text {os.fspath(value)!r}: load it first, by scipy.io.mmread or "
                    "scipy.sparse.load_npz, say"
                )
            dense = np.asarray(value)
            if dense.ndim != 2:
                raise ValueError(f"must be a matrix, got an array of {dense.ndim} dimensions")
            shape = dense.shape
            rows, columns = np.nonzero(dense)
            values = dense[rows, columns]
        if values.dtype.kind not in "fiub":
            raise TypeError(f"must hold real numbers, got {values.dtype}")
        self.shape = (int(shape[0]), int(shape[1]))
        # Copies: a system does not follow later changes of the caller's arrays.
        self.rows = np.array(rows, dtype=np.int32)
        self.columns = np.array(columns, dtype=np.int32)
        self.values = np.array(values, dtype=np.float64)

    def to_json(self) -> Dict[str, List[List[Any]]]:
        """Return the matrix as scenario files hold it."""
        return {"entries": list(map(list, zip(self.rows.tolist(), self.columns.tolist(), self.values.tolist())))}

    def equals(self, other: "Entries") -> bool:
        return self is other or (
            self.shape == other.shape
            and np.array_equal(self.rows, other.rows)
            and np.array_equal(self.columns, other.columns)
            and np.array_equal(self.values, other.values)
        )

    def __deepcopy__(self, memo: Any) -> "Entries":
        return self


def as_parameter(value: Any) -> Any:
    """Return sparse matrices, and large dense ones, as `Entries`; anything else as it is."""
    if hasattr(value, "tocoo"):
        return Entries(value)
    if isinstance(value, np.ndarray) and value.ndim == 2 and value.size > _FEW:
        return Entries(value)
    return value


def written_out(value: Any) -> Any:
    """Return a document with its matrices in the form of scenario files. For ``json.dumps`` as `default`, too."""
    if isinstance(value, Entries):
        return value.to_json()
    if isinstance(value, dict):
        return {key: written_out(own) for key, own in value.items()}
    if isinstance(value, list):
        return [written_out(own) for own in value]
    return value


def json_default(value: Any) -> Any:
    if isinstance(value, Entries):
        return value.to_json()
    raise TypeError(f"a system cannot hold {value!r} of {type(value)}")


class Handover:
    """Gives matrices names while a document is written; equal ones share a name."""

    def __init__(self) -> None:
        self.matrices: List[Handed] = []
        self._known: List[Tuple[Entries, str]] = []

    def default(self, value: Any) -> Any:
        if not isinstance(value, Entries):
            return json_default(value)
        name: Optional[str] = next((own for known, own in self._known if known.equals(value)), None)
        if name is None:
            name = f"matrix {len(self._known)} in memory"
            self._known.append((value, name))
            self.matrices.append((name, *value.shape, value.rows, value.columns, value.values))
        return {"file": name}
