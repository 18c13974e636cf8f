"""The version, in a module of its own: what everything may import imports nothing."""

__all__ = ["__version__"]

__version__ = "0.3.0"
