"""A system near a point."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import numpy as np

from .arrays import Floats


class Linearisation:
    """E dx/dt = rate + A (x - state) + B (u - input), y = output + C (x - state) + D (u - input).

    x are states of the parts, by ``state_names``, and E is the identity (``is_explicit``) but for
    descriptor parts. Where parts are joined rigidly, states that follow from others are left out:
    the changes of all states of all parts are ``recover @ dx``. Where there is no such form (a source
    that prescribes a state) x goes on with all efforts and flows.

    ``E``, ``A``, ``B``, ``C``, ``D``: arrays; ``sparse("A")``: the same as a SciPy matrix.
    """

    def __init__(self, own: Dict[str, Any], output_names: List[str]) -> None:
        self._matrices: Dict[str, Tuple[Any, ...]] = {
            name: own[name] for name in ("E", "A", "B", "C", "D", "recover")
        }
        self.state: Floats = own["state"]
        self.input: Floats = own["input"]
        self.output: Floats = own["output"]
        self.rate: Floats = own["rate"]
        self.state_names: List[str] = own["state_names"]
        self.input_names: List[str] = own["input_names"]
        self.output_names = output_names
        self.is_explicit: bool = own["is_explicit"]

    def _dense(self, name: str) -> Floats:
        rows, columns, values, shape = self._matrices[name]
        out = np.zeros(shape)
        out[rows.astype(int), columns.astype(int)] = values
        return out

    @property
    def E(self) -> Floats:
        return self._dense("E")

    @property
    def A(self) -> Floats:
        return self._dense("A")

    @property
    def B(self) -> Floats:
        return self._dense("B")

    @property
    def C(self) -> Floats:
        return self._dense("C")

    @property
    def D(self) -> Floats:
        return self._dense("D")

    @property
    def recover(self) -> Floats:
        return self._dense("recover")

    def sparse(self, name: str) -> Any:
        """"A" and the others as ``scipy.sparse.csc_matrix``."""
        from scipy.sparse import csc_matrix

        rows, columns, values, shape = self._matrices[name]
        return csc_matrix((values, (rows.astype(int), columns.astype(int))), shape=shape)

    def __repr__(self) -> str:
        n, m = self._matrices["B"][3]
        return f"<portwave.Linearisation of {n} states, {m} inputs, {len(self.output_names)} outputs>"
