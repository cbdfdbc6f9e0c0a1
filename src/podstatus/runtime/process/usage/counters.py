"""Cumulative counters of a set of members that come and go: processes, containers, pods. Pure."""

from collections.abc import Hashable, Mapping

import msgspec

from podstatus.runtime.process.cgroups.model.interface_files import CgroupUsage


class UsageCounters(msgspec.Struct, frozen=True, kw_only=True):
    """Values that only grow, of a member or a sum."""

    cpu_seconds: float = 0.0
    page_faults: int = 0
    major_page_faults: int = 0

    def __add__(self, other: "UsageCounters") -> "UsageCounters":
        return UsageCounters(
            cpu_seconds=self.cpu_seconds + other.cpu_seconds,
            page_faults=self.page_faults + other.page_faults,
            major_page_faults=self.major_page_faults + other.major_page_faults,
        )


def counters_of(reading: CgroupUsage) -> UsageCounters:
    """Return the counters of a reading; what is unknown counts as nothing."""
    return UsageCounters(
        cpu_seconds=reading.cpu_seconds or 0.0,
        page_faults=reading.memory.page_faults or 0,
        major_page_faults=reading.memory.major_page_faults or 0,
    )


class CounterSum(msgspec.Struct, frozen=True, kw_only=True):
    """The sum over all members that there ever were."""

    members: Mapping[Hashable, UsageCounters] = {}
    """As of their last reading."""
    ended: UsageCounters = UsageCounters()

    def update(self, members: Mapping[Hashable, UsageCounters]) -> "CounterSum":
        """Return the sum with the members that there are now."""
        gone = (counters for key, counters in self.members.items() if key not in members)
        return CounterSum(members=members, ended=sum(gone, self.ended))

    @property
    def total(self) -> UsageCounters:
        return sum(self.members.values(), self.ended)
