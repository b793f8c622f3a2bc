"""Clusters for a fleet: one worker with one thread on each host. `python fleet_clusters.py` tries the first, on this host."""

from distributed import Client, LocalCluster, SSHCluster


# --8<-- [start:local]
def local():
    # Two workers on one host are one machine: one sheet.
    return LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
# --8<-- [end:local]


# --8<-- [start:ssh]
def ssh(control, hosts):
    # The first host runs the scheduler.
    return SSHCluster([control, *hosts], worker_options={"nthreads": 1}, scheduler_options={"dashboard": False})
# --8<-- [end:ssh]


# --8<-- [start:slurm]
def slurm(hosts):
    from dask_jobqueue import SLURMCluster

    # One exclusive job is one host. A job that shares its host is measured with its neighbours' load.
    cluster = SLURMCluster(cores=1, processes=1, memory="2GiB", job_extra_directives=["--exclusive"])
    cluster.scale(jobs=hosts)
    return cluster
# --8<-- [end:slurm]


if __name__ == "__main__":
    with local() as cluster, Client(cluster) as client:
        client.wait_for_workers(2, timeout=120)
        print(f"{len(client.scheduler_info(n_workers=-1)['workers'])} workers")
