"""The command ``python -m hairspring.fleet``."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path
from typing import Any, Iterator, Optional, Sequence

from ..sheet_archive import archive, archive_path
from . import FleetReport, newest, take
from .answers import Answer
from .taking import LIMITS_S, FleetError

#: As those of the command ``hairspring``.
SUCCESS, FAILED, BAD_REQUEST = 0, 1, 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hairspring.fleet",
        description="Take a timing data sheet on every host of a Dask cluster, enter them into an archive, and name the machines that differ.",
        epilog="It ends with 0 if every host has a complete sheet, with 1 if not, and with 2 for a request that it refuses.",
    )
    parser.add_argument(
        "scheduler", nargs="?", help="address of the scheduler, or its file (*.json) [default: no cluster, this host alone]"
    )
    parser.add_argument("--archive", type=Path, help="archive of sheets, made if there is none [default: that of hairspring archive]")
    parser.add_argument("--only", action="append", default=[], metavar="ID", help="only rows whose ids begin so; may be repeated")
    parser.add_argument("--effort", choices=list(LIMITS_S), default="quick", help="how long to measure [default: quick]")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="interrupt a sheet after this [default: by effort]")
    parser.add_argument("--cpu", type=int, help="measure on this CPU")
    parser.add_argument("--priority", type=int, help="real-time priority")
    parser.add_argument("--program", default="hairspring", help="the command on the hosts [default: hairspring]")
    parser.add_argument("--report", action="store_true", help="measure nothing: compare the newest sheets of all machines of the archive")
    parser.add_argument("--format", choices=["text", "json"], default="text")
    for name, what in (("ca", "authority"), ("cert", "certificate"), ("key", "private key of the certificate")):
        parser.add_argument(f"--tls-{name}", metavar="FILE", help=f"mutual TLS: {what}, a PEM file")
    return parser


@contextlib.contextmanager
def _client(arguments: argparse.Namespace) -> Iterator[Any]:
    """The client of the cluster that was named; None without one."""
    if arguments.scheduler is None:
        yield None
        return
    try:
        from distributed import Client
        from distributed.security import Security
    except ImportError as error:
        raise FleetError(f"a cluster needs Dask: pip install 'hairspring[fleet]' ({error})") from error
    tls = {"ca": arguments.tls_ca, "cert": arguments.tls_cert, "key": arguments.tls_key}
    given = [name for name, file in tls.items() if file is not None]
    if given and len(given) < len(tls):
        raise ValueError("mutual TLS takes all of --tls-ca, --tls-cert and --tls-key")
    if arguments.scheduler.startswith("tls:") and not given:
        raise ValueError("a scheduler at tls: takes --tls-ca, --tls-cert and --tls-key")
    where: dict[str, Any] = {"address": arguments.scheduler}
    if arguments.scheduler.endswith(".json"):
        where = {"scheduler_file": arguments.scheduler}
    if given:
        where["security"] = Security(
            tls_ca_file=tls["ca"], tls_client_cert=tls["cert"], tls_client_key=tls["key"], require_encryption=True
        )
    try:
        client = Client(**where, timeout=20, set_as_default=False, name="hairspring-fleet")
    except (OSError, TimeoutError) as error:
        raise FleetError(f"failed to reach the scheduler {arguments.scheduler}: {error}; check its address, and that it runs") from error
    with client:
        yield client


def _told(answer: Answer) -> None:
    print(f"{answer.host}: {answer.outcome}", file=sys.stderr, flush=True)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command, and returns its exit code."""
    parsed = _parser().parse_args(arguments)
    path = parsed.archive or archive_path()
    try:
        if parsed.report:
            report = FleetReport.of([], newest(archive(path), None))
        else:
            opened = archive(path, create=True)
            with _client(parsed) as client:
                report = take(
                    client, archive=opened, only=parsed.only, effort=parsed.effort, limit_s=parsed.limit,
                    cpu=parsed.cpu, priority=parsed.priority, program=parsed.program, told=_told,
                )  # fmt: skip
    except (ValueError, FileNotFoundError) as error:
        print(f"hairspring.fleet: {error}", file=sys.stderr)
        return BAD_REQUEST
    except (FleetError, OSError) as error:
        print(f"hairspring.fleet: {error}", file=sys.stderr)
        return FAILED
    print(json.dumps(report.object(), indent=1) if parsed.format == "json" else report.text(), end="\n" if parsed.format == "json" else "")
    return SUCCESS if report.complete else FAILED


if __name__ == "__main__":
    sys.exit(main())
