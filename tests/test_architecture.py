"""The rules of the house: who may import whom, what is public, what an import costs."""

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import tagkin

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "tagkin"

# The modules of tagkin that each room may import. One direction, no way back.
FOUNDATION = {"errors", "arrays", "lazy_names", "progress", "wording"}
FILES = {"errors", "filesystem", "progress", "sqlite"}
ALLOWED = {
    "__init__": {
        "annotator",
        "arrays",
        "calibration",
        "denoising",
        "evaluation",
        "labels",
        "model_selection",
        "space",
        "storage",
        "transfer",
        "version",
    },
    "__main__": {"cli"},
    "errors": set(),
    "arrays": {"errors"},
    "fonts": {"errors"},
    "lazy_names": set(),
    "light_imports": set(),
    "templating": set(),
    "version": set(),
    "wording": set(),
    "filesystem": set(),
    "sqlite": {"filesystem"},
    "machine": set(),
    "progress": set(),
    "kernels": FOUNDATION,
    "lexicons": FOUNDATION,
    "labels": FOUNDATION | {"lexicons"},
    "tag_meanings": FOUNDATION | {"lexicons"},
    "space": FOUNDATION | {"kernels"},
    "neighbors": FOUNDATION,
    "transfer": FOUNDATION | {"evaluation", "kernels", "neighbors"},
    "calibration": FOUNDATION,
    "evaluation": FOUNDATION | {"calibration", "fonts"},
    "model_selection": FOUNDATION | {"evaluation", "neighbors", "space", "transfer"},
    "denoising": FOUNDATION | {"evaluation", "kernels", "neighbors"},
    "storage": FOUNDATION | FILES | {"version"},
    "feature_files": FOUNDATION | FILES | {"neighbors", "space", "storage"},
    "images": FILES | {"machine"},
    "collection": FILES | {"images"},
    "features": FOUNDATION | FILES | {"images"},
    "annotator": FOUNDATION
    | FILES
    | {
        "machine",
        "collection",
        "calibration",
        "denoising",
        "evaluation",
        "features",
        "images",
        "labels",
        "model_selection",
        "tag_meanings",
        "neighbors",
        "space",
        "storage",
        "transfer",
    },
    "catalogue": FILES
    | {
        "annotator",
        "collection",
        "evaluation",
        "features",
        "images",
        "labels",
        "storage",
        "wording",
    },
    "pages": FOUNDATION
    | FILES
    | {
        "annotator",
        "calibration",
        "evaluation",
        "fonts",
        "images",
        "labels",
        "templating",
        "wording",
    },
    "server": FILES
    | {
        "annotator",
        "catalogue",
        "collection",
        "features",
        "images",
        "labels",
        "lazy_names",
        "light_imports",
        "pages",
        "templating",
        "wording",
    },
    "cli": FILES
    | {
        "collection",
        "annotator",
        "catalogue",
        "distributed",
        "features",
        "light_imports",
        "tag_meanings",
        "pages",
        "server",
        "storage",
        "version",
        "wording",
    },
    "distributed": FOUNDATION
    | FILES
    | {"denoising", "features", "images", "kernels", "neighbors", "feature_files", "space"},
}

# What tagkin may import from outside, and the one room that may import it.
EVERYWHERE = {
    "array_api_compat",
    "numpy",
    "safetensors",
    "scipy",
    "sklearn",
    "threadpoolctl",
    "tqdm",
}
OF_ONE_ROOM = {
    "PIL": {"features", "fonts", "images", "pages"},
    "jinja2": {"pages", "server", "templating"},
    "lxml": {"collection"},
    "onnx": {"features"},
    "onnxruntime": {"features"},
    "platformdirs": {"catalogue", "features", "fonts"},
    "rich": {"cli"},
    "typer": {"cli"},
}
OPTIONAL = {
    "dask": {"distributed"},
    "distributed": {"distributed"},
    "faiss": {"neighbors"},
    "matplotlib": {"evaluation"},
    "pandas": {"evaluation"},
    "pyarrow": {"lexicons", "feature_files"},
    "pillow_heif": {"images"},
    "rawpy": {"images"},
    "tokenizers": {"features"},
    "torch": {"arrays"},
    "triton": {"kernels"},
    "zarr": {"feature_files"},
}

