"""What the public interface promises: documented names, runnable examples, no shadowed builtins."""

import ast
import builtins
import doctest
import inspect
import pathlib
import re
import sys
import textwrap
import types

import pytest

import portwave as pw

BUILTINS = {name for name in dir(builtins) if not name.startswith("_")}
# Portwave alone makes instances of these, so their constructors are not described.
MADE_BY_PORTWAVE = {"Result", "Linearisation", "Gradient", "Plugin", "RolloutDerivatives"}


def section(text, title):
    """The names that a section of a numpydoc docstring describes, or None where there is none."""
    lines = inspect.cleandoc(text or "").splitlines()
    for i, line in enumerate(lines[1:]):
        if lines[i] == title and line == "-" * len(title):
            break
    else:
        return None
    names = []
    for line in lines[i + 2 :]:
        if re.fullmatch(r"-{3,}", line):
            return names[:-1]  # the title of the next section
        if line and not line.startswith(" "):
            names += [name.strip(" *") for name in line.split(" : ")[0].split(",")]
    return names


def public_members(owner):
    """Names and attributes of a class that portwave defines, its bases of Python left out."""
    for base in reversed(owner.__mro__):
        if base.__module__.partition(".")[0] == owner.__module__.partition(".")[0]:
            yield from ((name, own) for name, own in vars(base).items() if not name.startswith("_"))


def parameters_of(function):
    own = inspect.signature(function)
    return [name for name in own.parameters if name not in ("self", "cls")], own.return_annotation


def function_defects(where, function):
    defects = []
    text = function.__doc__
    if not text:
        return [f"{where}: no docstring"]
    try:
        parameters, returned = parameters_of(function)
    except ValueError:  # of the compiled half, whose stub is checked below
        return defects
    described = section(text, "Parameters") or []
    defects += [f"{where}: parameter {name} is not described" for name in parameters if name not in described]
    if returned not in (None, "None", inspect.Signature.empty) and section(text, "Returns") is None:
        defects.append(f"{where}: what it returns is not described")
    defects += [f"{where}: parameter {name} shadows a builtin" for name in parameters if name in BUILTINS]
    return defects


def assigned_attributes(owner):
    """Public attributes that instances have: those of class bodies, and those that __init__ assigns."""
    out = [name for name in getattr(owner, "__annotations__", {}) if not name.startswith("_")]
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner.__init__)))
    except (TypeError, OSError):  # inherited, or compiled
        return out
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            if isinstance(target, ast.Attribute) and getattr(target.value, "id", "") == "self":
                out.append(target.attr)
    return [name for name in out if not name.startswith("_")]


def class_defects(where, owner):
    defects = []
    text = owner.__doc__ or ""
    if not text:
        defects.append(f"{where}: no docstring")
    if inspect.isfunction(owner.__init__) and owner.__name__ not in MADE_BY_PORTWAVE:
        described = section(text, "Parameters") or []
        for name in parameters_of(owner.__init__)[0]:
            if name not in described:
                defects.append(f"{where}: parameter {name} is not described")
            if name in BUILTINS:
                defects.append(f"{where}: parameter {name} shadows a builtin")
    attributes = assigned_attributes(owner)
    described = section(text, "Attributes") or []
    own = dict(public_members(owner))
    for name in attributes:
        if name not in described and not isinstance(own.get(name), property):
            defects.append(f"{where}.{name}: the attribute is not described")
        if inspect.isfunction(own.get(name)):
            defects.append(f"{where}.{name}: instances rebind a method")
    for name in [*attributes, *own]:
        if name in BUILTINS:
            defects.append(f"{where}.{name}: shadows a builtin")
    for name, member in own.items():
        if name in attributes:
            continue
        if isinstance(member, (staticmethod, classmethod)):
            member = member.__func__
        if callable(member):
            defects += function_defects(f"{where}.{name}", member)
        elif not inspect.getdoc(member):
            defects.append(f"{where}.{name}: no docstring")
    return defects


