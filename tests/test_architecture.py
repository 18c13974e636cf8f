"""The rules of the house: who may import whom, what is public, what an import costs."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tagkin

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "tagkin"

# The modules of tagkin that each room may import. One direction, no way back.
FOUNDATION = {"errors", "arrays"}
FILES = {"errors", "filesystem"}
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
    "errors": set(),
    "arrays": {"errors"},
    "fonts": set(),
    "version": set(),
    "filesystem": set(),
    "onnx_sessions": set(),
    "kernels": FOUNDATION,
    "lexicons": FOUNDATION,
    "labels": FOUNDATION | FILES | {"lexicons"},
    "space": FOUNDATION | {"kernels"},
    "neighbors": FOUNDATION | {"onnx_sessions"},
    "transfer": FOUNDATION | {"neighbors"},
    "calibration": FOUNDATION,
    "evaluation": FOUNDATION | {"calibration", "fonts"},
    "model_selection": FOUNDATION | {"evaluation", "neighbors", "transfer"},
    "denoising": FOUNDATION | {"evaluation", "kernels", "neighbors"},
    "storage": FOUNDATION | FILES | {"version"},
    "sources": FOUNDATION | FILES | {"neighbors", "space", "storage"},
    "images": {"errors"},
    "features": FOUNDATION | {"images", "onnx_sessions"},
    "annotator": FOUNDATION
    | FILES
    | {
        "calibration",
        "denoising",
        "evaluation",
        "features",
        "images",
        "labels",
        "model_selection",
        "neighbors",
        "space",
        "storage",
        "transfer",
    },
    "datasets": FOUNDATION | {"labels"},
    "pages": FOUNDATION
    | FILES
    | {"annotator", "calibration", "evaluation", "fonts", "images", "labels"},
    "cli": FILES | {"annotator", "datasets", "distributed", "pages", "storage", "version"},
    "distributed": FOUNDATION
    | FILES
    | {"denoising", "features", "images", "kernels", "neighbors", "space"},
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
    "PIL": {"features", "images", "pages"},
    "defusedxml": {"images"},
    "onnx": {"features", "neighbors"},
    "onnxruntime": {"onnx_sessions"},
    "rich": {"cli"},
    "typer": {"cli"},
}
OPTIONAL = {
    "dask": {"distributed"},
    "distributed": {"distributed"},
    "faiss": {"neighbors"},
    "matplotlib": {"evaluation", "pages"},
    "pandas": {"evaluation"},
    "pyarrow": {"distributed", "lexicons", "sources"},
    "pillow_heif": {"images"},
    "torch": {"arrays"},
    "zarr": {"sources"},
}

# Rooms that know arrays only: no files, no network, no terminal. In them only readers of files,
# named here one by one, touch files.
PURE = set(ALLOWED) - {
    "__init__",
    "annotator",
    "cli",
    "datasets",
    "distributed",
    "features",
    "filesystem",
    "fonts",
    "images",
    "lexicons",
    "onnx_sessions",
    "pages",
    "sources",
    "storage",
}
READERS = {
    "labels/tag_files.py",
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


def modules():
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    room = room_of(path)
    assert room in ALLOWED, f"give the new room {room!r} its place in ALLOWED"
    for name in imports_of(path):
        top, *rest = name.split(".")
        if top == "tagkin":
            # `import tagkin` reaches everything: it points upwards from wherever it stands
            inside = bool(rest) and rest[0] == room
            assert inside or set(rest[:1]) & ALLOWED[room], f"{room} may not import {name}"
        elif top in OF_ONE_ROOM:
            assert room in OF_ONE_ROOM[top], f"{room} may not import {top}"
        elif top in OPTIONAL:
            assert room in OPTIONAL[top], f"{room} may not import {top}"
        else:
            assert top in EVERYWHERE or top in sys.stdlib_module_names, f"{room} imports {top}"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_pure_rooms_touch_no_file_and_no_terminal(path):
    if room_of(path) not in PURE or path.relative_to(PACKAGE).as_posix() in READERS:
        return
    assert not IMPURE_MODULES & {name.split(".")[0] for name in imports_of(path)}
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not IMPURE_CALLS & calls


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_optional_packages_are_imported_where_they_are_used(path):
    top_level = ast.Module(
        [
            n
            for n in ast.parse(path.read_text()).body
            if isinstance(n, (ast.Import, ast.ImportFrom))
        ],
        [],
    )
    names = {alias.name for n in top_level.body if isinstance(n, ast.Import) for alias in n.names}
    names |= {n.module or "" for n in top_level.body if isinstance(n, ast.ImportFrom)}
    assert not {name.split(".")[0] for name in names} & set(OPTIONAL)


def test_no_pickle():
    for path in modules():
        tops = {name.split(".")[0] for name in imports_of(path)}
        assert not {"pickle", "joblib", "dill", "marshal", "shelve"} & tops, path


def test_files_are_put_in_place_by_one_module():
    """What systems do differently there is known to it alone."""
    put = re.compile(r"\bfsync\(|\bos\.(replace|rename)\(|\.(replace|rename)\(\w+\)")
    found = [path.name for path in modules() if put.search(path.read_text())]
    assert found == ["filesystem.py"]


def test_onnxruntime_is_imported_through_one_door():
    """Elsewhere it could be imported first, and send telemetry."""
    door = re.compile(r"^\s*(import|from) onnxruntime\b", re.MULTILINE)
    folders = [
        PACKAGE,
        *(ROOT / name for name in ("benchmarks", "examples", "experiments", "tests")),
    ]
    found = [p for f in folders for p in f.rglob("*.py") if door.search(p.read_text())]
    assert found == [PACKAGE / "onnx_sessions.py"]


def test_benchmarks_examples_and_experiments_use_public_names_only():
    for folder in ("benchmarks", "examples", "experiments"):
        for path in (ROOT / folder).rglob("*.py"):
            for name in imports_of(path):
                assert not any(part.startswith("_") for part in name.split(".")[1:]), (path, name)


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_import_is_light():
    """Under half a second, at the best of five, in a process of its own."""
    code = "import time; t = time.perf_counter(); import tagkin; print(time.perf_counter() - t)"
    assert min(float(run(code)) for _ in range(5)) < 0.5


@pytest.mark.parametrize(
    "code",
    [
        "import tagkin",
        "import tagkin; tagkin.SemanticSpace; tagkin.load",
        "import tagkin.evaluation",
    ],
)
def test_import_pulls_in_no_optional_package(code):
    loaded = run(f"{code}; import sys; print(*sys.modules)").split()
    # pandas is not among them: scikit-learn imports it where it is installed
    assert not {"torch", "matplotlib", "onnx", "faiss", "dask", "nltk", "wn"} & set(loaded)


def test_public_names_are_real_and_sorted():
    assert tagkin.__all__ == sorted(tagkin.__all__)
    for name in tagkin.__all__:
        assert getattr(tagkin, name).__name__ == name
        assert getattr(tagkin, name).__doc__
    assert set(tagkin.__all__) <= set(dir(tagkin))
    with pytest.raises(AttributeError, match="no attribute 'Semantic'"):
        tagkin.Semantic  # noqa: B018


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_modules_stay_small(path):
    assert len(path.read_text().splitlines()) <= 500, "split it"
