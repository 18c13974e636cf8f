"""Connect to a Dask cluster, wait for its results, and report its loss."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar, overload

from tagkin.arrays.namespaces import LabelMatrix
from tagkin.errors import ClusterLost, MissingExtra, TagkinError
from tagkin.installing import install_command

if TYPE_CHECKING:
    from dask.array import Array as DaskArray
    from distributed import Client, Future

__all__ = ["compute", "connect"]

Result = TypeVar("Result")
Collections = TypeVar("Collections", list, tuple)

_PATIENCE = 300.0  # seconds without any worker; clusters that grow on demand take minutes
_CHECK_EVERY = 1.0  # seconds between checks of the cluster while waiting


def dask() -> ModuleType:
    """Import Dask, or raise an error with the install command."""
    try:
        import dask
        import dask.array
        import distributed  # noqa: F401
    except ImportError as error:
        raise MissingExtra(f"Dask is not installed: {install_command('dask')}") from error
    # adding a filter twice has no effect
    logging.getLogger("distributed.client").addFilter(_is_no_cancellation)
    return dask


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    """False for the traceback that Dask logs when a client without its scheduler is closed.

    Closing ends the client's attempt to connect again. `ClusterLost` has reported the loss.
    """
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


def connect(address: str) -> Client:
    """Return a client of the Dask scheduler at an address such as ``tcp://10.0.0.1:8786``.

    Use it in a ``with`` statement, or close it at the end.
    """
    dask()
    import distributed

    try:
        return distributed.Client(address)
    except (OSError, ValueError) as error:
        raise ClusterLost(
            f"No Dask scheduler answers at {address!r}: {error}. Start one with `dask scheduler`, "
            "workers with `dask worker ADDRESS`, and pass the address that it prints."
        ) from error


def client_or_current(client: Client | None = None) -> Client:
    """Return the given client, or Dask's current client."""
    dask()
    import distributed

    if isinstance(client, str):
        raise TagkinError(
            f"client is a Dask client; found the text {client!r}. Pass connect({client!r})."
        )
    if client is None:
        with contextlib.suppress(ValueError):
            client = distributed.get_client()
    if client is None or client.status != "running":
        raise ClusterLost(
            "There is no Dask cluster to work on. Create a client first: "
            "distributed.Client(ADDRESS), or distributed.Client() for this machine alone."
        )
    return client


@overload
def compute(wanted: Collections, /, *, client: Client | None = None) -> Collections: ...


@overload
def compute(wanted: DaskArray, /, *, client: Client | None = None) -> LabelMatrix: ...


@overload
def compute(*wanted: DaskArray, client: Client | None = None) -> tuple[LabelMatrix, ...]: ...


def compute(*wanted: object, client: Client | None = None) -> object:
    """Compute Dask arrays, or lists and tuples of them, as NumPy or SciPy arrays.

    Like ``dask.compute``, but a cluster without any worker raises an error after five minutes, or
    after Dask's ``distributed.scheduler.no-workers-timeout``. A warning comes after ten seconds.

    Parameters
    ----------
    *wanted : Dask collections
    client : distributed.Client, optional

    Returns
    -------
    results : tuple, or the single result
    """
    client = client_or_current(client)
    from dask.base import unpack_collections

    collections, repack = unpack_collections(*wanted)
    with detect_loss(client):
        futures = client.compute(list(collections))
    results = repack(gather(futures, client))
    return results[0] if len(wanted) == 1 else results


def wait(futures: Sequence[Future], client: Client, *, for_one: bool = False) -> None:
    """Wait until all futures, or one, have finished or failed; raise if no worker is left."""
    from distributed import wait as dask_wait

    return_when = "FIRST_COMPLETED" if for_one else "ALL_COMPLETED"

    def poll() -> None:
        # in the event loop of this client: a future belongs to one loop, and the current client
        # may run another
        with client.as_current():
            try:
                dask_wait(list(futures), timeout=_CHECK_EVERY, return_when=return_when)
            except TimeoutError as error:
                raise _NotYet from error

    try:
        _poll_until_done(poll, client)
    except ClusterLost:
        raise
    except Exception as error:
        raise lost(client, error) from None


