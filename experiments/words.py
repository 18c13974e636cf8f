"""Learn the map from photographs to words from captions, and measure it.

``python -m experiments words`` measures the map that comes with tagkin, and writes the tables of
docs/results/words.md. It takes some minutes. ``--learn`` first learns the map again, from COCO's
captions in words.npz, and writes its record, src/tagkin/tag_meanings/word_map.safetensors.

The map begins as a regularised CCA between square roots of features and sentence vectors. Each
photograph counts with its caption and, by less, with the words of the caption, because names are
single words. A symmetric contrastive loss then improves the matrices for a few epochs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from experiments import made
from experiments.problem import data_folder
from experiments.word_measures import Captioned, measure_retrieval, names_map, read_photos
from tagkin.lexicons import SentenceEncoder
from tagkin.tag_meanings.word_map import WordMap, normalize

__all__ = ["Captioned", "Settings", "contrastive_gradient", "learn", "read_words", "run"]

RECORD = Path(__file__).parent.parent / "src" / "tagkin" / "tag_meanings" / "word_map.safetensors"
_HELD_OUT = 2000  # captioned photographs to choose settings by
_STOP = frozenset(  # words that say nothing about a photograph
    """and are been being but for from has have her him his into its not off one onto other out over
    some that the their them there these they this those three top two very was were which while
    who with""".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Settings:
    """Numbers of the map, chosen on held-out captions and on names of Flickr8k's training part.

    Names of Flickr8k (MAP) and captions of its dev part (in the first ten): CCA alone with words
    counting 0, .3 and .6: 15.7 and 42.5, 16.2 and 42.0, 16.3 and 41.8; then two, four and eight
    epochs: 16.6 and 44.3, 16.6 and 43.6, 16.5 and 43.5. Twice the dimensions: 16.1 and 44.0.
    """

    n_dimensions: int = 256
    ridge: float = 0.3  # of the mean eigenvalue of either side
    words: float = 0.3  # weight of the words of a caption, the caption has the rest
    power: float = 0.75  # of the correlations, as weights of their directions
    epochs: int = 4
    batch: int = 1024
    rate: float = 3e-4  # of Adam, falling to 0 along a cosine
    mixed: float = 0.5  # largest share of a word in the vector of a caption
    scale: float = 20.0  # factor of cosines in the loss


# --- data ----------------------------------------------------------------------------------


def roots(features: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return square roots of stored features, of unit length."""
    return normalize(np.sqrt(features.astype(np.float32) * scale))


def encode(texts: Sequence[str]) -> np.ndarray:
    """Return sentence vectors; texts of one length go together, which is faster."""
    vectors = np.empty((len(texts), SentenceEncoder.dimension), dtype=np.float32)
    order = np.argsort([len(text) for text in texts], kind="stable")
    encoder = SentenceEncoder()
    for start in range(0, len(order), 256):
        rows = order[start : start + 256]
        vectors[rows] = encoder([str(texts[i]) for i in rows])
    return vectors


def split_words(captions: Sequence[str], vocabulary: Sequence[str]) -> np.ndarray:
    """Return the first ten words (n×10) of each caption that are in the vocabulary, or −1."""
    number = {word: i for i, word in enumerate(vocabulary)}
    words = np.full((len(captions), 10), -1)
    for row, caption in zip(words, captions, strict=True):
        known = [number[word] for word in dict.fromkeys(_words(caption)) if word in number][:10]
        row[: len(known)] = known
    return words


def _words(caption: str) -> list[str]:
    return [w for w in re.findall(r"[a-z]{3,}", caption.lower()) if w not in _STOP]


def read_words(cache: Path) -> tuple[Captioned, Captioned, dict[str, Any]]:
    """Return COCO's and Flickr8k's captions, and the other arrays of flickr8k.npz.

    Sentence vectors are kept in the folder `cache`.
    """
    data, flickr = np.load(data_folder() / "words.npz"), np.load(data_folder() / "flickr8k.npz")
    captions, others = data["captions"].tolist(), data["flickr8k_captions"].ravel().tolist()
    counts = Counter(word for caption in captions for word in set(_words(caption)))
    vocabulary = sorted(word for word, n in counts.items() if n >= 5)
    texts = {"coco": captions, "flickr8k": others, "vocabulary": vocabulary}
    vectors = {name: _encode_once(cache / f"words-{name}.npy", t) for name, t in texts.items()}
    coco = Captioned(
        roots(data["features"], data["scale"]),
        vectors["coco"],
        np.arange(len(captions)),
        vectors["vocabulary"],
        split_words(captions, vocabulary),
    )
    flickr8k = Captioned(
        roots(flickr["features"], flickr["scale"]),
        vectors["flickr8k"],
        np.repeat(np.arange(len(flickr["features"])), 5),
        vectors["vocabulary"],
        split_words(others, vocabulary),
    )
    return coco, flickr8k, {name: flickr[name] for name in ("votes", "label_names", "split")}


