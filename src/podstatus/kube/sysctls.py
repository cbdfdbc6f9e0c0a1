"""Names of kernel parameters.

Upstream: NormalizeName, node/util/sysctl/sysctl.go of component-helpers v0.36.4.
"""

_SWAPPED = str.maketrans("./", "/.")


def normalize_sysctl(name: str) -> str:
    """Return a name with dots as separators; if its first separator is a slash, all are swapped."""
    separators = [character for character in name if character in "./"]
    return name.translate(_SWAPPED) if separators[:1] == ["/"] else name
