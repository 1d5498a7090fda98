"""One thing, one name: types, seeds, arguments after ε, and no attribute reached by a built name."""

import ast
import inspect
from collections import defaultdict
from pathlib import Path

import pytest

import deniable as dn
from deniable import bounds

SOURCES = {path: ast.parse(path.read_text()) for path in Path(dn.__file__).parent.rglob("*.py")}


def functions():
    for path, tree in SOURCES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                yield path, node, [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def test_no_type_name_is_used_twice():
    found = defaultdict(set)
    for path, tree in SOURCES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                found[node.name].add(path.name)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript | ast.BinOp):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
                for name in names:
                    if name[0].isupper() and not name.isupper():
                        found[name].add(path.name)
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


@pytest.mark.parametrize("name", ["humphries", "pinsker"])
def test_an_older_bound_is_one_function(name):
    assert [path.name for path, node, _ in functions() if node.name == name] == ["prior_work.py"]


def test_every_public_rng_is_a_seed():
    wrong = []
    for path, node, arguments in functions():
        for argument in arguments:
            kind = ast.unparse(argument.annotation) if argument.annotation else ""
            if argument.arg == "rng" and kind != "Seed" and kind not in ("np.random.Generator", "Generator"):
                wrong.append((path.name, node.name, kind))  # who gets a generator was called with one
    assert [one for one in wrong if one[1] != "_source"] == []


@pytest.mark.parametrize("name", bounds.__all__)
def test_after_epsilon_everything_is_a_keyword(name):
    function = getattr(bounds, name)
    if not inspect.isfunction(function):
        pytest.skip("a class")
    kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    first = next(iter(inspect.signature(function).parameters))
    if first in ("epsilon", "target", "eta", "kl", "variation"):
        assert all(kind is inspect.Parameter.KEYWORD_ONLY for kind in kinds[1:])


def test_no_attribute_is_reached_by_a_name_built_from_parts():
    built = [
        f"{path.name}:{node.lineno}"
        for path, tree in SOURCES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "setattr", "hasattr")
        and isinstance(node.args[1], ast.JoinedStr | ast.BinOp)
    ]
    assert built == []


def test_sizes_are_called_n_samples_and_users_group():
    refused = {"draws", "n_attack", "n_draws", "samples", "n_sim", "user_ids", "groups", "persons"}
    wrong = []
    for name in dn.__all__:
        thing = getattr(dn, name)
        if inspect.isfunction(thing) or (inspect.isclass(thing) and not issubclass(thing, Exception)):
            wrong += [(name, parameter) for parameter in inspect.signature(thing).parameters if parameter in refused]
    assert wrong == []


def test_oracles_import_no_numerics_of_the_code_that_they_check():
    for path in (Path(__file__).parents[1] / "oracles").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom | ast.Import):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
                ours = [f"{name}.{a.name}" for name in names if name == "deniable" for a in node.names]
                ours += [name for name in names if name.startswith("deniable.")]
                assert set(ours) <= {"deniable.mechanisms"}, path.name  # what ran: frozen dataclasses
