"""Numbers that are written down instead of computed: functions of Python become expressions."""

from __future__ import annotations

import numbers
import re
from typing import Any, Callable, Dict, Iterable, List, Mapping, Tuple

import numpy as np

_COMPARISON, _SUM, _PRODUCT, _POWER, _WHOLE = range(5)
_MOST_CHARACTERS = 10_000  # of an expression that the program reads

# The functions of expressions, by the names that NumPy and this module have for them.
_FUNCTIONS = {
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "exp": "exp",
    "log": "log",
    "sqrt": "sqrt",
    "absolute": "abs",
    "fabs": "abs",
    "sign": "sign",
    "floor": "floor",
    "ceil": "ceil",
    "minimum": "min",
    "fmin": "min",
    "maximum": "max",
    "fmax": "max",
    "remainder": "mod",
    "select": "if",
}
_RESERVED = frozenset({"pi", "round", *_FUNCTIONS.values()})

# What expressions do not have, and what there is instead.
_HALVES = "rounds halves to even numbers, and expressions round them away from 0: use numpy.floor(x + 0.5), which "
_INSTEAD = {
    "rint": _HALVES + "rounds them up",
    "round": _HALVES + "rounds them up",
    "fmod": "cannot be written down: use numpy.sign(a)*(abs(a) % abs(b)), or a % b, which has the sign of b",
    "floor_divide": "cannot be written down: use numpy.floor(a/b)",
    "divmod": "cannot be written down: use numpy.floor(a/b) and a % b",
    "exp2": "cannot be written down: use 2**x",
    "expm1": "cannot be written down: use numpy.exp(x) - 1",
    "log2": "cannot be written down: use numpy.log(x)/numpy.log(2)",
    "log10": "cannot be written down: use numpy.log(x)/numpy.log(10)",
    "log1p": "cannot be written down: use numpy.log(1 + x)",
    "logaddexp": "cannot be written down: use numpy.log(numpy.exp(a) + numpy.exp(b))",
    "cbrt": "cannot be written down: use numpy.sign(x)*abs(x)**(1/3)",
    "arcsinh": "cannot be written down: use numpy.log(x + numpy.sqrt(x**2 + 1))",
    "arccosh": "cannot be written down: use numpy.log(x + numpy.sqrt(x**2 - 1))",
    "arctanh": "cannot be written down: use numpy.log((1 + x)/(1 - x))/2",
    "radians": "cannot be written down: use x*numpy.pi/180",
    "deg2rad": "cannot be written down: use x*numpy.pi/180",
    "degrees": "cannot be written down: use x*180/numpy.pi",
    "rad2deg": "cannot be written down: use x*180/numpy.pi",
    "heaviside": "cannot be written down: use portwave.select(x == 0, middle, x > 0)",
    "copysign": "cannot be written down: use abs(a)*portwave.select(b < 0, -1, 1)",
    "clip": "cannot be written down: use portwave.minimum(portwave.maximum(x, low), high)",
    "matmul": "takes arrays on both sides: use * with one number",
    "logical_and": "cannot be written down: use (a > 0)*(b > 0), as comparisons are 1 or 0",
    "logical_or": "cannot be written down: use portwave.maximum(a > 0, b > 0), as comparisons are 1 or 0",
    "logical_not": "cannot be written down: use the opposite comparison, or 1 - (a > 0)",
    "bitwise_and": "cannot be written down: use (a > 0)*(b > 0), as comparisons are 1 or 0",
    "bitwise_or": "cannot be written down: use portwave.maximum(a > 0, b > 0), as comparisons are 1 or 0",
    "invert": "cannot be written down: use the opposite comparison, or 1 - (a > 0)",
}


def _method(name: str) -> Callable[..., Any]:
    return lambda self, *others: _applied(name, self, *others)


