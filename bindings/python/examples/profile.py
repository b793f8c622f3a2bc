"""How long a function takes, call by call."""

from hairspring import Profile

profile = Profile()


@profile
def work(numbers: list[int]) -> int:
    return sum(numbers)


for _ in range(1000):
    work(list(range(100)))
summary = profile.summary()
print(f"calls {summary.count}")
print(f"min_ns {summary.min_ns}")
print(f"median_ns {summary.median_ns}")
print(f"max_ns {summary.max_ns}")
