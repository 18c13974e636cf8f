"""Parameters of an estimator by name, as scikit-learn asks for them, without scikit-learn.

`Annotator` and `Vocabulary` are used by commands that must not import scikit-learn, so they cannot
extend its `BaseEstimator`.
"""

from __future__ import annotations

from typing import Self

from tagkin.errors import InvalidInput
from tagkin.records.forms import form_of

__all__ = ["HasParameters"]


class HasParameters:
    """An estimator whose attributes without underscores are the parameters of ``__init__``."""

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default True
            Include the parameters of estimators among the values, such as
            ``space__regularization``.
        """
        params = {name: getattr(self, name) for name in form_of(type(self)).parameters}
        if deep:
            for name, value in list(params.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    inner = value.get_params()
                    params |= {f"{name}__{key}": inner[key] for key in inner}
        return params

    def set_params(self, **params: object) -> Self:
        """Set parameters by name; ``space__regularization`` is a parameter of the space."""
        known = form_of(type(self)).parameters
        nested: dict[str, dict[str, object]] = {}
        for name in params:
            outer, _, inner = name.partition("__")
            if outer not in known:
                raise InvalidInput(
                    f"{type(self).__name__} has no parameter {outer!r}. It has {', '.join(known)}."
                )
            if inner:
                nested.setdefault(outer, {})[inner] = params[name]
        for name in params.keys() & known.keys():
            setattr(self, name, params[name])
        for outer, inner_params in nested.items():
            estimator = getattr(self, outer)
            if not hasattr(estimator, "set_params"):
                raise InvalidInput(
                    f"{outer} is {estimator!r}, which has no parameters. Set {outer} first."
                )
            estimator.set_params(**inner_params)
        return self

    def unfitted(self) -> Self:
        """Return an estimator with the same parameters that has learned nothing."""
        return type(self)(**self.get_params(deep=False))

    def __repr__(self) -> str:
        usual = type(self)().get_params(deep=False)
        params = self.get_params(deep=False).items()
        shown = [f"{name}={value!r}" for name, value in params if repr(value) != repr(usual[name])]
        return f"{type(self).__name__}({', '.join(shown)})"
