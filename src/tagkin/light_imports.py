"""scikit-learn without what it imports and few here use: SciPy's functions, pandas and others.

They are two thirds of the time that importing it takes, which is most of what a short command
takes. SciPy, which asks for all of NumPy, gets NumPy without its tests and its Fortran compiler.
Programs that use tagkin import both as they are.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder
else:  # neither needs anything of its base class, which takes longer to import than all of this
    Loader = MetaPathFinder = object

__all__ = ["import_scikit_learn_lightly"]

_OF_NUMPY = ("numpy.f2py", "numpy.ma", "numpy.polynomial", "numpy.testing")
_NOT_YET = (
    *_OF_NUMPY,
    "scipy.linalg",
    "scipy.sparse.csgraph",
    "scipy.sparse.linalg",
    "scipy.special",
    "scipy.stats",
    "pandas",
    "joblib",
    "narwhals",
    "narwhals.stable",
    "narwhals.stable.v2",
    "sklearn.utils.parallel",
)
# What is imported without which others.
_WITHOUT = {
    "sklearn": _NOT_YET,
    "array_api_compat.numpy": _OF_NUMPY,
    "scipy._lib.array_api_compat.numpy": _OF_NUMPY,
}
# Functions of theirs that scikit-learn takes hold of while it is imported, and calls later.
_FUNCTIONS = {
    "joblib": ("cpu_count",),
    "scipy.sparse.csgraph": ("laplacian",),
    "scipy.sparse.linalg": ("LinearOperator", "cg"),
    "sklearn.utils.parallel": ("_get_threadpool_controller",),
}


def import_scikit_learn_lightly() -> None:
    """From now on, whoever imports scikit-learn first in this process gets it sooner."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds scikit-learn where it is, and lets it be imported without those modules."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _WITHOUT:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _LightLoader(spec.loader, _WITHOUT[fullname])
        return spec


class _LightLoader(Loader):
    """Imports a module as its own loader does, while others are not there yet."""

    def __init__(self, loader: Loader, without: Sequence[str]):
        self._loader, self._without = loader, without

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        with _not_yet(self._without):
            self._loader.exec_module(module)


@contextmanager
def _not_yet(without: Sequence[str]) -> Iterator[None]:
    """Whoever imports one of those modules gets something in its place."""
    names = []
    for name in without:
        above, _, last = name.rpartition(".")
        if name in sys.modules or not (name.startswith("sklearn.") or _is_there(name)):
            continue
        names.append(name)
        sys.modules[name] = later = _Later(name)
        if above in sys.modules:
            setattr(sys.modules[above], last, later)
    try:
        yield
    finally:
        # the next who asks for it gets it: NumPy and SciPy import their parts when they are
        for name in names:
            above, _, last = name.rpartition(".")
            for known, key in ((sys.modules, name), (vars(sys.modules.get(above, sys)), last)):
                if isinstance(known.get(key), _Later):
                    del known[key]


def _is_there(name: str) -> bool:
    """Whether a module is installed; what is below one that is not imported yet is taken to be."""
    above = name.rpartition(".")[0]
    return isinstance(sys.modules.get(above), _Later) or importlib.util.find_spec(name) is not None


class _Later(ModuleType):
    """Stands for a module that is imported when something of it is asked for."""

    def __init__(self, name: str):
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in _FUNCTIONS.get(self.__name__, ()):
            return partial(self._call, name)
        if self.__name__ == "narwhals.stable.v2" and name == "dependencies":
            return _DataFrames
        return getattr(self._imported(), name)

    def _imported(self) -> ModuleType:
        above = self.__name__
        while above:  # nor do others stand in the way of what is above
            if isinstance(sys.modules.get(above), _Later):
                del sys.modules[above]
            above = above.rpartition(".")[0]
        return importlib.import_module(self.__name__)

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._imported(), name)(*args, **kwargs)


class _DataFrames:
    """Whether something is a data frame or a series, which an array is not, whoever is asked."""

    @staticmethod
    def is_into_dataframe(found: object) -> bool:
        return _is_of_narwhals("is_into_dataframe", found)

    @staticmethod
    def is_into_series(found: object) -> bool:
        return _is_of_narwhals("is_into_series", found)


def _is_of_narwhals(question: str, found: object) -> bool:
    if type(found).__module__.partition(".")[0] in ("builtins", "numpy", "scipy"):
        return False
    dependencies = importlib.import_module("narwhals.stable.v2.dependencies")
    return bool(getattr(dependencies, question)(found))
