"""The exact space against other implementations of kernel CCA: agreement, then cost.

Every library gets one thread and its own process. The peers are given the precomputed visual
kernel; tagkin's time includes computing it.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.process import WORK, environment_for, run_python, say
from benchmarks.synthetic import synthetic_features
from tagkin.kernels import ArcCosine

PEERS = {"mvlearn": "mvlearn KMCCA", "cca-zoo": "cca-zoo KCCA"}
DOUBLE = "tagkin-float64"  # from float64 features, as precise as the peers
SIZES = (1000, 2000, 4000)
DIMENSION = 512
N_COMPONENTS = 20
REGULARIZATION = 0.5
KAPPA = REGULARIZATION / (1 + REGULARIZATION)  # the same value in the peers' parametrisation


def measure() -> list[dict[str, Any]]:
    """One row per size and library."""
    pythons = {peer: environment_for(peer) for peer in PEERS}
    folder = WORK / "peers"
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for n in SIZES:
        problem = folder / f"{n}.npz"
        X, Y = synthetic_features(n, DIMENSION)
        np.savez(
            problem,
            KV=ArcCosine()(X.astype(np.float64)),
            Y=Y.astype(np.float64),
            kappa=KAPPA,
            n_components=N_COMPONENTS,
        )
        say(f"N = {n:,}: tagkin")
        ours = folder / f"{n}-tagkin.npz"
        run_python("-m", "benchmarks.fit_exact", str(n), ours, threads=1)
        rows.append(_row(n, "tagkin", ours, ours))
        doubles = folder / f"{n}-{DOUBLE}.npz"
        run_python("-m", "benchmarks.fit_exact", str(n), doubles, "float64", threads=1)
        rows.append(_row(n, DOUBLE, doubles, ours))
        for peer in PEERS:
            say(f"N = {n:,}: {peer} (minutes at the larger sizes)")
            answer = folder / f"{n}-{peer}.npz"
            script = Path("benchmarks") / "peers" / f"run_{peer.replace('-', '_')}.py"
            run_python(script, problem, answer, python=pythons[peer], threads=1)
            rows.append(_row(n, peer, answer, ours))
            say(json.dumps(rows[-1]))
    return rows


def _row(n: int, program: str, answer: Path, ours: Path) -> dict[str, Any]:
    with np.load(answer) as found, np.load(ours) as reference:
        row = {
            "images": n,
            "program": program,
            "cpu_seconds": float(found["cpu_seconds"]),
            "wall_seconds": float(found["wall_seconds"]),
            "peak_bytes": int(found["peak_extra_bytes"]),
        }
        if program in PEERS:
            row |= _agreement(found, reference)
    return row


def _agreement(found: Any, reference: Any) -> dict[str, float]:
    """The difference of projections and correlations from tagkin's.

    Directions with nearly equal correlations are not unique, so only columns whose correlation
    differs from its neighbours by one part in a thousand are compared.
    """
    ours = reference["correlations"]
    gaps = np.abs(np.diff(ours, prepend=2.0, append=0.0)) / ours[0]
    apart = (gaps[:-1] > 1e-3) & (gaps[1:] > 1e-3)
    a, b = found["projection"][:, apart], reference["projection"][:, apart]
    cosines = np.abs((a * b).sum(axis=0)) / np.linalg.norm(a, axis=0) / np.linalg.norm(b, axis=0)
    return {
        "columns_compared": int(apart.sum()),
        "largest_angle_loss": float((1 - cosines).max()),
        "largest_correlation_difference": float(
            np.abs((1 - KAPPA) * found["correlations"] - ours).max()
        ),
    }
