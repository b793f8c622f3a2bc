"""What the calling user may do, as the package hairspring-realtime promises it: `rights.py member` or `rights.py stranger`.

Each right is tried by its call, and given back at once.
"""

import ctypes
import os
import resource
import sys

LOCKED_BYTES = 16 << 20


def may(act):
    try:
        act()
    except PermissionError:
        return False
    return True


def real_time(priority):
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def nice():
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    os.setpriority(os.PRIO_PROCESS, 0, 0)


def lock():
    libc = ctypes.CDLL(None, use_errno=True)
    memory = ctypes.create_string_buffer(LOCKED_BYTES)
    if libc.mlock(memory, ctypes.c_size_t(LOCKED_BYTES)) != 0:
        # EPERM without any right, ENOMEM beyond the limit.
        raise PermissionError(ctypes.get_errno())


member = sys.argv[1] == "member"
wanted = {
    "real-time priority 95": (lambda: real_time(95), member),
    "real-time priority 96": (lambda: real_time(96), False),
    "nice -20": (nice, member),
    "16 MiB of locked memory": (lock, member),
}
wrong = [name for name, (act, expected) in wanted.items() if may(act) != expected]
if member and resource.getrlimit(resource.RLIMIT_MEMLOCK) != (resource.RLIM_INFINITY, resource.RLIM_INFINITY):
    wrong.append("unlimited locked memory")
if wrong:
    sys.exit(f"{sys.argv[1]}: the package promises otherwise: {', '.join(wrong)}")
print(f"{sys.argv[1]}: {', '.join(wanted)}")
