"""Sheets of many machines: takes one on every host of a Dask cluster, and says which machines differ. Needs ``hairspring[fleet]``.

    python -m hairspring.fleet tcp://control-1:8786 --archive fleet.db

In a program:

    from distributed import Client
    import hairspring
    from hairspring import fleet

    with Client("tcp://control-1:8786") as client:
        report = fleet.take(client, archive=hairspring.archive("fleet.db", create=True))
    print(report.text())

The cluster is the user's. Each machine is measured once, however many workers it has, by the command ``hairspring`` in a process of its own,
and keeps its sheet until the archive has it. Without a client, ``take`` measures this machine on a thread; that needs no Dask.
"""

from .answers import Answer
from .outliers import Group, Outliers, Shift, groups, newest
from .report import FleetReport
from .taking import FleetError, take

__all__ = ["Answer", "FleetError", "FleetReport", "Group", "Outliers", "Shift", "groups", "newest", "take"]
