"""Takes a sheet on every host of a Dask cluster: `python measure_fleet.py ARCHIVE [SCHEDULER]`. Without a scheduler it measures this host."""

import contextlib
import sys

import hairspring
from hairspring import fleet


def main(path, scheduler=None):
    archive = hairspring.archive(path, create=True)
    with contextlib.ExitStack() as ends:
        client = None
        if scheduler is not None:
            from distributed import Client

            client = ends.enter_context(Client(scheduler))
        report = fleet.take(client, archive=archive, only="clocks.read")
    for answer in report.answers:
        print(answer.host, answer.outcome, answer.reason or "")
    return 0 if report.complete else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
