"""The addresses of simulated pods: each has its own, and gives it back."""

from ipaddress import IPv4Network

POD_CIDR = "10.88.0.0/16"


class AddressPool:
    """Hands out the addresses of a private network, one after another and then from the front.

    So one that was given back rests for long: nobody takes a new pod for the one that had it.
    """

    def __init__(self, network: str = POD_CIDR) -> None:
        self._network = IPv4Network(network)
        self._allocated: set[str] = set()
        self._last = 1
        """The place of the newest address; those before are the network's and the node's own."""

    def allocate(self) -> str | None:
        """A free address, None if there is none."""
        room = self._network.num_addresses - 3
        for step in range(room):
            place = 2 + (self._last - 1 + step) % room
            found = str(self._network[place])
            if found not in self._allocated:
                self._last = place
                self._allocated.add(found)
                return found
        return None

    def reserve(self, address: str) -> None:
        """Take this one: a pod has it from before."""
        self._allocated.add(address)

    def release(self, address: str) -> None:
        """Let others have it."""
        self._allocated.discard(address)