def _both(name: str) -> Tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the methods of an operator, for the number on the left and on the right of it."""
    return _method(name), lambda self, other: _applied(name, other, self)


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

    Raises
    ------
    ValueError
        The name is none that expressions can have, or that of a function, or ``pi``.

    Notes
    -----
    ``a % b`` becomes ``mod(a, b)``, a - b ⌊a/b⌋, and has the sign of b as in Python and NumPy, where the remainder is
    exact: here it has the rounding errors of a, and may be 0 in place of b, or b in place of 0, where a/b is that close
    to a whole number.

    Of arrays, NumPy takes comparisons, `numpy.sign`, `numpy.minimum` and `numpy.maximum` only where the other operand
    is one symbol; `select`, `minimum` and `maximum` of portwave take any arrays.

    Examples
    --------
    >>> q, p = pw.Symbol("q"), pw.Symbol("p")
    >>> p**2 / 2 + 1 - np.cos(q)
    p^2/2 + 1 - cos(q)
    """

    __slots__ = ("text", "_binding")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a number in an expression is text, got {type(name).__name__}")
        if not (name.isidentifier() and name.isascii()):
            raise ValueError(f"{name!r} cannot be the name of a number in an expression")
        if name in _RESERVED:
            what = "the number pi" if name == "pi" else f"the function {name}"
            raise ValueError(f"{name!r} cannot be the name of a number in an expression: it is {what}")
        self.text = str(name)
        self._binding = _WHOLE

    def __repr__(self) -> str:
        return self.text

    def __reduce__(self) -> Tuple[Any, ...]:
        return _made, (self.text, self._binding)

    def __bool__(self) -> bool:
        raise TypeError(
            f"whether {self.text} holds is not known while a function is traced: use portwave.select(condition, a, b) "
            "in place of `if` and `numpy.where`, portwave.minimum and portwave.maximum in place of `min`, `max` and "
            "numpy.clip, and comparisons and numpy.sign of one number of an array at a time"
        )

    def __float__(self) -> float:
        raise TypeError(
            f"{self.text} has no value while a function is traced: use arithmetic and functions of NumPy, such as "
            "numpy.sin in place of math.sin, and arrays with dtype=object to store it in"
        )

    def __int__(self) -> int:
        return int(float(self))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return the method that functions of NumPy call for an element of an array of objects."""
        if name in _WRITERS or name in _INSTEAD:
            return lambda *others, **_: _applied(name, self, *others)
        raise AttributeError(f"numbers of a traced function have no {name!r}")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        """Write functions of NumPy down, element by element where one of the numbers is an array."""
        name = ufunc.__name__
        if method != "__call__":
            raise TypeError(f"numpy.{name}.{method} takes arrays, and {self.text} is one number of a traced function")
        refused = options.keys() - {"dtype"}
        if refused:
            raise TypeError(f"numpy.{name} of numbers of a traced function does not take {', '.join(sorted(refused))}")
        result = _applied(name, *inputs)
        if not out:
            return result
        (target,) = out
        if not (isinstance(target, np.ndarray) and target.dtype == object):
            kind = getattr(target, "dtype", type(target).__name__)
            raise TypeError(f"an array of {kind} cannot hold numbers of a traced function: make it with dtype=object")
        target[...] = result
        return target

    def _within(self, least: int) -> str:
        return f"({self.text})" if self._binding < least else self.text

    __add__, __radd__ = _both("add")
    __sub__, __rsub__ = _both("subtract")
    __mul__, __rmul__ = _both("multiply")
    __truediv__, __rtruediv__ = _both("divide")
    __mod__, __rmod__ = _both("remainder")
    __pow__, __rpow__ = _both("power")
    __floordiv__, __rfloordiv__ = _both("floor_divide")
    __divmod__, __rdivmod__ = _both("divmod")
    __matmul__, __rmatmul__ = _both("matmul")
    __and__, __rand__ = _both("bitwise_and")
    __or__, __ror__ = _both("bitwise_or")
    __invert__ = _method("invert")
    __neg__ = _method("negative")
    __pos__ = _method("positive")
    __abs__ = _method("absolute")
    __round__ = _method("round")
    __floor__ = _method("floor")
    __ceil__ = _method("ceil")
    __trunc__ = _method("trunc")
    __lt__ = _method("less")
    __le__ = _method("less_equal")
    __gt__ = _method("greater")
    __ge__ = _method("greater_equal")
    __eq__ = _method("equal")
    __ne__ = _method("not_equal")


def _made(text: str, binding: int) -> Symbol:
    if len(text) > _MOST_CHARACTERS:
        raise ValueError(
            f"a traced function has more than {_MOST_CHARACTERS} characters as text, the most that expressions have: "
            "what it uses again and again is written out each time"
        )
    out = Symbol.__new__(Symbol)
    out.text = text
    out._binding = binding
    return out


def _is_real(number: Any) -> bool:
    """Tell whether it is a real number of Python or NumPy; a span of time counts as integer there."""
    if isinstance(number, np.generic):
        return number.dtype.kind in "fiub"
    return isinstance(number, numbers.Real)


def _symbol(number: Any) -> Symbol:
    if isinstance(number, Symbol):
        return number
    if isinstance(number, np.ndarray) and number.ndim == 0:
        return _symbol(number[()])
    if not _is_real(number):
        raise TypeError(f"a traced function computes with numbers, got {type(number).__name__}")
    try:
        value = float(number)
    except OverflowError:
        raise ValueError("a number in a traced function is too large: at most 1.8e308") from None
    if not np.isfinite(value):
        raise ValueError(f"a number in a traced function must be finite, got {value}")
    text = repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return _made(text, _PRODUCT if text.startswith("-") else _WHOLE)


def _joined(a: Symbol, sign: str, b: Symbol, binding: int) -> Symbol:
    """Join two: text is read from the left, so that what stands on the right has to bind more."""
    # What sparse matrices and sums in loops bring along.
    if sign == " + " and a.text == "0" or sign == "*" and (b.text == "0" or a.text == "1"):
        return b
    if sign in (" + ", " - ") and b.text == "0" or sign == "*" and (a.text == "0" or b.text == "1"):
        return a
    return _made(a._within(binding) + sign + b._within(binding + 1), binding)


def _call(function: str, *arguments: Symbol) -> Symbol:
    return _made(f"{function}({', '.join(each.text for each in arguments)})", _WHOLE)


def _negative(a: Symbol) -> Symbol:
    return _made("-" + a._within(_POWER), _PRODUCT)


def _power(a: Symbol, b: Symbol) -> Symbol:
    return _made(f"{a._within(_WHOLE)}^{b._within(_WHOLE)}", _POWER)


def _hypot(a: Symbol, b: Symbol) -> Symbol:
    two = _symbol(2)
    return _call("sqrt", _joined(_power(a, two), " + ", _power(b, two), _SUM))


def _trunc(a: Symbol) -> Symbol:
    return _joined(_call("sign", a), "*", _call("floor", _call("abs", a)), _PRODUCT)


def _joining(sign: str, binding: int) -> Callable[..., Symbol]:
    return lambda a, b: _joined(a, sign, b, binding)


def _comparing(sign: str) -> Callable[..., Symbol]:
    return lambda a, b: _made(f"{a._within(_SUM)} {sign} {b._within(_SUM)}", _COMPARISON)


def _calling(function: str) -> Callable[..., Symbol]:
    return lambda *arguments: _call(function, *arguments)


# What writes down the functions of NumPy, by their names.
_WRITERS: Dict[str, Callable[..., Symbol]] = {
    **{name: _calling(function) for name, function in _FUNCTIONS.items()},
    "add": _joining(" + ", _SUM),
    "subtract": _joining(" - ", _SUM),
    "multiply": _joining("*", _PRODUCT),
    "divide": _joining("/", _PRODUCT),
    "true_divide": _joining("/", _PRODUCT),
    "power": _power,
    "float_power": _power,
    "square": lambda a: _power(a, _symbol(2)),
    "reciprocal": lambda a: _joined(_symbol(1), "/", a, _PRODUCT),
    "negative": _negative,
    "positive": lambda a: a,
    "conjugate": lambda a: a,
    "hypot": _hypot,
    "trunc": _trunc,
    "less": _comparing("<"),
    "less_equal": _comparing("<="),
    "greater": _comparing(">"),
    "greater_equal": _comparing(">="),
    "equal": _comparing("=="),
    "not_equal": _comparing("!="),
}


def _applied(name: str, *operands: Any) -> Any:
    """Write a function down: of numbers, or element by element of arrays, which are broadcast."""
    writer = _WRITERS.get(name)
    if writer is None:
        shown = f"numpy.{name}" if hasattr(np, name) else name
        known = ", ".join(sorted({*_FUNCTIONS, "hypot", "trunc"} - {"select"}))
        what = f"cannot be written down: expressions have + - * / % **, comparisons, {known} and portwave.select"
        raise TypeError(f"{shown} {_INSTEAD.get(name, what)}")
    if not any(isinstance(each, (list, tuple)) or isinstance(each, np.ndarray) and each.ndim > 0 for each in operands):
        return writer(*map(_symbol, operands))
    # Arrays in place of symbols, which would come back here.
    arrays = [np.asarray(each, dtype=object) if isinstance(each, Symbol) else np.asarray(each) for each in operands]
    return np.frompyfunc(lambda *each: writer(*map(_symbol, each)), len(arrays), 1)(*arrays)


def select(condition: Any, yes: Any, no: Any) -> Any:
    """Choose between two numbers in a traced function.

    Parameters
    ----------
    condition : Symbol, float or array_like
        As ``q > 0``; holds where it is not 0.
    yes, no : Symbol, float or array_like
        The number where it holds, and where not.

    Returns
    -------
    Symbol or ndarray
        The choice, ``if(condition, yes, no)``; of arrays, which are broadcast, an array of choices.

    Raises
    ------
    TypeError
        One of them is no real number.
    ValueError
        A number that is not finite, or arrays whose shapes do not fit.

    Examples
    --------
    >>> q = pw.Symbol("q")
    >>> pw.select(q > 0, q**2, 0)
    if(q > 0, q^2, 0)
    """
    return _applied("select", condition, yes, no)


def minimum(a: Any, b: Any) -> Any:
    """Take the smaller one of two numbers in a traced function.

    Parameters
    ----------
    a, b : Symbol, float or array_like
        The numbers.

    Returns
    -------
    Symbol or ndarray
        ``min(a, b)``; of arrays, which are broadcast, an array.

    Raises
    ------
    TypeError
        One of them is no real number.
    ValueError
        A number that is not finite, or arrays whose shapes do not fit.

    Examples
    --------
    >>> pw.minimum(pw.Symbol("q"), [0, 1])
    array([min(q, 0), min(q, 1)], dtype=object)
    """
    return _applied("minimum", a, b)


def maximum(a: Any, b: Any) -> Any:
    """Take the larger one of two numbers in a traced function.

    Parameters
    ----------
    a, b : Symbol, float or array_like
        The numbers.

    Returns
    -------
    Symbol or ndarray
        ``max(a, b)``; of arrays, which are broadcast, an array.

    Raises
    ------
    TypeError
        One of them is no real number.
    ValueError
        A number that is not finite, or arrays whose shapes do not fit.

    Examples
    --------
    >>> pw.maximum(pw.Symbol("q"), 0)
    max(q, 0)
    """
    return _applied("maximum", a, b)


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
        The function asks for a value, as by `if` or `math.sin`, calls what expressions do not have, or gives no
        number.
    ValueError
        A name that expressions cannot have, a number that is not finite, or a text longer than expressions may be.

    Examples
    --------
    >>> pw.traced(lambda x: x[1] ** 2 / 2 + 1 - np.cos(x[0]), ["q", "p"])
    'p^2/2 + 1 - cos(q)'
    """
    return _text(_result(function, _array(names)))


