"""How long a review takes to follow decisions.

``python -m benchmarks.live`` prints JSON: for each size the seconds that 60 decisions on one tag
take until the next page is known, at first and when many decisions on this tag (half of its
suggestions, 1,000 at most) were made before.
Suggestions, embeddings (200 dimensions) and features (256) are synthetic: what they are changes
nothing.
"""

import json
import resource
import time
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.process import say
from tagkin.annotator.live import LiveScores
from tagkin.catalogue.live_review import LiveReview

# photographs, tags, suggestions for each photograph
SIZES = ((10_000, 500, 20), (10_000, 500, 500), (100_000, 500, 20), (100_000, 20_000, 30))
PAGE, BEFORE, REPEATS = 60, 2000, 5


def review(n: int, n_tags: int, n_suggested: int) -> LiveReview:
    """A review of n photographs."""
    rng = np.random.default_rng(0)
    columns = rng.random((n, n_suggested))
    step = n_tags / n_suggested  # one suggestion in each stretch of tags: no tag twice
    columns = np.floor((np.arange(n_suggested) + columns) * step).astype(np.int64)
    values = rng.uniform(0.02, 0.98, columns.size)
    indptr = np.arange(0, columns.size + 1, n_suggested)
    candidates = scipy.sparse.csr_array((values, columns.ravel(), indptr), (n, n_tags))
    embeddings = rng.standard_normal((n, 200), dtype=np.float32)
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    features = rng.standard_normal((n, 256), dtype=np.float32) / 16
    scores = LiveScores(candidates, embeddings, features, np.full(n, 30.0))
    return LiveReview(scores, range(n), range(n_tags))


def timed(live: LiveReview, tag: int) -> tuple[float, float]:
    """Seconds from 60 decisions on a tag to the next page, by the clock and of the processor."""
    some = live.for_tag(tag, PAGE)
    start, cpu = time.perf_counter(), time.process_time()
    live.learn([(content, tag, i % 3 > 0) for i, (content, _) in enumerate(some)])
    live.questions(1)
    return time.perf_counter() - start, time.process_time() - cpu


def measure(n: int, n_tags: int, n_suggested: int) -> dict[str, Any]:
    """The median over some tags, at first and after many decisions, and peak memory."""
    live = review(n, n_tags, n_suggested)
    start = time.perf_counter()
    live.questions(1)
    first_page = time.perf_counter() - start
    tags = np.linspace(0, n_tags - 1, REPEATS).astype(int).tolist()
    at_first = [timed(live, tag) for tag in tags]
    later, n_before = [], 0
    for tag in tags:
        before = live.for_tag(tag, BEFORE)
        n_before = max(n_before, len(before) // 2)
        live.learn([(c, tag, i % 3 > 0) for i, (c, _) in enumerate(before[: len(before) // 2])])
        later.append(timed(live, tag))
    found = {
        "photographs": n,
        "tags": n_tags,
        "suggestions": n * n_suggested,
        "first_page": first_page,
        "at_first": np.median(at_first, axis=0).tolist(),
        "later": np.median(later, axis=0).tolist(),
        "decided_before": n_before,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    say(f"{n:,} × {n_tags:,}, {n_suggested}: {found['at_first']}, {found['later']}")
    return found


if __name__ == "__main__":
    print(json.dumps({"sizes": [measure(*size) for size in SIZES]}))