# Modules that need an optional package as a whole, and that others import at first use.
IMPORTED_AT_FIRST_USE = {"kernels/triton_order2.py"}

# A room that as a whole needs an optional part of tagkin: others import it at first use.
OF_OPTIONAL_ROOM = {
    name: {"server"} for name in ("anyio", "fastapi", "pydantic", "starlette", "uvicorn")
}

# Rooms that know arrays only: no files, no network, no terminal.
PURE = set(ALLOWED) - {
    "__init__",
    "__main__",
    "annotator",
    "catalogue",
    "cli",
    "collection",
    "distributed",
    "features",
    "filesystem",
    "fonts",
    "images",
    "lazy_names",
    "lexicons",
    "light_imports",
    "machine",
    "pages",
    "server",
    "sqlite",
    "feature_files",
    "storage",
}
IMPURE_MODULES = {
    "os",
    "io",
    "pathlib",
    "shutil",
    "socket",
    "subprocess",
    "sys",
    "tempfile",
    "urllib",
}
IMPURE_CALLS = {"open", "print", "input", "exec", "eval"}


MODULES = [path.relative_to(PACKAGE).as_posix() for path in sorted(PACKAGE.rglob("*.py"))]


@functools.cache
def tree_of(module: str) -> ast.Module:
    """Read once, where a test asks for it."""
    return ast.parse((PACKAGE / module).read_text())


@functools.cache
def nodes_of(module: str) -> list[ast.AST]:
    return list(ast.walk(tree_of(module)))


def room_of(module: str) -> str:
    return module.split("/")[0].removesuffix(".py")


def imports_of(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Dotted names that are imported there."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module}.{alias.name}" for alias in node.names)


def may_import(room: str, name: str) -> bool:
    top, *rest = name.split(".")
    if top == "tagkin":
        # `import tagkin` reaches everything: it points upwards from wherever it stands
        own = bool(rest) and rest[0] == room
        private = any(part.startswith("_") and part != "__version__" for part in rest)
        return own or (bool(set(rest[:1]) & ALLOWED[room]) and not private)
    of_one_room = OF_ONE_ROOM | OPTIONAL | OF_OPTIONAL_ROOM
    if top in of_one_room:
        return room in of_one_room[top]
    return top in EVERYWHERE or top in sys.stdlib_module_names


def test_imports_point_one_way_and_to_public_names():
    assert {room_of(module) for module in MODULES} == set(ALLOWED), "give a new room its place"
    wrong = [
        f"{module}: {name}"
        for module in MODULES
        for name in imports_of(nodes_of(module))
        if not may_import(room_of(module), name)
    ]
    assert not wrong


def test_no_private_modules_at_the_top_level():
    assert not [
        room for room in ALLOWED if room.startswith("_") and room not in ("__init__", "__main__")
    ]


def test_pure_rooms_touch_no_file_and_no_terminal():
    wrong = []
    for module in MODULES:
        if room_of(module) in PURE:
            nodes = nodes_of(module)
            used = {name.split(".")[0] for name in imports_of(nodes)} & IMPURE_MODULES
            calls = [node.func for node in nodes if isinstance(node, ast.Call)]
            used |= {f.id for f in calls if isinstance(f, ast.Name)} & IMPURE_CALLS
            wrong += [f"{module}: {name}" for name in used]
    assert not wrong


