from tagkin import arrays


def test_arrays_offers_at_most_twenty_names():
    """A function that a single room needs belongs there."""
    assert len(arrays.__all__) <= 20
    assert arrays.__all__ == sorted(arrays.__all__, key=lambda name: (name.islower(), name))
    assert all(getattr(arrays, name).__doc__ for name in arrays.__all__)