def gather(futures: Sequence[Future], client: Client) -> list[object]:
    """Return the results of futures; raise if a future failed or no worker is left."""
    wait(futures, client)
    for future in futures:
        check(future)

    async def fetch() -> list[object]:
        return list(await client.gather(list(futures), asynchronous=True))

    # results lost in transfer are computed again, which needs workers
    transfer = asyncio.run_coroutine_threadsafe(fetch(), client.loop.asyncio_loop)

    def poll() -> list[object]:
        concurrent.futures.wait([transfer], timeout=_CHECK_EVERY)
        if not transfer.done():
            raise _NotYet
        error = transfer.exception()
        if error is not None:
            raise _translate_error(client, error)
        return transfer.result()

    try:
        return _poll_until_done(poll, client)
    except concurrent.futures.CancelledError:
        raise ClusterLost(_gone(client)) from None
    finally:
        transfer.cancel()


def result(future: Future, client: Client, kind: type[Result]) -> Result:
    """Return the result of one future, like `gather`."""
    (value,) = gather([future], client)
    assert isinstance(value, kind)
    return value


class _NotYet(Exception):
    """The result is not available yet."""


def _poll_until_done(poll: Callable[[], Result], client: Client) -> Result:
    """Call `poll` until it does not raise `_NotYet`; raise if no worker comes back."""
    patience, alone_since, announced = _patience(), None, False
    while True:
        try:
            return poll()
        except _NotYet:
            pass  # the usual case: check that there are workers
        if client.status in ("closing", "closed"):
            raise ClusterLost(_gone(client))
        if has_workers(client):
            alone_since, announced = None, False
            continue
        alone_since = alone_since or time.monotonic()
        alone = time.monotonic() - alone_since
        if alone > patience:
            raise ClusterLost(
                f"The Dask cluster at {_address(client)} has had no worker for {patience:.0f} "
                "seconds. Start workers, and run this again."
            )
        if alone >= min(10, patience / 2) and not announced:
            announced = True
            warnings.warn(
                f"The Dask cluster at {_address(client)} has no worker, so the work has stopped. "
                f"It continues when you start one (`dask worker {_address(client)}`), and ends "
                f"after {patience:.0f} seconds without a worker.",
                stacklevel=2,
            )


def check(future: Future) -> None:
    """Raise the error of a failed future, or `ClusterLost`.

    A future whose result was lost with its worker has not failed: Dask computes it again.
    """
    if future.status == "error":
        error = future.exception()
        # a cluster that closes meanwhile cancels the future, which then has no error
        if isinstance(error, BaseException):
            raise _translate_error(future.client, error)
    if future.status == "cancelled":
        raise ClusterLost(_gone(future.client))


def _translate_error(client: Client, error: BaseException) -> BaseException:
    """Return errors of the work unchanged, and Dask's own errors as `ClusterLost`."""
    return lost(client, error) if _is_of_dask(error) else error


def lost(client: Client, error: BaseException) -> ClusterLost:
    """Return Dask's error about a lost cluster as `ClusterLost`."""
    if type(error).__name__ == "KilledWorker":
        return ClusterLost(
            "A task ended every worker that ran it. Most often they run out of memory: use "
            f"smaller chunks, or more memory per worker. Dask says: {error}"
        )
    if isinstance(error, concurrent.futures.CancelledError):  # its long text adds nothing
        return ClusterLost(_gone(client))
    return ClusterLost(f"{_gone(client)} Dask says: {type(error).__name__}: {error}")


def _gone(client: Client) -> str:
    return (
        f"The Dask cluster at {_address(client)} was lost before the work was done. Start it, "
        "and run this again."
    )


def _is_of_dask(error: BaseException) -> bool:
    return type(error).__module__.split(".")[0] in {"dask", "distributed"}


def _address(client: Client) -> str:
    return str(getattr(client.scheduler, "address", "an unknown address"))


def has_workers(client: Client) -> bool:
    """Whether the cluster has any worker."""
    try:
        return bool(client.nthreads())
    except Exception:  # the scheduler itself does not answer
        return False


def _patience() -> float:
    """Return the seconds a cluster may have no workers: Dask's setting, or the default."""
    from dask.utils import parse_timedelta

    chosen = dask().config.get("distributed.scheduler.no-workers-timeout", None)
    return _PATIENCE if chosen is None else float(parse_timedelta(chosen))


@contextlib.contextmanager
def detect_loss(client: Client) -> Iterator[None]:
    """Raise `ClusterLost` if the cluster is lost before it gets its work.

    Also silence Dask's warning about large graphs. Models are part of the graph, because scattered
    data dies with its workers, but the scheduler hands the graph to every new worker.
    """
    quiet = {"distributed.admin.large-graph-warning-threshold": "100 GiB"}
    try:
        with dask().config.set(quiet):
            yield
    except Exception as error:
        if isinstance(error, OSError) or _is_of_dask(error):
            raise lost(client, error) from None
        raise
