"""Second-order systems from matrices in memory: M q'' + D q' + K q = B u."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from .arrays import plain, whole
from .errors import ConfigError
from .matrices import Entries

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
    part: str,
) -> Tuple[Dict[str, Any], Optional[int]]:
    """Return the parameters of a ``second_order_system``, and the number of pieces.

    Raises ``ConfigError`` with all defects that can be seen without a factorisation.
    """
    issues: List[Tuple[str, str]] = []
    given = {name: _entries(value, name, issues) for name, value in (("M", M), ("K", K), ("D", D), ("B", B))}
    shapes = {name: own.shape for name, own in given.items() if own is not None}
    n = shapes["M"][0] if "M" in shapes else None
    if n is not None and n != shapes["M"][1]:
        issues.append(("/M", f"must be square, got {n}×{shapes['M'][1]}"))
    for name in ("K", "D"):
        if n is not None and name in shapes and shapes[name] != (n, n):
            issues.append((f"/{name}", f"must be {n}×{n} as M, got {shapes[name][0]}×{shapes[name][1]}"))
    for name, value in (("M", M), ("K", K)):
        own = given[name]
        if own is not None and own.shape[0] == own.shape[1]:
            _check_symmetric(value, own, name, issues)
    own_ports = [_port(port) for port in ports]
    columns = shapes["B"][1] if "B" in shapes else 0
    if n is not None and "B" in shapes and shapes["B"][0] != n:
        issues.append(("/B", f"must have {n} rows, one for each coordinate, got {shapes['B'][0]}"))
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
        issues = [(where, f'"{part}": {what}') for where, what in issues]
        error = ConfigError("\n".join(f"{where}: {what}" for where, what in issues))
        error.issues = issues
        raise error
    parameters: Dict[str, Any] = {"coordinates": names, "ports": own_ports, "inputs": own_inputs}
    parameters.update({name: own for name, own in given.items() if own is not None})
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


def _entries(value: Any, name: str, issues: List[Tuple[str, str]]) -> Optional[Entries]:
    """None without a matrix, or with one of no use."""
    if value is None:
        if name in ("M", "K"):
            issues.append((f"/{name}", "is required"))
        return None
    if name == "B" and not hasattr(value, "tocoo"):
        value = np.asarray(value)
        value = value[:, None] if value.ndim == 1 else value
    try:
        own = Entries(value)
    except (TypeError, ValueError) as error:
        issues.append((f"/{name}", str(error)))
        return None
    bad = np.flatnonzero(~np.isfinite(own.values))
    if bad.size > 0:
        i, j, entry = own.rows[bad[0]], own.columns[bad[0]], own.values[bad[0]]
        issues.append((f"/{name}", f"{name}({i},{j}) = {entry} is not finite"))
        return None
    return own


def _check_symmetric(value: Any, own: Entries, name: str, issues: List[Tuple[str, str]]) -> None:
    if own.values.size == 0:
        return
    if hasattr(value, "tocsr"):
        skew = (value.tocsr() - value.tocsr().T).tocoo()
        rows, columns, defect = skew.row, skew.col, np.abs(skew.data)
    else:
        dense = np.asarray(value)
        rows, columns = np.nonzero(dense != dense.T)
        defect = np.abs(dense[rows, columns] - dense[columns, rows])
    if defect.size == 0:
        return
    worst = int(np.argmax(defect))
    if defect[worst] > 1e-10 * float(np.max(np.abs(own.values))):
        i, j = sorted((int(rows[worst]), int(columns[worst])))
        issues.append((f"/{name}", f"must be symmetric: {name}({i},{j}) and {name}({j},{i}) differ by {defect[worst]:.6g}"))


def _port(port: Union[str, Mapping[str, Any]]) -> Dict[str, Any]:
    if isinstance(port, str):
        return {"name": port, "domain": "translation", "causality": "effort_in"}
    return dict(plain(port))