def _array(names: Iterable[str]) -> np.ndarray:
    if isinstance(names, str):
        raise TypeError(f"names of numbers are a list: [{names!r}]")
    symbols = [Symbol(name) for name in names]
    out = np.empty(len(symbols), dtype=object)
    out[:] = symbols
    return out


def _result(function: Callable[..., Any], argument: Any) -> Any:
    try:
        return function(argument)
    except TypeError as error:
        # Of numpy.linalg, whose functions are compiled for floating-point numbers.
        asked = re.search(r"Cannot cast ufunc '([a-z]+)[0-9]?' input", str(error))
        if asked is None:
            raise
        raise TypeError(
            f"numpy.linalg.{asked[1]} of numbers of a traced function cannot be written down: write its formula out, "
            "such as Cramer's rule for two or three unknowns, or invert a matrix of constants before the function"
        ) from error
    except AttributeError as error:
        # NumPy asks the elements of the first of two arrays for a method, be they symbols or not.
        asked = re.search(r"no attribute '(arctan2|hypot|fmod)'", str(error))
        if asked is None:
            raise
        raise TypeError(
            f"numpy.{asked[1]} of a number and an array of numbers of a traced function cannot be written down: "
            "take one number of the array at a time"
        ) from error


def _text(number: Any) -> str:
    if isinstance(number, np.ndarray) and number.size == 1:
        number = number.reshape(())
    return _symbol(number).text


