"""The cluster: finding it, waiting for it, and saying so when it is gone."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from tagkin.errors import ClusterLost, MissingExtra, TagkinError, pip_install

__all__ = ["compute", "connect"]

Found = TypeVar("Found")

_PATIENCE = 300.0  # seconds without any worker; clusters that grow on demand take minutes
_SAY_AFTER = 10.0  # seconds without any worker, after which the wait is announced
_CHECK_EVERY = 1.0  # seconds between checks of the cluster while nothing comes back


def dask() -> Any:
    """Dask, or a sentence that names the install command."""
    try:
        import dask
        import dask.array
        import distributed  # noqa: F401
    except ImportError as error:
        raise MissingExtra(f"Dask is not installed: {pip_install('dask')}") from error
    # adding a filter twice adds it once
    logging.getLogger("distributed.client").addFilter(_is_no_cancellation)
    return dask


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    """False for the traceback that Dask logs when a client without its scheduler is closed.

    Closing ends the client's attempt to connect again. `ClusterLost` has reported the loss.
    """
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


def connect(address: str) -> Any:
    """A client of the Dask scheduler at an address such as ``tcp://10.0.0.1:8786``.

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


def client_or_current(client: Any = None) -> Any:
    """The client given, or the one that is in use."""
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
            "There is no Dask cluster to work on. Make a client first: "
            "distributed.Client(ADDRESS), or distributed.Client() for this machine alone."
        )
    return client


def compute(*wanted: Any, client: Any = None, progress: bool = False) -> Any:
    """Dask arrays, or lists and tuples of them, as NumPy or SciPy arrays.

    As ``dask.compute``, but a cluster that stays without any worker is an error instead of
    silence: after five minutes, or after Dask's ``distributed.scheduler.no-workers-timeout``. A
    warning says after ten seconds that no worker is there.

    Parameters
    ----------
    *wanted : Dask collections
    client : distributed.Client, optional
        By default the one that is in use.
    progress : bool, default False
        Show Dask's own bar.

    Returns
    -------
    found : tuple, or what was wanted where that is one thing
    """
    client = client_or_current(client)
    from dask.base import unpack_collections

    collections, repack = unpack_collections(*wanted)
    with submitting(client):
        futures = client.compute(list(collections))
    with bar(futures, client, progress):
        found = repack(gathered(futures, client))
    return found[0] if len(wanted) == 1 else found


def wait(futures: Sequence[Any], client: Any, *, for_one: bool = False) -> None:
    """Until all futures have finished or failed, or one; an error where no worker is left."""
    from distributed import wait as dask_wait

    return_when = "FIRST_COMPLETED" if for_one else "ALL_COMPLETED"

    def look() -> None:
        # in the event loop of this very client: a future belongs to one loop, and the client in
        # use elsewhere may run another
        with client.as_current():
            try:
                dask_wait(list(futures), timeout=_CHECK_EVERY, return_when=return_when)
            except TimeoutError as error:
                raise _NotYet from error

    try:
        _watched(look, client)
    except ClusterLost:
        raise
    except Exception as error:
        raise lost(client, error) from None


def gathered(futures: Sequence[Any], client: Any) -> list[Any]:
    """What futures give, once it is here; an error where one failed or no worker is left."""
    wait(futures, client)
    for future in futures:
        check(future)

    async def fetch() -> list[Any]:
        return list(await client.gather(list(futures), asynchronous=True))

    # what is lost on the way here is computed again, for which there must be workers
    coming = asyncio.run_coroutine_threadsafe(fetch(), client.loop.asyncio_loop)

    def look() -> list[Any]:
        concurrent.futures.wait([coming], timeout=_CHECK_EVERY)
        if not coming.done():
            raise _NotYet
        error = coming.exception()
        if error is not None:
            raise _in_our_words(client, error)
        return coming.result()

    try:
        return _watched(look, client)
    except concurrent.futures.CancelledError:
        raise ClusterLost(_gone(client)) from None
    finally:
        coming.cancel()


def result(future: Any, client: Any) -> Any:
    """What one future gives, as `gathered` does."""
    return gathered([future], client)[0]


class _NotYet(Exception):
    """What is waited for is not there yet."""


