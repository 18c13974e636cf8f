"""Rules of the house: a failing test names the rule, the places that break it and what to edit."""

from collections.abc import Iterable


def obey(rule: str, broken: Iterable[object], remedy: str) -> None:
    """Fail if there are places that break a rule."""
    places = sorted({str(place) for place in broken})
    assert not places, "\n".join(["", f"Rule: {rule}", *places, f"To mend it: {remedy}"])


def obey_but(rule: str, broken: Iterable[str], known: set[str], list_: str, remedy: str) -> None:
    """Obey, except at known places, which leave their list when they are mended."""
    places = set(broken)
    obey(rule, places - known, remedy)
    obey(
        f"{list_} has no place that is mended",
        known - places,
        f"delete these lines of {list_} in tests/test_architecture.py",
    )
