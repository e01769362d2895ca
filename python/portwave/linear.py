"""Linearised systems."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import numpy as np

from .arrays import Floats


class Linearisation:
    """A system linearised about a point, with n states, m inputs and p outputs.

    Attributes
    ----------
    state : (n,) ndarray
        States x0 at the point, in their units.
    inputs : (m,) ndarray
        Inputs u0 at the point, in their units.
    outputs : (p,) ndarray
        Outputs y0 at the point, in their units.
    rate : (n,) ndarray
        ``E dx/dt`` at the point; zero at rest.
    state_names : list of str
        Names ``"part.state"`` of the n states; ports append ``"part.port.effort"`` and
        ``"part.port.flow"`` where x holds efforts and flows.
    input_names : list of str
        Names of the m settable inputs.
    output_names : list of str
        Names of the p outputs that were asked for.
    is_explicit : bool
        Whether E is the identity.

    Notes
    -----
    The equations are ::

        E dx/dt = rate + A (x - x0) + B (u - u0)
        y       = y0   + C (x - x0) + D (u - u0)

    E is the identity unless the system holds descriptor parts. Where parts are joined rigidly,
    states that follow from others are left out: ``recover @ dx`` gives the changes of all states of
    all parts. Where no such form exists (a source prescribes a state), x also holds all efforts and
    flows.
    """

    def __init__(self, own: Dict[str, Any], output_names: List[str]) -> None:
        self._matrices: Dict[str, Tuple[Any, ...]] = {
            name: own[name] for name in ("E", "A", "B", "C", "D", "recover")
        }
        self.state: Floats = own["state"]
        self.inputs: Floats = own["input"]
        self.outputs: Floats = own["output"]
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
        """Matrix of the rates, shape (n, n)."""
        return self._dense("E")

    @property
    def A(self) -> Floats:
        """Matrix from states to rates, shape (n, n)."""
        return self._dense("A")

    @property
    def B(self) -> Floats:
        """Matrix from inputs to rates, shape (n, m)."""
        return self._dense("B")

    @property
    def C(self) -> Floats:
        """Matrix from states to outputs, shape (p, n)."""
        return self._dense("C")

    @property
    def D(self) -> Floats:
        """Matrix from inputs to outputs, shape (p, m)."""
        return self._dense("D")

    @property
    def recover(self) -> Floats:
        """Matrix from the n states here to all N states of all parts, shape (N, n)."""
        return self._dense("recover")

    def sparse(self, name: str) -> Any:
        """Return one matrix in sparse form.

        Parameters
        ----------
        name : {"E", "A", "B", "C", "D", "recover"}
            Name of the matrix.

        Returns
        -------
        scipy.sparse.csc_matrix
            The matrix.
        """
        from scipy.sparse import csc_matrix

        rows, columns, values, shape = self._matrices[name]
        return csc_matrix((values, (rows.astype(int), columns.astype(int))), shape=shape)

    def __repr__(self) -> str:
        n, m = self._matrices["B"][3]
        return f"<portwave.Linearisation of {n} states, {m} inputs, {len(self.output_names)} outputs>"