def interface_defects(module):
    defects = []
    for name in module.__all__:
        own = getattr(module, name)
        where = f"{module.__name__}.{name}"
        if name in BUILTINS:
            defects.append(f"{where}: shadows a builtin")
        if inspect.isclass(own):
            defects += class_defects(where, own)
        elif inspect.ismodule(own):
            defects += interface_defects(own)
        elif callable(own):
            defects += function_defects(where, own)
    return defects


def test_everything_public_is_documented_and_shadows_no_builtin():
    assert interface_defects(pw) == []


def test_instances_have_the_methods_of_their_class():
    system = pw.System.from_file("examples/two_oscillators.json")
    stepper = pw.Stepper(system)
    result = stepper.record(steps=2)
    for own in (system, stepper, result, stepper.clone(), stepper.linearise(), pw.Ensemble(system, 2)):
        assert not set(vars(own)) & set(vars(type(own))), own
        assert {name for name in vars(own) if name in BUILTINS} == set()


def test_the_stub_shadows_no_builtin():
    text = (pathlib.Path(pw.__file__).parent / "_portwave.pyi").read_text(encoding="utf-8")
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        if isinstance(node, ast.FunctionDef):
            names |= {own.arg for own in [*node.args.args, *node.args.kwonlyargs]}
    assert names & BUILTINS == set()
    assert "step_s" in names  # the control: names are found


def module_with(source):
    module = types.ModuleType("portwave_control")
    exec(source, vars(module))
    return module


SETS = "Do.\n\nParameters\n----------\nset : int\n    A number.\n"


@pytest.mark.parametrize(
    "source, defect",
    [
        ("def f(): pass", "f: no docstring"),
        ("def f(a): 'Do.'", "f: parameter a is not described"),
        ("def f() -> int: 'Do.'", "f: what it returns is not described"),
        (f"def f(set): {SETS!r}", "f: parameter set shadows a builtin"),
        ("class f:\n 'Do.'\n def __init__(self, a): pass", "f: parameter a is not described"),
        ("class f:\n 'Do.'\n def g(self): pass", "f.g: no docstring"),
        ("class f:\n 'Do.'\n def type(self): 'Do.'", "f.type: shadows a builtin"),
        ("class f:\n 'Do.'\n a: int = 3", "f.a: the attribute is not described"),
        ("class f:\n 'Do.'\n @property\n def g(self): return 1", "f.g: no docstring"),
    ],
)
def test_a_defect_is_found(source, defect):  # the control
    module = module_with(source)
    module.__all__ = ["f"]
    defects = interface_defects(module)
    assert len(defects) == 1 and defects[0].endswith(defect), defects


def test_a_method_that_instances_rebind_is_found():  # the control
    class Rebinding:
        """Do."""

        def __init__(self):
            self.step = print

        def step(self):
            """Do."""

    assert "Rebinding.step: instances rebind a method" in class_defects("Rebinding", Rebinding)


def test_sections_of_docstrings_are_read():
    text = "Do.\n\nParameters\n----------\na, b : int\n    Two.\n*c\n    More.\n\nReturns\n-------\nint\n    One.\n"
    assert section(text, "Parameters") == ["a", "b", "c"]
    assert section(text, "Returns") == ["int"]
    assert section(text, "Raises") is None


def test_examples_of_docstrings_run():
    attempted = {}
    for name in sorted(name for name in sys.modules if re.fullmatch(r"portwave(\.[a-z]+)?", name)):
        result = doctest.testmod(sys.modules[name], extraglobs={"pw": pw})
        assert result.failed == 0, name
        attempted[name] = result.attempted
    with_examples = {name.rpartition(".")[2] for name, count in attempted.items() if count}
    assert with_examples >= {"portwave", "system", "stepper", "result", "ensemble", "parts", "study"}


def test_an_example_that_is_wrong_is_found():  # the control
    module = module_with('"""\n>>> 1 + 1\n3\n"""')
    assert doctest.testmod(module, report=False).failed == 1
