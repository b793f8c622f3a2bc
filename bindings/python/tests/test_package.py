"""The package as a whole: its stubs, and the examples in its texts."""

import ast
import doctest
import inspect
import pathlib
import subprocess
import sys

import pytest

import hairspring
from hairspring import _hairspring

HERE = pathlib.Path(hairspring.__file__).parent


def test_the_stubs_name_what_there_is_and_nothing_else():
    stubs = ast.parse((HERE / "_hairspring.pyi").read_text())
    declared = {}
    for node in stubs.body:
        if isinstance(node, ast.ClassDef):
            declared[node.name] = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            declared[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            declared[node.target.id] = None
    there = {name for name in dir(_hairspring) if not name.startswith("_")}
    assert set(declared) == there
    for name, parts in declared.items():
        value = getattr(_hairspring, name)
        if isinstance(value, type):
            own = {part for part in vars(value) if not part.startswith("_")}
            assert {part for part in parts if not part.startswith("_")} == own, name
            for part in own:
                if callable(getattr(value, part)):
                    assert named(parts[part]) == parameters(getattr(value, part)), (name, part)
        elif callable(value):
            assert named(parts) == parameters(value), name


def named(function):
    arguments = function.args
    names = [argument.arg for argument in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
    return [name for name in names if name not in ("self", "cls")]


def parameters(function):
    return [name for name in inspect.signature(function).parameters if name != "self"]


def test_mypy_finds_the_stubs_true(tmp_path):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy.stubtest", "--ignore-disjoint-bases", "hairspring"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_it_is_typed_and_everything_is_explained():
    assert (HERE / "py.typed").is_file()
    for name in hairspring.__all__:
        value = getattr(hairspring, name)
        assert isinstance(value, int) or value.__doc__, name


def test_the_examples_in_the_text_run():
    failed, run = doctest.testmod(hairspring)
    assert run > 3 and failed == 0
    readme = pathlib.Path(__file__).parents[1] / "README.md"
    failed, run = doctest.testfile(str(readme), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert run > 3 and failed == 0
