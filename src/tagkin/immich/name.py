"""The name of the server's program, which every command knows."""

__all__ = ["NAME"]

NAME = "Immich"
"""The name of the program, which is also the place of its tags. Commands call it immich."""
