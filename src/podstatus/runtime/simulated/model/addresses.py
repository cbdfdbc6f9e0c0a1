"""IP addresses of simulated pods."""

from ipaddress import IPv4Network

POD_CIDR = "10.88.0.0/16"


class AddressPool:
    """Allocates addresses of a private network in ascending order, wrapping around at the end.

    A released address is therefore reused as late as possible, and a new pod is not mistaken for
    the previous owner of its address.
    """

    def __init__(self, network: str = POD_CIDR) -> None:
        self._network = IPv4Network(network)
        self._allocated: set[str] = set()
        self._last = 1
        """Index of the newest address; lower ones belong to the network and the node."""

    def allocate(self) -> str | None:
        """Allocate a free address; None if all are in use."""
        usable = self._network.num_addresses - 3
        for step in range(usable):
            index = 2 + (self._last - 1 + step) % usable
            address = str(self._network[index])
            if address not in self._allocated:
                self._last = index
                self._allocated.add(address)
                return address
        return None

    def reserve(self, address: str) -> None:
        """Mark an address as allocated: a stored pod has it."""
        self._allocated.add(address)

    def release(self, address: str) -> None:
        self._allocated.discard(address)
