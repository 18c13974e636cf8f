"""The servers whose photographs can be a collection."""

__all__ = ["SERVERS"]

SERVERS = {"immich": "Immich"}
"""The name of the collection in commands, and of its module in `tagkin.catalogue.sources` → the
program, which is also the place of its tags."""
