"""Asks for a real-time policy and locked memory, and says what was granted."""

from hairspring import RealTime

with RealTime("fifo", 50, lock_memory=True) as real_time:
    policy, priority = RealTime.now_in_force()
    locked = next(grant for grant in real_time.grants if grant.setting == "lock_memory")
    print(f"policy {policy}")
    print(f"priority {priority}")
    print(f"memory_locked {'yes' if locked else 'no'}")
    print(f"granted {'yes' if real_time.granted else 'no'}")
