"""Compare resource versions.

The resource versions of Kubernetes are decimal numbers that grow with every write (KEP-5504 allows
clients to rely on it). With a server whose versions are not numbers, later data counts as newer.
"""

import msgspec

MAX_DIGITS = 40
"""A valid number has at most 20 digits; Python refuses to parse thousands of them."""


class ResourceVersion(msgspec.Struct, frozen=True):
    """A resource version as it was sent, and its value if it is a number."""

    text: str = ""
    number: int | None = None

    @classmethod
    def parse(cls, text: str) -> "ResourceVersion":
        """Parse a version; any text is accepted."""
        # isdigit alone accepts the digits of all scripts, and int accepts underscores and spaces.
        if text.isdigit() and text.isascii() and len(text) <= MAX_DIGITS:
            return cls(text, int(text))
        return cls(text)

    def is_after(self, other: "ResourceVersion") -> bool:
        """Whether this version is certainly newer; False if they cannot be compared."""
        return self.number is not None and other.number is not None and self.number > other.number

    def is_covered_by(self, other: "ResourceVersion") -> bool:
        """Whether this version is certainly equal or older; False if not comparable."""
        return self.number is not None and other.number is not None and self.number <= other.number


UNKNOWN = ResourceVersion()
"""The version before the first list."""
