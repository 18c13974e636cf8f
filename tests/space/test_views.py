import numpy as np
import pytest
import scipy.sparse

from tagkin.errors import InvalidInput
from tagkin.space.views import IndicatorView, TextView, as_text_view


def test_the_indicator_views_kernel_counts_shared_labels():
    Y = scipy.sparse.csr_array([[1, 1, 0], [0, 1, 1], [0, 0, 1]])
    T = IndicatorView().fit(Y).transform(Y)
    np.testing.assert_array_equal((T @ T.T).toarray(), [[2, 1, 0], [1, 2, 1], [0, 1, 1]])


def test_views_by_name_or_object():
    assert isinstance(as_text_view("indicator"), IndicatorView)
    given = IndicatorView()
    assert as_text_view(given) is not given
    assert isinstance(given, TextView)
    with pytest.raises(InvalidInput, match="Found 2 labels where 3 were fitted"):
        given.fit(np.eye(3)).transform(np.eye(2))
