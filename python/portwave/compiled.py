"""Compiled functions of parts: what Numba, SciPy and ctypes call by an address."""

from __future__ import annotations

import ctypes
import re
from typing import Any, List, Optional, Tuple, Union

# Address, whether the function takes user data last, these data, and what keeps it alive.
Compiled = Tuple[int, bool, int, Any]

_CALLS_PYTHON = 0x4  # FUNCFLAG_PYTHONAPI of ctypes: calls need the interpreter's lock


def _wanted(arguments: int, is_number: bool) -> str:
    own = ", ".join(["const double *"] * (arguments - (0 if is_number else 1)) + ([] if is_number else ["double *"]))
    return f"{'double' if is_number else 'void'} ({own}) or, with user data, one more `void *`"


def _refused(what: str, told: str, arguments: int, is_number: bool) -> TypeError:
    return TypeError(f"{what}: a compiled function must be {_wanted(arguments, is_number)}, got {told}")


def _of_ctypes(function: Any, keeper: Any, what: str, arguments: int, is_number: bool) -> Compiled:
    if function._flags_ & _CALLS_PYTHON:
        raise TypeError(
            f"{what}: a function of ctypes.PyDLL or PYFUNCTYPE needs the interpreter's lock, which steps do not hold"
        )
    if any(type(own).__name__ == "CThunkObject" for own in (function._objects or {}).values()):
        raise TypeError(f"{what}: this ctypes function calls Python; give the Python function itself")
    address = ctypes.cast(function, ctypes.c_void_p).value
    if not address:
        raise TypeError(f"{what}: the function pointer is null")
    if function.argtypes is None:
        raise TypeError(f"{what}: set `argtypes` and `restype` of the ctypes function, so that they can be checked")
    given: List[Any] = list(function.argtypes)

    def is_pointer(own: Any) -> bool:
        return own is ctypes.c_void_p or (issubclass(own, ctypes._Pointer) and own._type_ is ctypes.c_double)

    takes_data = len(given) == arguments + 1 and given[-1] is ctypes.c_void_p
    result = ctypes.c_double if is_number else None
    fits = len(given) == arguments or takes_data
    if not fits or not all(map(is_pointer, given)) or function.restype is not result:
        names = ", ".join(own.__name__ for own in given)
        told = f"{getattr(function.restype, '__name__', function.restype)} ({names})"
        raise _refused(what, told, arguments, is_number)
    return address, takes_data, 0, keeper


def _of_low_level(function: Any, what: str, arguments: int, is_number: bool) -> Compiled:
    signature = str(function.signature)
    plain = re.sub(r"\bconst\b|\s+", "", signature)
    match = re.fullmatch(r"(\w+)\(([\w*,]*)\)", plain)
    given = match.group(2).split(",") if match and match.group(2) else []
    takes_data = len(given) == arguments + 1 and given[-1] == "void*"
    fits = match is not None and match.group(1) == ("double" if is_number else "void")
    if not fits or (len(given) != arguments and not takes_data) or set(given) - {"double*", "void*"}:
        raise _refused(what, signature, arguments, is_number)
    if function.user_data is not None and not takes_data:
        raise TypeError(f"{what}: has user data, but the function {signature} does not take them")
    capsule = tuple.__getitem__(function, 0)
    pointer, context = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_GetContext
    pointer.restype = context.restype = ctypes.c_void_p
    pointer.argtypes, context.argtypes = [ctypes.py_object, ctypes.c_char_p], [ctypes.py_object]
    data = context(capsule) if takes_data else None
    return pointer(capsule, signature.encode()), takes_data, data or 0, function


def compiled(function: Any, what: str, arguments: int, is_number: bool = False) -> Optional[Compiled]:
    """Return what calls a compiled function, or None for anything else.

    `arguments` is how many arrays it takes, the one that it writes included; `is_number` says that it returns
    a number in place of writing an array.
    """
    if isinstance(function, ctypes._CFuncPtr):
        return _of_ctypes(function, function, what, arguments, is_number)
    if isinstance(function, tuple) and type(function).__name__ == "LowLevelCallable":
        return _of_low_level(function, what, arguments, is_number)
    if hasattr(function, "native_name") and isinstance(getattr(function, "ctypes", None), ctypes._CFuncPtr):
        return _of_ctypes(function.ctypes, function, what, arguments, is_number)  # a cfunc of Numba
    return None


def handed(function: Any, what: str, arguments: int, is_number: bool = False) -> Union[Compiled, Any]:
    """Return a function in the form in which the compiled half takes it."""
    own = compiled(function, what, arguments, is_number)
    if own is None and not callable(function):
        raise TypeError(f"{what} must be a function, got {function!r}")
    return function if own is None else own
