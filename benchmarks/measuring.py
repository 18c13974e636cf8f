"""Time and memory of a block of code, from the standard library alone.

Linux only: the resident set size is read from /proc/self/statm.
"""

import os
import resource
import threading
import time

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Resident set size of this process, in bytes."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * _PAGE


def max_resident_bytes() -> int:
    """Largest resident set size this process has had so far, as the kernel counts it."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def stolen_seconds() -> float:
    """Processor time that this virtual machine wanted and its host gave to others, so far."""
    with open("/proc/stat") as f:
        return int(f.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


class Measure:
    """Context manager that measures the block it wraps.

    After the block the instance holds:

    ``cpu_seconds``, ``wall_seconds``
        CPU time of all threads of the process, and elapsed time.
    ``stolen_share``
        Of the time of all processors, the share that a virtual machine's host gave to others.
    ``peak_extra_bytes``
        Peak resident set size within the block minus that right before it. Samples miss peaks
        within a call that holds the interpreter lock, as some LAPACK wrappers do; ``ru_maxrss``
        misses nothing, but is a maximum over the life of the process. The larger one counts.
    """

    def __init__(self, interval: float = 0.01) -> None:
        self.interval = interval
        self._peak = 0

    def _sample(self) -> None:
        while not self._stop.wait(self.interval):
            self._peak = max(self._peak, resident_bytes())

    def __enter__(self) -> "Measure":
        self._stop = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._earlier_max = max_resident_bytes()
        self._before = self._peak = resident_bytes()
        self._sampler.start()
        self._stolen = stolen_seconds()
        self._wall = time.perf_counter()
        self._cpu = time.process_time()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.cpu_seconds = time.process_time() - self._cpu
        self.wall_seconds = time.perf_counter() - self._wall
        stolen = stolen_seconds() - self._stolen
        self.stolen_share = stolen / (self.wall_seconds * (os.cpu_count() or 1))
        self._stop.set()
        self._sampler.join()
        sampled = max(self._peak, resident_bytes()) - self._before
        highest = max_resident_bytes()
        rose = highest - self._before if highest > self._earlier_max else 0
        self.peak_extra_bytes = max(sampled, rose)

    def as_dict(self) -> dict[str, float]:
        """The measurements as numbers by name, NaN for an absent one."""
        return {
            "cpu_seconds": self.cpu_seconds,
            "wall_seconds": self.wall_seconds,
            "stolen_share": self.stolen_share,
            "peak_extra_bytes": self.peak_extra_bytes,
        }
