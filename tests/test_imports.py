"""The house: who imports whom, what is packaged, what an import costs."""

from __future__ import annotations

import ast
import doctest
import subprocess
import sys
import tomllib
from pathlib import Path

import inferplan
import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_models_import_nothing_of_the_solver() -> None:
    for path in (ROOT / "models").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not any("solver" in name.split(".") for name in names), path


def test_forms_know_only_the_fleet_and_the_network() -> None:
    allowed = {"fleet", "network", "workload", "collections.abc", "dataclasses", "fractions", "__future__"}
    for path in (ROOT / "models" / "forms").glob("*.py"):
        if path.name != "__init__.py":
            found = {n.module for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ImportFrom)}
            assert found <= allowed, path


def test_every_package_and_data_file_is_listed() -> None:
    listed = set(PROJECT["tool"]["setuptools"]["packages"])
    folders = {
        p.parent.relative_to(ROOT) for top in ("models", "solver") for p in (ROOT / top).rglob("__init__.py")
    }
    assert listed == {"inferplan"} | {".".join(["inferplan", *folder.parts]) for folder in folders}
    globs = PROJECT["tool"]["setuptools"]["package-data"]["inferplan.models.catalog"]
    catalog = ROOT / "models" / "catalog"
    matched = {path for glob in globs for path in catalog.glob(glob)}
    assert matched == {p for p in catalog.rglob("*") if p.is_file() and p.suffix not in (".py", ".pyc")}


def test_importing_is_cheap() -> None:
    heavy = ("pyomo", "highspy", "numpy", "networkx", "pydantic", "rich", "yaml")
    for module in ("inferplan", "inferplan.solver.cli"):
        code = f"import sys, {module}; print([m for m in {heavy} if m in sys.modules])"
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        left = set(ast.literal_eval(ran.stdout)) - ({"rich"} if module.endswith("cli") else set())
        assert left == set()


def test_public_names_are_documented() -> None:
    assert set(inferplan.__all__) <= set(dir(inferplan))
    for name in inferplan.__all__:
        assert getattr(inferplan, name).__doc__, name
    with pytest.raises(AttributeError):
        inferplan.nothing  # noqa: B018


def test_the_package_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    test = doctest.DocTestParser().get_doctest(inferplan.__doc__ or "", {}, "inferplan", None, 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0