def _watched(look: Callable[[], Found], client: Any) -> Found:
    """What is waited for: `look` gives it, or ends with `_NotYet` every now and then."""
    patience, alone_since, announced = _patience(), None, False
    while True:
        try:
            return look()
        except _NotYet:
            pass  # the usual case: see whether anybody is at work
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
        if alone >= min(_SAY_AFTER, patience / 2) and not announced:
            announced = True
            warnings.warn(
                f"The Dask cluster at {_address(client)} has no worker, so the work has stopped. "
                f"It goes on as soon as you start one (`dask worker {_address(client)}`), and ends "
                f"after {patience:.0f} seconds without a worker.",
                stacklevel=2,
            )


def check(future: Any) -> None:
    """Raise what a future failed with; losses of the cluster as such.

    One whose result was lost with its worker has not failed: it is being computed again.
    """
    if future.status == "error":
        error = future.exception()
        # a cluster that closes in between cancels the future, which then has no error of its own
        if isinstance(error, BaseException):
            raise _in_our_words(future.client, error)
    if future.status == "cancelled":
        raise ClusterLost(_gone(future.client))


def _in_our_words(client: Any, error: BaseException) -> BaseException:
    """What the work itself failed with, as it is; losses of the cluster as such."""
    if not _is_of_dask(error):
        return error
    return lost(client, error)


def lost(client: Any, error: BaseException) -> ClusterLost:
    """What Dask says about a lost cluster, in the words of this package."""
    if type(error).__name__ == "KilledWorker":
        return ClusterLost(
            "A task ended every worker that it was given to, several of them. Most often they "
            f"ran out of memory: use smaller chunks, or more memory a worker. Dask says: {error}"
        )
    if isinstance(error, concurrent.futures.CancelledError):  # says no more, in many lines
        return ClusterLost(_gone(client))
    return ClusterLost(f"{_gone(client)} Dask says: {type(error).__name__}: {error}")


def _gone(client: Any) -> str:
    return (
        f"The Dask cluster at {_address(client)} was lost before the work was done. Start it, "
        "and run this again."
    )


def _is_of_dask(error: BaseException) -> bool:
    return type(error).__module__.split(".")[0] in {"dask", "distributed"}


def _address(client: Any) -> str:
    try:
        return str(client.scheduler.address)
    except AttributeError:
        return "an unknown address"


def has_workers(client: Any) -> bool:
    """Whether anybody is there to do the work."""
    try:
        return bool(client.nthreads())
    except Exception:  # the scheduler itself does not answer
        return False


def _patience() -> float:
    """Seconds that a cluster may stay without workers: Dask's own setting where it is set."""
    from dask.utils import parse_timedelta

    chosen = dask().config.get("distributed.scheduler.no-workers-timeout", None)
    return _PATIENCE if chosen is None else float(parse_timedelta(chosen))


@contextlib.contextmanager
def submitting(client: Any) -> Iterator[None]:
    """Let a cluster that is gone before it gets its work be an error like any other loss of it.

    A graph may carry a model without Dask's warning about its size: scattered data dies with the
    workers that hold it. What is part of the graph is with the scheduler, which hands it to every
    new worker.
    """
    quiet = {"distributed.admin.large-graph-warning-threshold": "100 GiB"}
    try:
        with dask().config.set(quiet):
            yield
    except Exception as error:
        if isinstance(error, OSError) or _is_of_dask(error):
            raise lost(client, error) from None
        raise


@contextlib.contextmanager
def bar(futures: Sequence[Any], client: Any, shown: bool) -> Iterator[None]:
    """Dask's own bar, drawn beside the work where it is asked for."""
    if not shown or not futures:
        yield
        return
    from distributed.diagnostics.progressbar import TextProgressBar

    drawn = TextProgressBar(list(futures), start=False, loop=client.loop)
    client.loop.add_callback(drawn.listen)
    try:
        yield
    finally:
        _stop(drawn, client)


def _stop(drawn: Any, client: Any) -> None:
    async def stop() -> None:
        comm = getattr(drawn, "comm", None)
        if comm is not None and not comm.closed():
            await comm.close()

    with contextlib.suppress(Exception):  # a cluster that is gone has closed it already
        client.sync(stop)
