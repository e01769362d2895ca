"""Derivatives of steps, forward and backward over a roll-out."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Sequence

import numpy as np

from . import _portwave
from .arrays import Floats, as_floats


class Gradient(NamedTuple):
    """The gradient of a scalar.

    Attributes
    ----------
    x0 : numpy.ndarray, (n,)
        By the states at the start.
    inputs : numpy.ndarray, (T, m)
        By the inputs of each step.
    parameters : numpy.ndarray, (k,)
        By the parameters.
    """

    x0: Floats
    inputs: Floats
    parameters: Floats


class RolloutDerivatives:
    """The states of T steps, and how they depend on their start, on inputs and on parameters.

    `Stepper.differentiate` makes it. Derivatives are per unit of the states, inputs and parameters.

    Attributes
    ----------
    states : (T + 1, n) ndarray
        The states before the first step and after each, in the order of `state_names`, in their units.
    state_names, input_names, parameter_names : list of str
        Names of the n states, m inputs and k parameters.

    Examples
    --------
    >>> stepper = pw.Stepper("examples/embedding/servo.json")
    >>> run = stepper.differentiate([[24.0]] * 50, parameters=["load.inertia_kgm2"])
    >>> speed = run.state_names.index("motor.speed")
    >>> gradient = run.gradient(np.eye(run.states.shape[1])[speed])  # of the speed at the end
    >>> gradient.inputs.shape
    (50, 1)
    >>> bool(gradient.parameters[0] < 0)  # more inertia, less speed
    True
    """

    def __init__(
        self,
        made: List[_portwave.StepDerivatives],
        states: Floats,
        state_names: Sequence[str],
        input_names: Sequence[str],
        parameter_names: Sequence[str],
    ) -> None:
        self._made = made
        self.state_names = list(state_names)
        self.input_names = list(input_names)
        self.parameter_names = list(parameter_names)
        self.states = np.asarray(states).reshape(len(made) + 1, len(self.state_names))

    def __len__(self) -> int:
        return len(self._made)

    def by_state(self, step: int = -1) -> Floats:
        """Return the derivative of the states after a step by those before it.

        Parameters
        ----------
        step : int, optional
            Number of the step, from 0; from the end where it is negative. Default: the last.

        Returns
        -------
        (n, n) ndarray
            Row: state after the step; column: state before it.
        """
        return self._made[step].by_state()

    def by_input(self, step: int = -1) -> Floats:
        """Return the derivative of the states after a step by the inputs that were held over it.

        Parameters
        ----------
        step : int, optional
            Number of the step, as for `by_state`. Default: the last.

        Returns
        -------
        (n, m) ndarray
            Row: state; column: input.
        """
        return self._made[step].by_input()

    def by_parameter(self, step: int = -1) -> Floats:
        """Return the derivative of the states after a step by the parameters, states before it being held.

        Parameters
        ----------
        step : int, optional
            Number of the step, as for `by_state`. Default: the last.

        Returns
        -------
        (n, k) ndarray
            Row: state; column: parameter.
        """
        return self._made[step].by_parameter()

    def tangent(
        self,
        x0: Optional[Any] = None,
        inputs: Optional[Any] = None,
        parameters: Optional[Any] = None,
    ) -> Floats:
        """Return the change of all states, to first order.

        Parameters
        ----------
        x0 : (n,) array_like, optional
            Change of the states at the start. Default: zeros.
        inputs : (T, m) array_like, optional
            Change of the inputs of each step. Default: zeros.
        parameters : (k,) array_like, optional
            Change of the parameters. Default: zeros.

        Returns
        -------
        (T + 1, n) ndarray
            The change of `states`.

        Raises
        ------
        ValueError
            An argument has another shape.
        """
        n, m, k = len(self.state_names), len(self.input_names), len(self.parameter_names)
        steps = len(self._made)
        out = np.zeros((steps + 1, n))
        if x0 is not None:
            out[0] = as_floats(x0, (n,), "n", "x0")
        u = np.zeros((steps, m)) if inputs is None else as_floats(inputs, (steps, m), "Tm", "inputs")
        theta = (
            np.zeros(k) if parameters is None else as_floats(parameters, (k,), "k", "parameters")
        )
        for i, own in enumerate(self._made):
            out[i + 1] = own.tangent(out[i], u[i], theta)
        return out

    def gradient(self, weights: Any) -> Gradient:
        """Return the gradient of a scalar function of the states, by one pass backward.

        Parameters
        ----------
        weights : (n,) or (T + 1, n) array_like
            The derivatives of the scalar by the states at the end, or by all rows of `states`.

        Returns
        -------
        Gradient
            ``x0`` (n,): by the states at the start; ``inputs`` (T, m): by the inputs of each step;
            ``parameters`` (k,): by the parameters, the states at the start being held.

        Raises
        ------
        ValueError
            `weights` has another shape.
        """
        n, steps = len(self.state_names), len(self._made)
        given = np.asarray(weights, dtype=float)
        if given.shape == (n,):
            rows = np.zeros((steps + 1, n))
            rows[-1] = given
        else:
            rows = as_floats(weights, (steps + 1, n), "Tn", "weights")
        inputs = np.zeros((steps, len(self.input_names)))
        parameters = np.zeros(len(self.parameter_names))
        adjoint = rows[-1].copy()
        for i in range(steps - 1, -1, -1):
            adjoint, inputs[i], own = self._made[i].adjoint(adjoint)
            parameters += own
            adjoint = adjoint + rows[i]
        return Gradient(adjoint, inputs, parameters)
