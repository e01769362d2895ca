"""The model of a mechanism, for controllers."""

from __future__ import annotations

import os
from typing import Any, Mapping, Union

import numpy as np

from . import _portwave
from .arrays import Floats, as_floats
from .errors import errors_that_name, unknown_names
from .system import System, scenario_of


class InverseDynamics:
    """What must act on the joints of a mechanism so that it moves as asked.

    τ = M(q)a + Ṁ(q)v + ∂H/∂q + D v with the dampers D of its joints, for computed torque and for compensation of
    gravity. It knows `articulated`, `planar_arm`, and parts by expressions whose last states are momenta with an
    input for each.

    Parameters
    ----------
    system : System, mapping, str or os.PathLike
        The system, or its scenario file.
    part : str
        Name of the part.

    Attributes
    ----------
    positions, velocities : int
        Numbers nq and nv. Positions are the first nq states of the part, momenta its last nv; torques are the
        values of its inputs. Velocities that belong to a quaternion are in the axes of the body.

    Raises
    ------
    UnknownName
        The system has no such part.
    ConfigError
        The scenario has a defect, or the part is no such mechanism.

    Examples
    --------
    >>> import numpy as np
    >>> system = pw.System("arm", step_s=1e-3)
    >>> own = pw.planar_arm(lengths_m=[0.5, 0.4], masses_kg=[2.0, 1.0])
    >>> _ = system.add("arm", own, inputs={"torque_1": "settable", "torque_2": "settable"})
    >>> _ = system.join("free", "arm.joint_1").join("free", "arm.joint_2")
    >>> model = pw.InverseDynamics(system, "arm")
    >>> model.gravity([np.pi / 2, 0.0]).round(3).tolist()
    [11.772, 1.962]

    All functions take one row or many, such as the states of all replicas of an ensemble:

    >>> ensemble = pw.Ensemble(system, 100)
    >>> held = ensemble.control(lambda t, x: model.gravity(x[:, :2]), steps=50)
    """

    def __init__(
        self, system: Union[System, Mapping[str, Any], str, "os.PathLike[str]"], part: str
    ) -> None:
        own = scenario_of(system)
        text, matrices = own._handed_over()
        with unknown_names, errors_that_name(own.part_at):
            self._core = _portwave.InverseDynamics(
                text, str(own.folder), matrices, part, own._may_load_plugins()
            )
        self.positions = self._core.positions
        self.velocities = self._core.velocities

    def torques(self, q: Any, v: Any, a: Any) -> Floats:
        """Return what moves it with accelerations `a` at positions `q` and velocities `v`.

        Parameters
        ----------
        q : (nq,) or (N, nq) array_like
            Positions.
        v, a : (nv,) or (N, nv) array_like
            Velocities and accelerations.

        Returns
        -------
        (nv,) or (N, nv) ndarray
            Torques [N m] and forces [N].

        Raises
        ------
        ValueError
            An argument has another shape.
        RuntimeError
            The mass matrix is not positive definite at `q`.
        """
        return self._rows(self._core.torques, q, v=v, a=a)

    def gravity(self, q: Any) -> Floats:
        """Return what holds it still at positions `q`.

        Parameters
        ----------
        q : (nq,) or (N, nq) array_like
            Positions.

        Returns
        -------
        (nv,) or (N, nv) ndarray
            Torques [N m] and forces [N].
        """
        return self._rows(self._core.gravity, q)

    def momenta(self, q: Any, v: Any) -> Floats:
        """Return p = M(q)v, such as to start from.

        Parameters
        ----------
        q : (nq,) or (N, nq) array_like
            Positions.
        v : (nv,) or (N, nv) array_like
            Velocities.

        Returns
        -------
        (nv,) or (N, nv) ndarray
            Momenta.
        """
        return self._rows(self._core.momenta, q, v=v)

    def velocities_of(self, q: Any, p: Any) -> Floats:
        """Return v = M(q)⁻¹p, the velocities of a state.

        Parameters
        ----------
        q : (nq,) or (N, nq) array_like
            Positions.
        p : (nv,) or (N, nv) array_like
            Momenta.

        Returns
        -------
        (nv,) or (N, nv) ndarray
            Velocities.
        """
        return self._rows(self._core.velocities_of, q, p=p)

    def _rows(self, evaluate: Any, q: Any, **others: Any) -> Floats:
        single = np.ndim(q) == 1
        rows = as_floats(np.atleast_2d(q), (None, self.positions), "Nn", "q")
        given = [
            as_floats(np.atleast_2d(own), (len(rows), self.velocities), "Nn", name)
            for name, own in others.items()
        ]
        out = np.empty((len(rows), self.velocities))
        evaluate(rows, *given, out)
        return out[0] if single else out
