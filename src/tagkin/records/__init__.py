"""Records: classes that a model may consist of, each described by its own annotations.

- `forms`: which fields a class stores (`storable`), and whether their values may be
- `rules`: the values that a field may have, such as ``Floats("N", "m")``
"""
