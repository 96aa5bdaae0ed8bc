"""Runs jobs on threads of this process or on a Dask cluster, and yields the result of each job exactly once.

A job is pure: its key names everything that its result depends on. So it may run again after a worker was lost, and it
does not matter where jobs run, or in what order. This module knows neither studies nor their results.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._native import StudyError

if TYPE_CHECKING:
    from distributed import Client

ATTEMPTS = 5
"""How often a job is handed out again after Dask gave it up because the workers that had it died."""


@dataclass(frozen=True, slots=True)
class Job:
    """A call of a module's function with plain values, and the key of its result."""

    key: str
    module: str
    function: str
    arguments: tuple[Any, ...]


CALL = "getattr(__import__('importlib').import_module(module), function)(*arguments)"
"""How a worker does a job.

Dask unpickles a task before anything can be caught: a name of this package there would end a worker that lacks it, and
the study would wait for ever. This text is unpickled everywhere; a missing package becomes an exception of the job.
"""


def cores() -> int:
    """Number of processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _here(job: Job) -> Any:
    return getattr(import_module(job.module), job.function)(*job.arguments)


def on_threads(jobs: Sequence[Job], threads: int) -> Iterator[tuple[str, Any]]:
    """Runs the jobs on threads of this process; yields each result when it is there."""
    with ThreadPoolExecutor(threads, thread_name_prefix="bulkhead") as pool:
        waiting: dict[Future[Any], Job] = {pool.submit(_here, job): job for job in jobs}
        try:
            while waiting:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    job = waiting.pop(future)
                    yield job.key, future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def on_cluster(jobs: Sequence[Job], client: Client) -> Iterator[tuple[str, Any]]:
    """Runs the jobs on the workers of a Dask cluster; yields each result when it is there.

    Dask itself gives a lost worker's jobs to other workers, also those whose results were lost with it. If Dask gives up a
    job because several workers died with it, this function submits the job again, at most :data:`ATTEMPTS` times.
    """
    from distributed import CancelledError, KilledWorker, as_completed

    attempts = dict.fromkeys((job.key for job in jobs), 0)
    waiting: dict[str, tuple[Job, Any]] = {}
    arrivals = as_completed()

    def hand_out(job: Job) -> None:
        # A key whose last attempt failed is poisoned on the scheduler: the next attempt has another one.
        key = f"{job.key}-{attempts[job.key]}"
        names = {"module": job.module, "function": job.function, "arguments": job.arguments}
        future = client.submit(eval, CALL, names, key=key, pure=True)
        waiting[key] = (job, future)
        arrivals.add(future)

    try:
        for job in jobs:
            hand_out(job)
        while waiting:
            future = next(arrivals)
            job, _ = waiting.pop(future.key)
            try:
                result = future.result()
            except (KilledWorker, CancelledError) as error:
                attempts[job.key] += 1
                if attempts[job.key] > ATTEMPTS:
                    raise StudyError(f"workers keep dying with {job.key}: {error}") from error
                hand_out(job)
                continue
            except ModuleNotFoundError as error:
                raise StudyError(f"a worker lacks a package: {error}; install bulkhead on every worker") from error
            finally:
                future.release()
            yield job.key, result
    finally:
        for _, future in waiting.values():
            future.cancel()
        arrivals.clear()


def check_client(client: Any) -> None:
    """Refuses an object that is not a usable Dask client."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise StudyError("for a study on a cluster install dask.distributed, for example: pip install distributed") from None
    if not isinstance(client, Client):
        raise TypeError(f"client must be a dask.distributed.Client, not {type(client).__name__}")
    if client.asynchronous:
        raise StudyError("client is asynchronous; make it with asynchronous=False")
    if client.status != "running":
        raise StudyError(f"client is {client.status}; connect it first")
