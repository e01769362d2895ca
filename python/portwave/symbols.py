"""Numbers that are written down instead of computed: functions of Python become expressions."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, Union

import numpy as np

_COMPARISON, _SUM, _PRODUCT, _POWER, _WHOLE = range(5)
_MOST_CHARACTERS = 1_000_000

Number = Union["Symbol", float, int]


class Symbol:
    """A number that is written down, not computed: arithmetic with it makes the text of an expression.

    A function of numbers that is called with symbols writes itself down. Functions of NumPy work on symbols and on
    arrays of them, as far as expressions have them: ``np.sin(q)``, ``p @ M @ p``. Comparisons are symbols, too, and
    not conditions: in place of ``if`` and `numpy.where` stands `select`.

    Parameters
    ----------
    name : str
        What the number is called.

    Attributes
    ----------
    text : str
        The expression.

    Examples
    --------
    >>> q, p = pw.Symbol("q"), pw.Symbol("p")
    >>> p**2 / 2 + 1 - np.cos(q)
    p^2/2 + 1 - cos(q)
    """

    __slots__ = ("text", "_binding")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str) -> None:
        if not (name.isidentifier() and name.isascii()):
            raise ValueError(f"{name!r} cannot be the name of a number in an expression")
        self.text = name
        self._binding = _WHOLE

    def __repr__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        raise TypeError(
            f"whether {self.text} holds is not known while a function is traced: use portwave.select(condition, a, b) "
            "in place of `if` and `numpy.where`, and portwave.minimum and portwave.maximum in place of `min` and `max`"
        )

    def __float__(self) -> float:
        raise TypeError(
            f"{self.text} has no value while a function is traced: use arithmetic and functions of NumPy, such as "
            "numpy.sin in place of math.sin"
        )

    def _within(self, least: int) -> str:
        return f"({self.text})" if self._binding < least else self.text

    def __add__(self, other: Number) -> Symbol:
        return _joined(self, " + ", other, _SUM)

    def __radd__(self, other: Number) -> Symbol:
        return _joined(other, " + ", self, _SUM)

    def __sub__(self, other: Number) -> Symbol:
        return _joined(self, " - ", other, _SUM)

    def __rsub__(self, other: Number) -> Symbol:
        return _joined(other, " - ", self, _SUM)

    def __mul__(self, other: Number) -> Symbol:
        return _joined(self, "*", other, _PRODUCT)

    def __rmul__(self, other: Number) -> Symbol:
        return _joined(other, "*", self, _PRODUCT)

    def __truediv__(self, other: Number) -> Symbol:
        return _joined(self, "/", other, _PRODUCT)

    def __rtruediv__(self, other: Number) -> Symbol:
        return _joined(other, "/", self, _PRODUCT)

    def __mod__(self, other: Number) -> Symbol:
        return _call("mod", self, other)

    def __rmod__(self, other: Number) -> Symbol:
        return _call("mod", other, self)

    def __pow__(self, other: Number) -> Symbol:
        return _power(self, other)

    def __rpow__(self, other: Number) -> Symbol:
        return _power(other, self)

    def __neg__(self) -> Symbol:
        return _made("-" + self._within(_POWER), _PRODUCT)

    def __pos__(self) -> Symbol:
        return self

    def __abs__(self) -> Symbol:
        return _call("abs", self)

    def __lt__(self, other: Number) -> Symbol:
        return _compared(self, "<", other)

    def __le__(self, other: Number) -> Symbol:
        return _compared(self, "<=", other)

    def __gt__(self, other: Number) -> Symbol:
        return _compared(self, ">", other)

    def __ge__(self, other: Number) -> Symbol:
        return _compared(self, ">=", other)

    def __eq__(self, other: object) -> Symbol:  # type: ignore[override]
        return _compared(self, "==", other)

    def __ne__(self, other: object) -> Symbol:  # type: ignore[override]
        return _compared(self, "!=", other)

    # NumPy calls these by the names of its functions.
    def sqrt(self) -> Symbol:
        """Square root."""
        return _call("sqrt", self)

    def exp(self) -> Symbol:
        """Exponential."""
        return _call("exp", self)

    def log(self) -> Symbol:
        """Natural logarithm."""
        return _call("log", self)

    def sin(self) -> Symbol:
        """Sine."""
        return _call("sin", self)

    def cos(self) -> Symbol:
        """Cosine."""
        return _call("cos", self)

    def tan(self) -> Symbol:
        """Tangent."""
        return _call("tan", self)

    def arcsin(self) -> Symbol:
        """Inverse sine."""
        return _call("asin", self)

    def arccos(self) -> Symbol:
        """Inverse cosine."""
        return _call("acos", self)

    def arctan(self) -> Symbol:
        """Inverse tangent."""
        return _call("atan", self)

    def arctan2(self, x: Number) -> Symbol:
        """Angle of the point (x, self)."""
        return _call("atan2", self, x)

    def sinh(self) -> Symbol:
        """Hyperbolic sine."""
        return _call("sinh", self)

    def cosh(self) -> Symbol:
        """Hyperbolic cosine."""
        return _call("cosh", self)

    def tanh(self) -> Symbol:
        """Hyperbolic tangent."""
        return _call("tanh", self)

    def sign(self) -> Symbol:
        """-1, 0 or 1."""
        return _call("sign", self)

    def floor(self) -> Symbol:
        """Largest integer below."""
        return _call("floor", self)

    def ceil(self) -> Symbol:
        """Smallest integer above."""
        return _call("ceil", self)

    def rint(self) -> Symbol:
        """Nearest integer."""
        return _call("round", self)


def _made(text: str, binding: int) -> Symbol:
    if len(text) > _MOST_CHARACTERS:
        raise ValueError(
            f"a traced function has more than {_MOST_CHARACTERS} characters as text: what it uses again and again is "
            "written out each time"
        )
    out = Symbol.__new__(Symbol)
    out.text = text
    out._binding = binding
    return out


def _symbol(number: Any) -> Symbol:
    if isinstance(number, Symbol):
        return number
    if isinstance(number, np.ndarray) and number.ndim == 0:
        return _symbol(number.item())
    try:
        value = float(number)
    except (TypeError, ValueError):
        raise TypeError(f"a traced function computes with numbers, got {type(number).__name__}") from None
    if not np.isfinite(value):
        raise ValueError(f"a number in a traced function must be finite, got {value}")
    text = repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return _made(text, _PRODUCT if text.startswith("-") else _WHOLE)


def _is_array(number: Any) -> bool:
    """Tell whether NumPy takes the operator, element by element."""
    return isinstance(number, np.ndarray) and number.ndim > 0


def _joined(a: Any, sign: str, b: Any, binding: int) -> Symbol:
    """Join two: text is read from the left, so that what stands on the right has to bind more."""
    if _is_array(a) or _is_array(b):
        return NotImplemented
    a, b = _symbol(a), _symbol(b)
    # What sparse matrices and sums in loops bring along.
    if sign == " + " and a.text == "0" or sign == "*" and (b.text == "0" or a.text == "1"):
        return b
    if sign in (" + ", " - ") and b.text == "0" or sign == "*" and (a.text == "0" or b.text == "1"):
        return a
    return _made(a._within(binding) + sign + b._within(binding + 1), binding)


def _compared(a: Any, sign: str, b: Any) -> Symbol:
    if _is_array(b):
        return NotImplemented
    return _made(f"{_symbol(a)._within(_SUM)} {sign} {_symbol(b)._within(_SUM)}", _COMPARISON)


def _power(a: Any, b: Any) -> Symbol:
    if _is_array(a) or _is_array(b):
        return NotImplemented
    return _made(f"{_symbol(a)._within(_WHOLE)}^{_symbol(b)._within(_WHOLE)}", _POWER)


def _call(function: str, *arguments: Any) -> Symbol:
    return _made(f"{function}({', '.join(_symbol(each).text for each in arguments)})", _WHOLE)


def select(condition: Number, yes: Number, no: Number) -> Symbol:
    """Choose between two numbers in a traced function.

    Parameters
    ----------
    condition : Symbol or float
        As ``q > 0``; holds where it is not 0.
    yes, no : Symbol or float
        The number where it holds, and where not.

    Returns
    -------
    Symbol
        The choice, ``if(condition, yes, no)``.

    Examples
    --------
    >>> q = pw.Symbol("q")
    >>> pw.select(q > 0, q**2, 0)
    if(q > 0, q^2, 0)
    """
    return _call("if", condition, yes, no)


def minimum(a: Number, b: Number) -> Symbol:
    """Take the smaller one of two numbers in a traced function.

    Parameters
    ----------
    a, b : Symbol or float
        The numbers.

    Returns
    -------
    Symbol
        ``min(a, b)``.
    """
    return _call("min", a, b)


def maximum(a: Number, b: Number) -> Symbol:
    """Take the larger one of two numbers in a traced function.

    Parameters
    ----------
    a, b : Symbol or float
        The numbers.

    Returns
    -------
    Symbol
        ``max(a, b)``.
    """
    return _call("max", a, b)


def traced(function: Callable[..., Any], names: Iterable[str]) -> str:
    """Write a function of numbers down as the text of an expression.

    Parameters
    ----------
    function : callable
        Takes an array of as many numbers as there are names, and gives one number.
    names : iterable of str
        What the numbers are called.

    Returns
    -------
    str
        The expression.

    Raises
    ------
    TypeError
        The function asks for a value, as by `if` or `math.sin`, or gives no number.
    ValueError
        A name that expressions cannot have, a number that is not finite, or a text beyond all reading.

    Examples
    --------
    >>> pw.traced(lambda x: x[1] ** 2 / 2 + 1 - np.cos(x[0]), ["q", "p"])
    'p^2/2 + 1 - cos(q)'
    """
    return _text(function(_array(names)))


def _array(names: Iterable[str]) -> np.ndarray:
    symbols = [Symbol(name) for name in names]
    out = np.empty(len(symbols), dtype=object)
    out[:] = symbols
    return out


def _text(number: Any) -> str:
    if isinstance(number, np.ndarray) and number.size == 1:
        number = number.reshape(()).item()
    return _symbol(number).text


def _names(states: Any) -> List[str]:
    if isinstance(states, Mapping):
        return list(states)
    return [each if isinstance(each, str) else each["name"] for each in states or ()]


def traced_parameters(given: Mapping[str, Any], kinds: Mapping[str, str]) -> Dict[str, Any]:
    """Give parameters of a part with what is a function in place of an expression written down.

    Parameters
    ----------
    given : mapping
        Parameters by name.
    kinds : mapping of str to str
        The kinds of the type's parameters.

    Returns
    -------
    dict
        The parameters; energies and matrices are functions of the array of states, and each of several expressions is
        a function of ``u``.
    """
    out = dict(given)
    for name, value in given.items():
        kind = kinds.get(name)
        try:
            if kind == "expression" and callable(value):
                out[name] = traced(value, _names(given.get("states")))
            elif kind == "expressions" and not isinstance(value, str) and value is not None:
                out[name] = [_text(each(Symbol("u"))) if callable(each) else each for each in value]
            elif kind == "expression_matrix" and callable(value):
                rows = value(_array(_names(given.get("states"))))
                out[name] = [[_text(entry) for entry in row] for row in rows]
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: {error}") from None
    return out
