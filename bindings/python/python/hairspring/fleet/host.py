"""What runs on a host of a fleet: looks at the host, takes one sheet in a process of its own, and keeps it until the client has it.

A Dask worker calls these functions, and so does a thread when there is no cluster. They are imported by their names, and take and return JSON
texts, so that two versions of Python or Dask understand each other. They need the standard library alone and the command ``hairspring``.

**Never twice.** A scheduler may start a task again when its worker dies. Every measurement has an id, and a file in the spool marks that it was
started; a second start with that id measures nothing. **Never two at once.** A lock of the host is held by the measuring process, not only by the
worker, so a worker that was killed and started again cannot measure beside the process that the first one left. **Never lost.** The command
writes the sheet into the spool; the file goes when the client says that the sheet is in its archive.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any, Iterator, Optional

from .quiet import quiet

#: The version of the texts that client and host exchange.
PROTOCOL = 1
#: How long an interrupted measurement may take to write what it has.
_ENDING_S = 20
#: The exit codes of `timeout` when the limit was reached: interrupted, killed.
_TIMED_OUT = (124, 137)
_ID = re.compile(r"[0-9a-z-]{1,64}")


def _spool() -> Path:
    named = os.environ.get("XDG_STATE_HOME", "")
    state = Path(named) if os.path.isabs(named) else Path.home() / ".local" / "state"
    return state / "hairspring" / "fleet"


def identity() -> str:
    """What is equal in all workers on one machine: the kernel's boot id, which its containers share; without one, the host's name."""
    try:
        told = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        told = socket.gethostname()
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _version(program: Optional[str]) -> Optional[str]:
    if program is None:
        return None
    try:
        ended = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return None
    return ended.stdout.strip().removeprefix("hairspring ") or None if ended.returncode == 0 else None


def versions() -> dict[str, str]:
    """The versions of Python and of Dask's packages here."""
    found = {"python": platform.python_version()}
    for name in ("dask", "distributed"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def look(text: str) -> str:
    """Says which machine this is: its identity, name and clock, the versions on it, and the ids of sheets in its spool."""
    request = json.loads(text)
    program = shutil.which(request["program"])
    with contextlib.suppress(OSError):
        _tidy()
    spooled = []
    with contextlib.suppress(OSError):
        spooled = sorted(file.stem for file in _spool().glob("*.json") if _ID.fullmatch(file.stem))
    return json.dumps(
        {
            "protocol": PROTOCOL,
            "identity": identity(),
            "host": socket.gethostname(),
            "clock_ns": time.time_ns(),
            "command": _version(program),
            "versions": versions(),
            "spooled": spooled,
        }
    )


def _tidy() -> None:
    """Removes marks of measurements that began more than 30 days ago, when no scheduler knows their ids any more. Sheets stay."""
    for mark in _spool().glob("*.started"):
        with contextlib.suppress(OSError):
            if time.time() - mark.stat().st_mtime > 30 * 86_400:
                mark.unlink()


class _Busy(Exception):
    """Another measurement runs on this host."""


@contextlib.contextmanager
def _alone() -> Iterator[int]:
    """Holds the lock of this machine, which all users of it share, and yields its descriptor for the measuring process to hold, too."""
    shared = Path("/run/lock")
    folder = shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())
    path = folder / f"hairspring-measuring-{identity()}"
    # The system refuses O_CREAT on another user's file in a shared folder, and reading is enough for a lock.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDONLY | os.O_CLOEXEC, 0o644))
    lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _Busy from error
        yield lock
    finally:
        os.close(lock)


def _failed(outcome: str, reason: str, remedy: str) -> dict[str, Any]:
    return {"outcome": outcome, "reason": reason, "remedy": remedy}


def measure(text: str) -> str:
    """Takes one sheet. The answer has ``outcome`` ``sheet`` or ``partial`` with the text of the sheet, or another outcome with reason and remedy."""
    request = json.loads(text)
    answer: dict[str, Any] = {"protocol": PROTOCOL, "id": request["id"]}
    if request["protocol"] != PROTOCOL:
        versions = f"protocol {request['protocol']} from the client, and {PROTOCOL} here"
        answer |= _failed("skew", f"the client has another version of hairspring ({versions})", "install the same on both")
        return json.dumps(answer)
    if not _ID.fullmatch(request["id"]):
        raise ValueError(f"{request['id']!r} is no id of a measurement")
    try:
        with _alone() as lock, quiet() as quieted:
            answer["quieted"] = quieted
            answer |= _measured(request, lock)
    except _Busy:
        answer |= _failed(
            "busy", "another measurement runs on this machine", "repeat when it has ended; a killed worker may have left it"
        )
    except OSError as error:
        answer |= _failed("failed", f"the spool {_spool()} cannot be used: {error}", "free some space, or set XDG_STATE_HOME there")
    return json.dumps(answer)


def _measured(request: dict[str, Any], lock: int) -> dict[str, Any]:
    spool = _spool()
    spool.mkdir(parents=True, exist_ok=True, mode=0o700)
    target = spool / f"{request['id']}.json"
    if target.exists():
        return _read(target)
    try:
        os.close(os.open(spool / f"{request['id']}.started", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return _failed(
            "died", "its worker died while it measured, and the scheduler started the task again", "take the sheet again"
        )
    program = shutil.which(request["program"])
    if program is None:
        return _failed(
            "failed", f"there is no command {request['program']} on it", "install the command there, or name it with --program"
        )
    # The limit holds also when this worker is killed: `timeout` interrupts the command, which then writes what it has.
    limit = ["timeout", "-s", "INT", "-k", f"{_ENDING_S:g}", f"{request['limit_s']:g}"]
    command = [program, "sheet", "--format", "json", "--out", str(target), *request["arguments"]]
    began = time.monotonic()
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(
            [*limit, *command], stdin=subprocess.DEVNULL, stdout=told, stderr=told, start_new_session=True, pass_fds=(lock,)
        )
        code = process.wait()
        told.seek(max(0, told.seek(0, os.SEEK_END) - 2000))
        said = told.read().decode(errors="replace").strip()
    took_s = round(time.monotonic() - began, 3)
    if target.exists():
        return _read(target) | {"took_s": took_s}
    if code in _TIMED_OUT:
        return _failed("late", f"it had no figure after its limit of {request['limit_s']:g} s", "allow more time with --limit")
    last = said.splitlines()[-1] if said else "it said nothing"
    return _failed("failed", f"the command ended with exit {code}: {last}", f"run it there by hand: {' '.join(command)}")


def _read(target: Path) -> dict[str, Any]:
    text = target.read_text(encoding="utf-8")
    interrupted = json.loads(text)["taken"]["interrupted"]
    return {"outcome": "partial" if interrupted else "sheet", "sheet": text}


def fetch(text: str) -> str:
    """A sheet from the spool, by its id. It stays there."""
    id = json.loads(text)["id"]
    if not _ID.fullmatch(id):
        raise ValueError(f"{id!r} is no id of a measurement")
    return json.dumps({"protocol": PROTOCOL, "id": id} | _read(_spool() / f"{id}.json"))


def forget(text: str) -> str:
    """Removes sheets from the spool, which the client has in its archive. The marks stay: a scheduler could still start the tasks again."""
    for id in json.loads(text)["ids"]:
        if _ID.fullmatch(id):
            with contextlib.suppress(FileNotFoundError):
                (_spool() / f"{id}.json").unlink()
    return json.dumps({"protocol": PROTOCOL})