def _encode_once(path: Path, texts: Sequence[str]) -> np.ndarray:
    if path.exists():
        return np.load(path).astype(np.float32)
    vectors = encode(texts)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, vectors.astype(np.float16))
    return vectors


def join(first: Captioned, second: Captioned) -> Captioned:
    """Return the photographs of both, with the same vocabulary."""
    owners = np.append(first.owners, second.owners + len(first.X))
    X, T, words = (
        np.vstack([getattr(part, name) for part in (first, second)]) for name in ("X", "T", "words")
    )
    return Captioned(X, T, owners, first.V, words)


# --- learning ------------------------------------------------------------------------------


def learn(data: Captioned, settings: Settings = Settings()) -> WordMap:
    """Learn the map from captioned photographs."""
    start, correlations = learn_cca(data, settings)
    weights = np.diag(correlations**settings.power).astype(np.float32)
    P, Q = improve(data, start, weights, settings) if settings.epochs else (weights, weights)
    return replace(start, image_map=start.image_map @ P, word_map=start.word_map @ Q)


def learn_cca(data: Captioned, settings: Settings) -> tuple[WordMap, np.ndarray]:
    """Return a regularised CCA with m unweighted dimensions, and its correlations (m,).

    With C the covariance of features X and texts T, and S their own covariances, the directions
    are singular vectors of (Sₓ + rₓI)^−½ C (Sₜ + rₜI)^−½. Texts are captions and, with weight
    `words`, the words of the caption around their own mean.
    """
    a, b = data.X[data.owners].mean(axis=0), data.T.mean(axis=0)
    images, texts = data.X[data.owners] - a, data.T - b
    n, share = len(texts), settings.words
    has = data.words >= 0
    counts = np.maximum(has.sum(axis=1), 1)
    uses = np.bincount(data.words[has], (1 / counts)[has.nonzero()[0]], minlength=len(data.V))
    V = (data.V - uses @ data.V / uses.sum()).astype(np.float32)
    rows = has.nonzero()[0]
    weights = (1 / counts[rows]).astype(np.float32)
    mentions = scipy.sparse.csr_array((weights, (data.words[has], rows)), shape=(len(V), n))
    across = (1 - share) * (images.T @ texts) / n + share * ((mentions @ images).T @ V) / n
    own = (1 - share) * (texts.T @ texts) / n + share * (V.T * uses) @ V / n
    left, right = (_whiten(S, settings.ridge) for S in (images.T @ images / n, own))
    U, correlations, W = np.linalg.svd(left @ across @ right, full_matrices=False)
    m = settings.n_dimensions
    arrays = a, left @ U[:, :m], b, right @ W[:m].T
    return WordMap(*(array.astype(np.float32) for array in arrays)), correlations[:m]


def _whiten(S: np.ndarray, ridge: float) -> np.ndarray:
    """Return (S + ridge · mean eigenvalue)^−½."""
    values, vectors = np.linalg.eigh(S.astype(np.float64))
    return (vectors / np.sqrt(np.maximum(values, 0) + ridge * values.mean())) @ vectors.T


def improve(
    data: Captioned, start: WordMap, weights: np.ndarray, settings: Settings
) -> tuple[np.ndarray, np.ndarray]:
    """Return matrices P and Q (m×m) that improve the map by a symmetric contrastive loss."""
    rng = np.random.default_rng(0)
    X = (data.X - start.image_mean) @ start.image_map
    T, V = ((part - start.word_mean) @ start.word_map for part in (data.T, data.V))
    steps = [weights.copy(), weights.copy(), np.array(np.log(settings.scale), dtype=np.float32)]
    moments = [(np.zeros_like(p), np.zeros_like(p)) for p in steps]
    n_batches = len(T) // settings.batch
    n_words = np.maximum((data.words >= 0).sum(axis=1), 1)
    for k in range(settings.epochs * n_batches):
        if k % n_batches == 0:
            order = rng.permutation(len(T))
        rows = order[k % n_batches * settings.batch :][: settings.batch]
        chosen = data.words[rows, (rng.random(len(rows)) * n_words[rows]).astype(int)]
        share = (settings.mixed * rng.random(len(rows)) * (chosen >= 0)).astype(np.float32)
        texts = (1 - share)[:, None] * T[rows] + share[:, None] * V[chosen]
        _, gradients = contrastive_gradient(X[data.owners[rows]], texts, *steps)
        rate = settings.rate * (1 + np.cos(np.pi * k / (settings.epochs * n_batches))) / 2
        for p, (first, second), g in zip(steps, moments, gradients, strict=True):
            first += 0.1 * (g - first)
            second += 0.001 * (g * g - second)
            unbiased = second / (1 - 0.999 ** (k + 1))
            p -= rate * first / (1 - 0.9 ** (k + 1)) / (np.sqrt(unbiased) + 1e-8)
    return steps[0], steps[1]


