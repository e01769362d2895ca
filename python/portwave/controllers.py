"""Controllers of a system: blocks, signals, and functions of one's own."""

from __future__ import annotations

from itertools import count
from typing import Any, Callable, Dict, Optional, Sequence, TypeVar, Union

from . import _portwave
from .arrays import number, plain, whole
from .errors import UnknownName

JSON = Dict[str, Any]
Own = TypeVar("Own", bound="Controllers")

_controllers = count()


class Controllers:
    """The part of `System` that adds signals and what makes them."""

    _document: Dict[str, Any]

    def add_block(
        self: Own,
        name: str,
        kind: str,
        *,
        every: Optional[int] = None,
        drives: Union[str, Sequence[str], None] = None,
        **options: Any,
    ) -> Own:
        """Add a block of a controller.

        Parameters
        ----------
        name : str
            Name of the block, which is that of its output signal; ``"name[0]"``, ``"name[1]"``, …
            where it has several outputs.
        kind : str
            Kind of the block: one of ``portwave list --blocks`` or of `add_block_kind`.
        every : int, optional
            Macro-steps between two samples. Default: 1.
        drives : str or sequence of str, optional
            Inputs of parts, as ``"part.input"``, or numbers among their parameters, that are held at
            the outputs; one for each output.
        **options
            Keys of the kind. A signal is the name of a block, a quantity such as ``"load.angle"``,
            or a number.

        Returns
        -------
        System
            The system itself.

        Raises
        ------
        UnknownName
            `drives` names a part that has not been added.
        """
        block: JSON = {"name": name, "kind": kind}
        if every is not None:
            block["every"] = whole(every, "`every`")
        block.update(plain(options))
        self._document.setdefault("signals", {}).setdefault("blocks", []).append(block)
        inputs = [drives] if isinstance(drives, str) else list(drives or ())
        for i, own in enumerate(inputs):
            self.drive(own, name if len(inputs) == 1 else f"{name}[{i}]")
        return self

    def add_controller(
        self: Own,
        name: str,
        function: Callable[..., Any],
        *,
        inputs: Sequence[Union[str, float]] = (),
        outputs: int = 1,
        state: Sequence[float] = (),
        every: Optional[int] = None,
        drives: Union[str, Sequence[str], None] = None,
    ) -> Own:
        """Add a block whose law is a Python function.

        Parameters
        ----------
        name : str
            Name of the block, which is that of its output signal.
        function : callable
            The law ``y = function(t, u)`` or, with `state`, ``y, x_next = function(t, u, x)``;
            `add_block_kind` describes its arguments. It is kept until the program ends.
        inputs : sequence of str or float, optional
            The m input signals, in the order of u: names of blocks, quantities or numbers.
        outputs : int, optional
            Number p of outputs. Default: 1.
        state : sequence of float, optional
            Initial state x of the block. Default: no state.
        every : int, optional
            Macro-steps between two samples. Default: 1.
        drives : str or sequence of str, optional
            Inputs of parts, as ``"part.input"``, or numbers among their parameters, that are held at
            the outputs; one for each output.

        Returns
        -------
        System
            The system itself.

        Raises
        ------
        UnknownName
            `drives` names a part that has not been added.
        ValueError
            `drives` has another number of entries than there are outputs, or `state` has a number
            that is not finite.

        Examples
        --------
        >>> system = pw.System.from_file("examples/embedding/servo.json")
        >>> system.add_controller(
        ...     "law",
        ...     lambda t, u: 30.0 * (1.0 - u[0]) - 0.15 * u[1],
        ...     inputs=["load.angle", "motor.speed"],
        ...     drives="supply.effort",
        ... )
        <portwave.System 'servo': 4 parts>
        """
        kind = f"python/{next(_controllers)}"
        names = [f"u{i + 1}" for i in range(len(inputs))]
        start = [number(x, "a number of `state`") for x in state]
        outputs = whole(outputs, "`outputs`")
        _portwave.add_block_kind(kind, "A block from Python.", function, names, outputs, start, [])
        signals = dict(zip(names, inputs))
        driven = [drives] if isinstance(drives, str) else list(drives or ())
        if driven and len(driven) != outputs:
            raise ValueError(f"{name!r} has {outputs} outputs, and drives {len(driven)} inputs")
        return self.add_block(name, kind, every=every, drives=driven, **signals)

    def drive(self: Own, input_name: str, signal: Union[str, float]) -> Own:
        """Hold an input or a parameter of a part at a signal.

        Parameters
        ----------
        input_name : str
            The input, as ``"part.input"``, or a number among the parameters, as ``"damper.damping_Ns_per_m"``.
        signal : str or float
            Name of a block or a quantity, or a number.

        Returns
        -------
        System
            The system itself.

        Raises
        ------
        UnknownName
            The part has not been added.
        """
        part, _, own_name = input_name.rpartition(".")
        for own in self._document.get("subsystems", []):
            if own.get("name") == part:
                own.setdefault("inputs", {})[own_name] = {"kind": "signal", "signal": plain(signal)}
                return self
        raise UnknownName(f"{input_name!r} is no input: there is no part {part!r}; add parts first")
