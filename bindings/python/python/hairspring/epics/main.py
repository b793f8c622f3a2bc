"""The command `hairspring-ioc`."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from typing import Optional, Sequence

from ..station import Station


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hairspring-ioc", description="Publish a running station over EPICS PV Access.")
    parser.add_argument("station", metavar="STATION", help="name or folder of `hairspring serve --publish`")
    parser.add_argument("--prefix", help="beginning of all names, in place of that of the station's file")
    parser.add_argument("--interface", default="127.0.0.1", help="address to listen on [default: 127.0.0.1, loopback only]")
    parser.add_argument("--port", type=int, default=5075, help="TCP port; 0 for any [default: 5075]")
    parser.add_argument("--udp-port", type=int, default=5076, help="UDP port for searches; 0 for any [default: 5076]")
    parser.add_argument("--every", type=float, default=0.1, help="seconds between two looks, at least 0.1 [default: 0.1]")
    parser.add_argument("--silent-after", type=float, default=2.0, help="seconds after which values are INVALID [default: 2]")
    parser.add_argument("--list", action="store_true", help="print the names of all PVs, and end")
    parser.add_argument("--quiet", "-q", action="store_true", help="log refusals and errors only")
    return parser


def conf(interface: str, port: int, udp_port: int) -> dict[str, str]:
    """The configuration of a server that listens on one address and sends beacons to nobody else."""
    return {
        "EPICS_PVAS_INTF_ADDR_LIST": interface,
        "EPICS_PVAS_SERVER_PORT": str(port),
        "EPICS_PVAS_BROADCAST_PORT": str(udp_port),
        "EPICS_PVAS_AUTO_BEACON_ADDR_LIST": "NO",
        "EPICS_PVAS_BEACON_ADDR_LIST": "127.0.0.1" if interface.startswith("127.") else "",
    }


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the bridge until SIGINT or SIGTERM. Returns the exit code."""
    asked = _arguments().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING if asked.quiet else logging.INFO, format="hairspring-ioc: %(message)s")
    log = logging.getLogger("hairspring.epics")
    try:
        station = Station(asked.station, silent_after=asked.silent_after)
        description = station.description()
    except (OSError, ValueError) as error:
        log.error("%s", error)
        return 1
    if asked.list:
        sys.stdout.write("".join(f"{variable['name']}\n" for variable in description.variables(asked.prefix)))
        return 0
    try:
        from .server import Service
    except ImportError as error:
        log.error("%s; install the bridge: pip install hairspring[epics]", error)
        return 1
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    settings = conf(asked.interface, asked.port, asked.udp_port)
    while not ended.is_set():
        variables = description.variables(asked.prefix)
        try:
            service = Service(station, variables, settings)
        except (RuntimeError, OSError) as error:
            log.error("failed to listen on %s port %d: %s; choose another --port", asked.interface, asked.port, error)
            return 1
        with service:
            listening = service.server.conf()
            log.info(
                "%d PVs of %s, on %s, TCP %s, UDP %s",
                len(variables),
                description.name,
                asked.interface,
                listening["EPICS_PVAS_SERVER_PORT"],
                listening["EPICS_PVAS_BROADCAST_PORT"],
            )
            # Another run of the station may have other units: then all PVs are made anew.
            while not ended.wait(max(asked.every, 0.1)) and station.description() == description:
                service.bridge.step()
        description = station.description()
    return 0
