"""Every dataclass of the package can be compared and, if it is frozen, hashed without raising."""

import dataclasses
import importlib
import inspect
import pkgutil
import re

import deniable

_ARRAYS = re.compile(r"FloatArray|IntArray|ComplexArray|NDArray|ndarray|DataFrame")
_UNHASHABLE = re.compile(r"\b(list|dict|set|Mapping)\[")
_CALLABLE = re.compile(r"Callable\[.*\]")


def dataclasses_of_the_package():
    for module in pkgutil.walk_packages(deniable.__path__, "deniable."):
        if module.name.endswith("__main__") or module.name.startswith("deniable.app"):
            continue
        try:
            found = importlib.import_module(module.name)
        except ImportError:  # an extra is missing
            continue
        for value in vars(found).values():
            if inspect.isclass(value) and value.__module__ == module.name and dataclasses.is_dataclass(value):
                yield value


def trouble(kind):
    """Why comparing or hashing an object of this class may raise, or nothing."""
    compared = [(f, _CALLABLE.sub("", str(f.type))) for f in dataclasses.fields(kind) if f.compare]
    if kind.__eq__ is object.__eq__:
        return "" if kind.__hash__ is object.__hash__ else "hashed but not compared"
    # comparison with == of an array gives an array, of which no truth value is known
    if arrays := [f.name for f, annotation in compared if _ARRAYS.search(annotation)]:
        return f"arrays inside, {arrays}: eq=False"
    author = next(base for base in kind.__mro__ if "__eq__" in vars(base))
    if {f.name for f, _ in compared} - {field.name for field in dataclasses.fields(author)}:
        return "comparison is inherited from a base that knows fewer fields"
    hashed = [f.name for f, text in compared if _UNHASHABLE.search(text) and f.hash is not False]
    return f"not hashable, {hashed}: field(hash=False)" if kind.__dataclass_params__.frozen and hashed else ""


def test_comparing_and_hashing_cannot_raise():
    found = {f"{kind.__module__}.{kind.__name__}": trouble(kind) for kind in dataclasses_of_the_package()}
    assert len(found) > 200
    assert {name: why for name, why in found.items() if why} == {}
