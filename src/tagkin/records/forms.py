"""Records: classes that a model may consist of, each described by its own annotations.

`storable` marks a class. Its annotated fields are stored, and for an estimator the parameters of
``__init__``. The annotations say which values are allowed (`tagkin.records.rules`). So
`tagkin.storage` reads, writes and checks any record without knowing its class.

>>> from dataclasses import dataclass
>>> from typing import Annotated
>>> import numpy as np
>>> from tagkin.records.forms import check_record
>>> from tagkin.records.rules import Floats, AxisSizes
>>> @dataclass(frozen=True)
... class Line:
...     slopes: Annotated[np.ndarray, Floats("D")]
...     offsets: Annotated[np.ndarray, Floats("D", low=0)]
>>> check_record(Line(np.ones(3), np.ones(2)), AxisSizes(), "line")
Traceback (most recent call last):
tagkin.records.rules.Refused: line.offsets has 2 entries where line.slopes has 3
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, fields, is_dataclass
from typing import (
    Annotated,
    Any,
    ClassVar,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from tagkin.errors import InvalidInput
from tagkin.records.rules import (
    AxisSizes,
    Either,
    Flag,
    Floats,
    ListOf,
    Number,
    Refused,
    Rule,
    Sparse,
    Table,
    Text,
    Texts,
    Whole,
)

__all__ = [
    "LEFT_OUT",
    "Axes",
    "Form",
    "check_record",
    "find_storable",
    "form_of",
    "is_resource",
    "is_storable",
    "resource",
    "storable",
]

T = TypeVar("T")

LEFT_OUT = "left out"
"""Marks an annotated attribute that is not stored: ``failures_: Annotated[list, LEFT_OUT]``."""

_STORABLE: dict[str, type] = {}
_RESOURCES: set[type] = set()
_FORMS: dict[type, Form] = {}


def storable(cls: type[T]) -> type[T]:
    """Mark a class whose objects may be part of a stored model."""
    _STORABLE[_name_of(cls)] = cls
    return cls


def resource(cls: type[T]) -> type[T]:
    """Mark a class that reads files of this machine; a model is stored without its objects."""
    _RESOURCES.add(cls)
    return cls


def find_storable(name: str) -> type | None:
    """Return the storable class with a name such as ``"space.Landmarks"``, or None."""
    return _STORABLE.get(name)


def is_storable(cls: type) -> bool:
    """Whether objects of this very class, not of a subclass, may be stored."""
    return _STORABLE.get(_name_of(cls)) is cls


def is_resource(cls: type) -> bool:
    """Whether a model is stored without objects of this class."""
    return cls in _RESOURCES


def _name_of(cls: type) -> str:
    package, _, rest = cls.__module__.partition(".")
    room = rest.partition(".")[0] if package == "tagkin" else package
    return f"{room}.{cls.__name__}"


@dataclass(frozen=True)
class Axes:
    """Marks a part whose axes have other names outside: ``Annotated[Table, Axes(D="learned")]``."""

    names: Mapping[str, str]

    def __init__(self, **names: str):
        object.__setattr__(self, "names", names)


@dataclass(frozen=True)
class Form:
    """The stored fields of a class, with their rules."""

    parameters: Mapping[str, Rule]
    learned: Mapping[str, Rule]
    left_out: frozenset[str]

    @property
    def rules(self) -> dict[str, Rule]:
        """The rules of all stored fields, by name."""
        return {**self.parameters, **self.learned}


def form_of(cls: type) -> Form:
    """Return the form of a class, from its annotations."""
    if cls not in _FORMS:
        _FORMS[cls] = _read_form(cls)
    return _FORMS[cls]


def _read_form(cls: type) -> Form:
    hints: dict[str, object] = {}
    for base in reversed(cls.__mro__):
        own = vars(base).get("__annotations__")
        if own and not base.__module__.startswith("sklearn"):
            known = get_type_hints(base, include_extras=True)
            hints.update({name: known[name] for name in own if name in known})
    hints = {name: hint for name, hint in hints.items() if get_origin(hint) is not ClassVar}
    left_out = {
        name
        for name, hint in hints.items()
        if LEFT_OUT in _marks(hint) or isinstance(getattr(cls, name, None), property)
    }
    if is_dataclass(cls):
        learned = {f.name: _rule_of(hints[f.name]) for f in fields(cls)}
        return Form({}, learned, frozenset(left_out))
    names = [name for name, hint in hints.items() if name[0] == "_" or name[-1] == "_"]
    learned = {name: _rule_of(hints[name]) for name in names if name not in left_out}
    init: Any = getattr(cls, "__init__")  # noqa: B009 - of a class, which mypy takes for an object
    signature = list(inspect.signature(cls).parameters) if init is not object.__init__ else []
    types = get_type_hints(init, include_extras=True) if signature else {}
    parameters = {name: _parameter_rule(types.get(name, Any)) for name in signature}
    return Form(parameters, learned, frozenset(left_out))


def check_record(value: object, sizes: AxisSizes, where: str, *, fitted: bool = True) -> None:
    """Raise `Refused` if a value in a record, or in a part of it, breaks its rule.

    The sizes of the record's axes are added to `sizes`. `where` is its name in the message, and
    `fitted` says whether an estimator must have learned.
    """
    form, state = form_of(type(value)), vars(value)
    learns = fitted or any(name in state for name in form.learned)
    for name, rule in {**form.parameters, **(form.learned if learns else {})}.items():
        if name in state:
            rule.check(state[name], sizes, f"{where}.{name}")
        elif not rule.may_be_absent:
            raise Refused(where, f"lacks {name}")
    checks = ["check_parameters", *(["check_stored"] if learns else [])]
    for name in checks:
        if not hasattr(value, name):
            continue
        try:
            getattr(value, name)()
        except InvalidInput as error:
            raise Refused(where, f"cannot be used: {error}") from error


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[object]]]


# --- rules from annotations ----------------------------------------------------------------


def _marks(hint: object) -> tuple[object, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def _rule_of(hint: object) -> Rule:
    """Return the rule that an annotation names, or that follows from its type."""
    marks = _marks(hint)
    allowed = _options(get_args(hint)[0] if marks else hint)
    kinds = [kind for kind in allowed if kind is not type(None)]
    rule = next((mark for mark in marks if isinstance(mark, Rule)), None)
    if rule is None:
        names = next((mark.names for mark in marks if isinstance(mark, Axes)), None)
        rules = [_rule_of_type(kind, names) for kind in kinds]
        rule = rules[0] if len(rules) == 1 else Either(*rules)
    return rule.or_none() if len(kinds) < len(allowed) else rule


_PLAIN: dict[object, Callable[[], Rule]] = {
    bool: Flag,
    int: lambda: Whole(-(2**53)),
    float: Number,
    str: Text,
}


def _rule_of_type(kind: object, names: Mapping[str, str] | None = None) -> Rule:
    origin, args = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        return _PLAIN[kind]()
    if origin in (list, Sequence):
        return Texts() if args == (str,) else ListOf(_rule_of(args[0]))
    if origin in (dict, Mapping):
        return Table(_rule_of(args[1]))
    if isinstance(kind, type):
        return _RecordOf(kind, names or {})
    raise TypeError(f"No rule follows from the annotation {kind}: name one, Annotated[…, rule].")


def _parameter_rule(hint: object) -> Rule:
    """Return the rule of a parameter: from a plain type, else anything that can be passed."""
    kinds = {kind for option in _options(hint) for kind in (get_args(option) or (option,))}
    if _marks(hint) or kinds <= {*_PLAIN, type(None)}:
        return _rule_of(hint)
    return _Passed().or_none()


def _options(hint: object) -> tuple[object, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


class _RecordOf(Rule):
    """A record of a class or of a subclass, whose axes may have other names outside."""

    def __init__(self, cls: type, names: Mapping[str, str]):
        self._class, self._names = cls, names

    def _check(self, value: object, sizes: AxisSizes, where: str) -> None:
        if not isinstance(value, self._class):
            name = type(value).__name__
            raise Refused(where, f"is a {name}, not a {self._class.__name__}")
        check_record(value, sizes.rename(self._names), where)


class _Passed(Rule):
    """A parameter from the user: a number, a text, an array, a record, or several."""

    def _check(self, value: object, sizes: AxisSizes, where: str) -> None:
        if value is None or isinstance(value, (bool, str)):
            return
        if is_storable(type(value)):
            check_record(value, AxisSizes(), where, fitted=False)
        elif isinstance(value, (int, float)):
            Number().check(value, sizes, where)
        elif isinstance(value, (dict, list)):
            entries = value.items() if isinstance(value, dict) else enumerate(value)
            for key, entry in entries:
                self._check(entry, sizes, f"{where}[{key!r:.60}]")
        elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
            wide = value.astype(np.float32) if value.dtype == np.float16 else value
            Floats(*(f"axis {i}" for i in range(wide.ndim))).check(wide, AxisSizes(), where)
        elif hasattr(value, "indptr"):
            Sparse("rows", "columns", low=-1e30).check(value, AxisSizes(), where)
        elif not isinstance(value, np.ndarray):
            raise Refused(where, f"is a {type(value).__name__}")
