"""Second-order systems from matrices in memory: M q'' + D q' + K q = B u."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from .arrays import plain, whole
from .errors import ConfigError

Names = Union[str, Sequence[str]]


def second_order_parameters(
    M: Any,
    K: Any,
    D: Any,
    B: Any,
    ports: Sequence[Union[str, Mapping[str, Any]]],
    inputs: Optional[Sequence[Union[str, Mapping[str, Any]]]],
    coordinates: Names,
    unit: str,
    cut: Optional[int],
) -> Tuple[Dict[str, Any], Optional[int]]:
    """Return the parameters of a ``second_order_system``, and the number of pieces.

    Raises ``ConfigError`` with all defects that can be seen without a factorisation.
    """
    issues: List[Tuple[str, str]] = []
    given = {name: _entries(value, name, issues) for name, value in (("M", M), ("K", K), ("D", D), ("B", B))}
    n = given["M"][0][0] if given["M"] is not None else None
    if n is not None and n != given["M"][0][1]:
        issues.append(("/M", f"must be square, got {given['M'][0][0]}×{given['M'][0][1]}"))
    for name in ("K", "D"):
        own = given[name]
        if own is not None and n is not None and own[0] != (n, n):
            issues.append((f"/{name}", f"must be {n}×{n} as M, got {own[0][0]}×{own[0][1]}"))
    for name in ("M", "K"):
        if given[name] is not None and given[name][0][0] == given[name][0][1]:
            _check_symmetric(given[name], name, issues)
    own_ports = [_port(port) for port in ports]
    columns = 0 if given["B"] is None else given["B"][0][1]
    if given["B"] is not None and n is not None and given["B"][0][0] != n:
        issues.append(("/B", f"must have {n} rows, one for each coordinate, got {given['B'][0][0]}"))
    of_ports = sum(int(port.get("dimension", 1)) for port in own_ports)
    if inputs is None:
        inputs = [f"u{k + 1}" for k in range(max(0, columns - of_ports))]
    own_inputs = [{"name": own} if isinstance(own, str) else dict(own) for own in inputs]
    if columns != of_ports + len(own_inputs) and (B is None or given["B"] is not None):
        issues.append(
            (
                "/B",
                f"must have a column for each of {of_ports} scalar ports and {len(own_inputs)} inputs, "
                f"got {columns}",
            )
        )
    names: Any = {"count": n or 0, "name": coordinates, "unit": unit}
    if not isinstance(coordinates, str):
        names = [{"name": str(own), "unit": unit} for own in coordinates]
        if n is not None and len(names) != n:
            issues.append(("/coordinates", f"must be {n} names, got {len(names)}"))
    pieces = _pieces(cut, n, issues)
    if issues:
        error = ConfigError("\n".join(f"{where}: {what}" for where, what in issues))
        error.issues = issues
        raise error
    parameters: Dict[str, Any] = {"coordinates": names, "ports": own_ports, "inputs": own_inputs}
    for name, own in given.items():
        if own is not None:
            (_, _), rows, found, values = own
            parameters[name] = {"entries": list(map(list, zip(rows.tolist(), found.tolist(), values.tolist())))}
    parameters.setdefault("B", {"entries": []})
    return parameters, pieces


def _pieces(cut: Optional[int], n: Optional[int], issues: List[Tuple[str, str]]) -> Optional[int]:
    if cut is None:
        return None
    try:
        pieces = whole(cut, "`cut`")
    except (TypeError, ValueError) as error:
        issues.append(("/cut", str(error)))
        return None
    if pieces < 1:
        issues.append(("/cut", f"must be 1 piece or more, got {pieces}"))
    elif n is not None and pieces > n:
        issues.append(("/cut", f"must be at most the {n} coordinates, got {pieces}"))
    return pieces


def _entries(value: Any, name: str, issues: List[Tuple[str, str]]) -> Any:
    """Shape, rows, columns and values of the entries; None without a matrix, or with one of no use."""
    if value is None:
        if name in ("M", "K"):
            issues.append((f"/{name}", "is required"))
        return None
    if hasattr(value, "tocoo"):
        own = value.tocoo()
        shape, rows, columns, values = own.shape, own.row, own.col, own.data
    else:
        dense = np.asarray(value)
        if dense.ndim == 1 and name == "B":
            dense = dense[:, None]
        if dense.ndim != 2:
            issues.append((f"/{name}", f"must be a matrix, got an array of {dense.ndim} dimensions"))
            return None
        shape = dense.shape
        rows, columns = np.nonzero(dense)
        values = dense[rows, columns]
    if values.dtype.kind not in "fiub":
        issues.append((f"/{name}", f"must hold real numbers, got {values.dtype}"))
        return None
    values = values.astype(np.float64, copy=False)
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size > 0:
        issues.append((f"/{name}", f"{name}({rows[bad[0]]},{columns[bad[0]]}) = {values[bad[0]]} is not finite"))
        return None
    return (int(shape[0]), int(shape[1])), rows, columns, values


def _check_symmetric(entries: Any, name: str, issues: List[Tuple[str, str]]) -> None:
    (n, _), rows, columns, values = entries
    if values.size == 0:
        return
    # Both triangles, side by side: keys of (i, j) with i <= j, values of opposite sign add up to 0.
    upper = rows != columns
    low, high = np.minimum(rows, columns)[upper], np.maximum(rows, columns)[upper]
    signed = np.where(rows[upper] < columns[upper], values[upper], -values[upper])
    keys = low.astype(np.int64) * n + high
    found, place = np.unique(keys, return_inverse=True)
    defect = np.abs(np.bincount(place, weights=signed, minlength=found.size))
    if defect.size == 0:
        return
    worst = int(np.argmax(defect))
    if defect[worst] > 1e-10 * float(np.max(np.abs(values))):
        i, j = divmod(int(found[worst]), n)
        issues.append((f"/{name}", f"must be symmetric: {name}({i},{j}) and {name}({j},{i}) differ by {defect[worst]:.6g}"))


def _port(port: Union[str, Mapping[str, Any]]) -> Dict[str, Any]:
    if isinstance(port, str):
        return {"name": port, "domain": "translation", "causality": "effort_in"}
    return dict(plain(port))