def _rows(matrix: Any) -> List[List[str]]:
    if hasattr(matrix, "toarray"):
        matrix = matrix.toarray()
    is_matrix = isinstance(matrix, (list, tuple, np.ndarray)) and np.ndim(matrix) > 0
    if not is_matrix or not all(isinstance(row, (list, tuple, np.ndarray)) and np.ndim(row) > 0 for row in matrix):
        raise TypeError(f"a function in place of a matrix gives rows of numbers, got {type(matrix).__name__}")
    return [[_text(entry) for entry in row] for row in matrix]


def _states(states: Any) -> np.ndarray:
    """Return symbols of the states, which may be given in all forms that scenario files have."""
    if isinstance(states, Mapping):
        if isinstance(states.get("count"), numbers.Integral):
            return _array(f"{states.get('name', 'x')}{i + 1}" for i in range(states["count"]))
        return _array(states)
    return _array(each["name"] if isinstance(each, Mapping) and "name" in each else each for each in states or ())


def _written(value: Any, argument: Callable[[], Any]) -> Any:
    """Return what has symbols and functions among it with text in their places."""
    if isinstance(value, Symbol):
        return value.text
    if callable(value):
        return _text(_result(value, argument()))
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.tolist()
    return [_written(own, argument) for own in value] if isinstance(value, (list, tuple)) else value


