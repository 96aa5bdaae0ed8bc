"""The study on a real Dask cluster of separate worker processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import bulkhead
import dask
import pytest
from bulkhead import StudyError, _work
from distributed import Client, LocalCluster

SCENARIOS = "C-Light,Long,*,Quick,*,High,Many"
ROUGH = {"half_width": 150_000, "most_samples": 96}


@pytest.fixture(scope="module")
def single() -> bulkhead.StudyResult:
    """The study on this machine alone."""
    return bulkhead.study(SCENARIOS, threads=2, parameters=ROUGH)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Two worker processes with one thread each; a nanny starts a new one for one that dies."""
    # A local cluster gives up a worker that happens to be down this long after its first death.
    patience = {"distributed.deploy.lost-worker-timeout": "1h"}
    with (
        dask.config.set(patience),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            local_directory=str(tmp_path_factory.mktemp("dask")),
            silence_logs=50,
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    """A client of its own for each test, once both workers are there."""
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


def worker_processes(client: Client) -> list[int]:
    """Process numbers of the workers, none of which is this process."""
    found = sorted(client.run(os.getpid).values())
    assert os.getpid() not in found
    assert len(set(found)) == len(found)
    return found


def test_same_digits_as_threads(client: Client, single: bulkhead.StudyResult) -> None:
    assert len(worker_processes(client)) == 2
    reports: list[tuple[int, int]] = []
    result = bulkhead.study(
        SCENARIOS, parameters=ROUGH, client=client, progress=lambda done, total: reports.append((done, total))
    )
    assert result == single
    total = sum(len(points) for _, points in single.counts)
    assert reports[0] == (0, total)
    assert reports[-1] == (total, total)
    assert reports == sorted(reports)


def test_killed_workers_lose_nothing(client: Client, single: bulkhead.StudyResult, tmp_path: Path) -> None:
    total = sum(len(points) for _, points in single.counts)
    killed: list[int] = []

    def kill(done: int, _: int) -> None:
        # In the middle, three times, one worker after the other: each dies with a job in its hands.
        if len(killed) < 3 and done >= total * (len(killed) + 1) // 5:
            victim = next(pid for pid in worker_processes(client) if pid not in killed)
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    result = bulkhead.study(SCENARIOS, parameters=ROUGH, client=client, resume=tmp_path / "state", progress=kill)
    assert len(killed) == 3
    assert result == single
    # Each scenario was kept once, and nothing else lies about.
    kept = sorted(int(file.stem) for file in (tmp_path / "state" / "counts").iterdir())
    assert kept == sorted(single.scenarios)
    # What the cluster did is what the single machine goes on with.
    assert bulkhead.study(SCENARIOS, parameters=ROUGH, threads=1, resume=tmp_path / "state") == single


def test_a_stopped_study_leaves_the_cluster_free(client: Client, single: bulkhead.StudyResult) -> None:
    class Stop(Exception):
        pass

    def stop(done: int, _: int) -> None:
        if done:
            raise Stop

    with pytest.raises(Stop):
        bulkhead.study(SCENARIOS, parameters=ROUGH, client=client, progress=stop)
    assert bulkhead.study(SCENARIOS, parameters=ROUGH, client=client) == single


DEADLY = """
import os, signal
from pathlib import Path

def die_five_times(marker):
    path = Path(marker)
    tries = int(path.read_text()) if path.exists() else 0
    path.write_text(str(tries + 1))
    if tries < 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return tries
"""


def test_jobs_that_dask_gives_up_are_handed_out_again(client: Client, tmp_path: Path) -> None:
    module = tmp_path / "deadly_for_test.py"
    module.write_text(DEADLY)
    client.upload_file(str(module))
    jobs = [_work.Job("deadly", module.stem, "die_five_times", (str(tmp_path / "tries"),))]
    # Dask gives up after four deaths; the fifth and the last try belong to the second attempt.
    assert list(_work.on_cluster(jobs, client)) == [("deadly", 5)]


def test_workers_without_the_package_are_named(client: Client) -> None:
    with pytest.raises(StudyError, match="No module named 'none_such'; install bulkhead on every worker"):
        list(_work.on_cluster([_work.Job("failing", "none_such", "nothing", ())], client))


def test_another_version_is_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = bulkhead.__version__
    monkeypatch.setattr(bulkhead._native, "__version__", "0.0.0")
    with pytest.raises(StudyError, match=f"a worker has bulkhead {theirs}, this is 0.0.0"):
        bulkhead.study(SCENARIOS, parameters=ROUGH, client=client)


def test_a_closed_client_is_refused(client: Client) -> None:
    client.close()
    with pytest.raises(StudyError, match="client is closed"):
        bulkhead.study(SCENARIOS, parameters=ROUGH, client=client)