def test_the_annotator_for_features_knows_no_photographs():
    """Nor does anything of its own room that it is built on."""
    photographs = ("tagkin.collection", "tagkin.features", "tagkin.images")
    seen, todo = set(), ["annotator/feature_annotator.py"]
    while todo:
        module = todo.pop()
        seen.add(module)
        names = list(imports_of(nodes_of(module)))
        assert not [name for name in names if name.startswith(photographs)], module
        own = {f"{'/'.join(name.split('.')[1:3])}.py" for name in names}
        todo += [other for other in own & set(MODULES) - seen if room_of(other) == "annotator"]
    assert "annotator/learning.py" in seen
    assert "annotator/annotator.py" not in seen


def test_optional_packages_are_imported_where_they_are_used():
    wrong = [
        f"{module}: {name}"
        for module in MODULES
        for name in imports_of(tree_of(module).body)
        if (name.split(".")[0] in OPTIONAL and module not in IMPORTED_AT_FIRST_USE)
        or (name.startswith("tagkin.server") and room_of(module) != "server")
    ]
    assert not wrong


def test_modules_stay_small():
    lines = {module: len((PACKAGE / module).read_text().splitlines()) for module in MODULES}
    assert not {module: n for module, n in lines.items() if n > 500}, "split them"


def test_no_pickle():
    unsafe = {"pickle", "joblib", "dill", "marshal", "shelve"}
    wrong = [m for m in MODULES if unsafe & {n.split(".")[0] for n in imports_of(nodes_of(m))}]
    assert not wrong


def test_files_are_put_in_place_by_one_module():
    """What systems do differently there is known to it alone."""
    put = re.compile(r"\bfsync\(|\bos\.(replace|rename)\(|\.(replace|rename)\(\w+\)")
    found = [module for module in MODULES if put.search((PACKAGE / module).read_text())]
    assert found == ["filesystem.py"]


def test_onnxruntime_is_imported_through_one_door():
    """Elsewhere it could be imported first, and send telemetry."""
    door = re.compile(r"^\s*(import|from) onnxruntime\b", re.MULTILINE)
    folders = [
        PACKAGE,
        *(ROOT / name for name in ("benchmarks", "examples", "experiments", "tests")),
    ]
    found = [p for f in folders for p in f.rglob("*.py") if door.search(p.read_text())]
    assert found == [PACKAGE / "features" / "onnx_sessions.py"]


def test_benchmarks_examples_and_experiments_use_public_names_only():
    for folder in ("benchmarks", "examples", "experiments"):
        for path in (ROOT / folder).rglob("*.py"):
            for name in imports_of(ast.walk(ast.parse(path.read_text()))):
                assert not any(part.startswith("_") for part in name.split(".")[1:]), (path, name)


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_import_is_light():
    """What takes long to import is imported at first use."""
    loaded = set(run("import tagkin, sys; print(*sys.modules)").split())
    assert not {"numpy", "scipy", "sklearn", "onnxruntime", "PIL"} & loaded


def test_the_library_pulls_in_no_optional_package():
    """And its rooms are reached through the package, without an import of their own."""
    code = "print(tagkin.evaluation.evaluate.__name__, tagkin.storage.load.__name__)"
    said = run(f"import tagkin, sys; {code}; tagkin.SemanticSpace; print(*sys.modules)").split()
    assert said[:2] == ["evaluate", "load"]
    # pandas is not among them: scikit-learn imports it where it is installed
    assert not {"torch", "matplotlib", "onnx", "faiss", "dask", "nltk", "wn"} & set(said[2:])


def test_public_names_are_real_and_sorted():
    assert tagkin.__all__ == sorted(tagkin.__all__)
    for name in tagkin.__all__:
        assert getattr(tagkin, name).__name__ == name
        assert getattr(tagkin, name).__doc__
    assert set(tagkin.__all__) <= set(dir(tagkin))
    assert set(run("import tagkin; print(*dir(tagkin))").split()) >= {"evaluation", "transfer"}
    with pytest.raises(AttributeError, match="no attribute 'Semantic'"):
        tagkin.Semantic  # noqa: B018