def is_to_be_traced(value: Any) -> bool:
    """Tell whether functions or symbols are among it.

    Parameters
    ----------
    value : object
        A parameter of a part.

    Returns
    -------
    bool
        Whether `traced_parameters` has something to write down, if its kind is that of expressions.
    """
    if isinstance(value, np.ndarray):
        return value.dtype == object and any(map(is_to_be_traced, value.flat))
    if isinstance(value, (list, tuple)):
        return any(map(is_to_be_traced, value))
    return isinstance(value, Symbol) or callable(value)


def traced_parameters(given: Mapping[str, Any], kinds: Mapping[str, str]) -> Dict[str, Any]:
    """Give parameters of a part with what is a function or a symbol in place of an expression written down.

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

    Raises
    ------
    TypeError
        A function asks for a value, calls what expressions do not have, or gives no number.
    ValueError
        A name or a number that expressions cannot have, or a text longer than expressions may be.

    Examples
    --------
    >>> traced_parameters({"states": ["q"], "energy": lambda x: x[0] ** 2}, {"energy": "expression"})
    {'states': ['q'], 'energy': 'q^2'}
    """
    out = dict(given)
    for name, value in given.items():
        kind = kinds.get(name, "")
        if not (kind.startswith("expression") and is_to_be_traced(value)):
            continue

        def argument(of_input: bool = kind == "expressions") -> Any:
            return Symbol("u") if of_input else _states(given.get("states"))

        try:
            if kind == "expression_matrix" and callable(value):
                out[name] = _rows(_result(value, argument()))
            elif kind == "expressions" and (callable(value) or isinstance(value, Symbol)):
                raise TypeError("it is a list of expressions or functions, got one")
            else:
                out[name] = _written(value, argument)
        except (TypeError, ValueError) as error:
            # Errors of NumPy's own classes cannot be made of a text.
            plain = TypeError if isinstance(error, TypeError) else ValueError
            raise plain(f"{name}: {error}") from error
    return out
