"""Asks for a real-time policy and locked memory, and prints what the system granted."""

from hairspring import RealTime

with RealTime("fifo", 50, lock_memory=True) as real_time:
    policy, priority = RealTime.now_in_force()
    granted = {grant.setting: bool(grant) for grant in real_time.grants}
    print(f"policy {policy}")
    print(f"priority {priority}")
    print(f"memory_locked {'yes' if granted['lock_memory'] else 'no'}")
    print(f"granted {['none', 'some', 'all'][sum(granted.values())]}")