def contrastive_gradient(
    X: np.ndarray, T: np.ndarray, P: np.ndarray, Q: np.ndarray, log_scale: np.ndarray
) -> tuple[float, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return the loss of pairs X, T (b×m) and its gradients by P, Q (m×m) and the log of the scale.

    With e and g the rows of XP and TQ at unit length and L = s e gᵀ, the loss is the mean of
    −log softmax(L)ᵢᵢ over rows and of the same over columns.
    """
    n, scale = len(X), np.exp(log_scale)
    U, W = X @ P, T @ Q
    lengths, others = (np.linalg.norm(part, axis=1, keepdims=True) for part in (U, W))
    e, g = U / lengths, W / others
    L = scale * (e @ g.T)
    exponents = np.exp(L - L.max())
    rows, columns = exponents.sum(axis=1, keepdims=True), exponents.sum(axis=0)
    own = np.diagonal(exponents)
    loss = -np.log(own / rows[:, 0]).mean() / 2 - np.log(own / columns).mean() / 2
    G = (exponents / rows + exponents / columns) / (2 * n)
    G[np.diag_indices(n)] -= 1 / n
    d_e, d_g = scale * (G @ g), scale * (G.T @ e)
    d_U = (d_e - e * (e * d_e).sum(axis=1, keepdims=True)) / lengths
    d_W = (d_g - g * (g * d_g).sum(axis=1, keepdims=True)) / others
    return float(loss), (X.T @ d_U, T.T @ d_W, np.asarray((G * L).sum(), dtype=P.dtype))


# --- measuring -----------------------------------------------------------------------------


def compare(
    coco: Captioned, flickr8k: Captioned, facts: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Compare forms of the map where settings were chosen: on no test photograph."""
    order = np.random.default_rng(0).permutation(len(coco.X))
    held, known = coco.some(order[:_HELD_OUT]), coco.some(order[_HELD_OUT:])
    dev = flickr8k.some(np.flatnonzero(facts["split"] == "dev"))
    others = np.flatnonzero(facts["split"] != "test")
    Y = facts["votes"][others] >= 2
    names = encode(facts["label_names"].tolist())
    plain = Settings(words=0.0, epochs=0)
    forms = {
        "CCA, captions": learn(known, plain),
        "CCA, captions and words": learn(known, replace(plain, words=Settings.words)),
        "the same, then contrastive": learn(known),
    }
    for form, learned in {"ridge": learn_ridge(known), **forms}.items():
        yield {
            "form": form,
            "held-out captions, first ten of 2,000": measure_retrieval(learned, held)["first ten"],
            "Flickr8k dev captions, first ten of 1,000": measure_retrieval(learned, dev)[
                "first ten"
            ],
            "Flickr8k names, MAP": names_map(learned, flickr8k.X[others], Y, names),
        }


def learn_ridge(data: Captioned, ridge: float = 0.1) -> WordMap:
    """Return a ridge regression from features to captions as a map."""
    a, b = data.X.mean(axis=0), data.T.mean(axis=0)
    images = data.X[data.owners] - a
    gram = images.T @ images
    gram[np.diag_indices(len(gram))] += ridge * np.trace(gram) / len(gram)
    A = np.linalg.solve(gram, images.T @ (data.T - b))
    return WordMap(a, A.astype(np.float32), b, np.eye(len(b), dtype=np.float32))


def measure(
    maps: dict[str, WordMap], flickr8k: Captioned, facts: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Measure maps on photographs and captions that they were not learned from."""
    test = flickr8k.some(np.flatnonzero(facts["split"] == "test"))
    photos = read_photos()
    X = roots(photos.features, np.ones(1, dtype=np.float32))
    names, captions = encode(photos.labels), encode(photos.captions)
    folder = Captioned(X, captions, np.arange(len(X)), test.V, np.full((len(X), 1), -1))
    part = folder.some(np.arange(300))
    for learned_from, learned in maps.items():
        yield {
            "learned from": learned_from,
            "photos, names alone, MAP": names_map(learned, X, photos.Y, names),
            **_prefixed("300 photos", measure_retrieval(learned, part)),
            **_prefixed("1,200 photos", measure_retrieval(learned, folder)),
            **_prefixed("Flickr8k", measure_retrieval(learned, test)),
        }


def _prefixed(name: str, values: dict[str, str]) -> dict[str, str]:
    return {f"{name}, {key}": value for key, value in values.items()}


def run(results: Path, output: Path, *, learns: bool) -> None:
    """Measure the map, after it was learned again and written if `learns`."""
    coco, flickr8k, facts = read_words(results / "cache")
    if learns:
        RECORD.write_bytes(learn(coco).write())
    both = join(coco, flickr8k.some(np.flatnonzero(facts["split"] == "train")))
    maps = {
        "COCO (the map of tagkin)": WordMap.read(RECORD.read_bytes()),
        "COCO and Flickr8k's training part": learn(both),
    }
    tables = {
        "words": measure(maps, flickr8k, facts),
        "words-forms": compare(coco, flickr8k, facts),
    }
    for name, rows in tables.items():
        made.write(output / f"{name}.csv", rows)
