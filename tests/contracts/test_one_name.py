"""One thing, one name: types, seeds, sizes, laws of noise, arguments after ε; no attribute by a name that was built."""

import ast
import dataclasses
import inspect
from collections import defaultdict
from functools import cache, cached_property
from pathlib import Path

import deniable as dn
from deniable import bounds


@cache
def sources():
    return {path: ast.parse(path.read_text()) for path in Path(dn.__file__).parent.rglob("*.py")}


def functions():
    for path, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                yield path, node, [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def test_no_type_name_is_used_twice():
    found = defaultdict(set)
    for path, tree in sources().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                found[node.name].add(path.name)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript | ast.BinOp):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
                for name in names:
                    if name[0].isupper() and not name.isupper():
                        found[name].add(path.name)
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_every_public_rng_is_a_seed():
    wrong = []
    for path, node, arguments in functions():
        for argument in arguments:
            kind = ast.unparse(argument.annotation) if argument.annotation else ""
            if argument.arg == "rng" and kind != "Seed" and kind not in ("np.random.Generator", "Generator"):
                wrong.append((path.name, node.name, kind))  # who gets a generator was called with one
    assert [one for one in wrong if one[1] != "_source"] == []


def test_after_the_first_argument_everything_is_a_keyword():
    """``(1, .1)`` must not mean δ in one function and a prior in another."""
    wrong = []
    for name in bounds.__all__:
        if inspect.isfunction(function := getattr(bounds, name)):
            first, *others = inspect.signature(function).parameters.values()
            others = others[first.name == "tradeoff" :]  # a curve, and what it is scaled by
            wrong += [(name, p.name) for p in others if p.kind is not p.KEYWORD_ONLY and p.name != "direction"]
    assert wrong == []


RISKS = {
    "advantage",
    "accuracy",
    "tpr",
    "precision",
    "reconstruction",
    "singling_out",
    "attribute",
    "explain",
    "inverse",
}
LIMITS = {
    "Limit": {"advantage", "tpr", "accuracy", "reconstruction", "singling_out", "attribute"},
    "PrivateClassifier": {"advantage"},
    "PrivateRegressor": {"advantage"},
    "PrivateSynthesizer": {"advantage"},
}  # numbers that somebody asks for, not answers


def classes():
    return [thing for thing in map(dn.__getattribute__, dn.__all__) if inspect.isclass(thing)]


def test_everything_that_computes_is_a_method():
    computed, stored = {}, {}
    for kind in classes():
        found = {
            risk for risk in RISKS if isinstance(inspect.getattr_static(kind, risk, None), property | cached_property)
        }
        computed |= {kind.__name__: found} if found else {}
        fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
        stored |= {kind.__name__: fields & RISKS} if fields & RISKS else {}
    assert computed == {}
    assert stored == LIMITS


def test_who_knows_the_rate_of_true_positives_knows_the_advantage():
    assert [
        k.__name__ for k in classes() if callable(getattr(k, "tpr", None)) and not callable(getattr(k, "advantage", 0))
    ] == []


def identifiers(tree):
    for node in ast.walk(tree):
        for attribute in ("id", "arg", "attr", "name"):
            word = getattr(node, attribute, None)
            if isinstance(word, str):
                yield word


def metaphors(trees):
    """Words for which the field has a term: hockey stick, dual, randomised response, truncation, probability."""
    refused = {"stick", "sticks", "back", "flips", "bodies", "doubt"}
    found = set()
    for name, tree in trees.items():
        for word in identifiers(tree):
            parts = word.lower().replace("hockey_stick", "").replace("hockeystick", "").split("_")
            if set(parts) & refused or (word.endswith("Sticks") and "Hockey" not in word):
                found.add((name, word))
    return found


def test_names_are_terms_of_the_field():
    ours = {path.name: tree for path, tree in sources().items() if "audit" not in path.parts}
    assert metaphors(ours) == set()
    planted = ast.parse("def f(flips, hockey_stick): return g.back + log_stick")
    assert {word for _, word in metaphors({"": planted})} == {"flips", "back", "log_stick"}


def test_no_attribute_is_reached_by_a_name_built_from_parts():
    built = [
        f"{path.name}:{node.lineno}"
        for path, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "setattr", "hasattr")
        and isinstance(node.args[1], ast.JoinedStr | ast.BinOp | ast.Call)
    ]
    assert built == []


def test_sizes_are_called_n_samples_and_users_group():
    refused = {"draws", "n_attack", "n_draws", "samples", "n_sim", "user_ids", "groups", "persons", "users"}
    wrong = []
    for name in dn.__all__:
        thing = getattr(dn, name)
        functions = [thing] if inspect.isfunction(thing) else []
        if inspect.isclass(thing) and not issubclass(thing, Exception):
            functions = [thing, *(f for m, f in inspect.getmembers(thing, inspect.isfunction) if m[0] != "_")]
        wrong += [(name, p) for function in functions for p in inspect.signature(function).parameters if p in refused]
    assert wrong == []


def test_oracles_import_no_numerics_of_the_code_that_they_check():
    for path in (Path(__file__).parents[1] / "oracles").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom | ast.Import):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
                ours = [f"{name}.{a.name}" for name in names if name == "deniable" for a in node.names]
                ours += [name for name in names if name.startswith("deniable.")]
                assert set(ours) <= {"deniable.mechanisms"}, path.name  # what ran: frozen dataclasses
