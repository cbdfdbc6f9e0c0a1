"""All that is wrong with a text, in a sentence that is not too long."""

_MOST = 3
"""Of mistakes of one kind so many are quoted; the text may be one long mistake."""


class Mistakes:
    """Mistakes by what would be right: that is said once."""

    def __init__(self) -> None:
        self._quoted: dict[str, list[str]] = {}

    def add(self, quoted: str, right: str) -> None:
        """Take note of a mistake, and of what is allowed."""
        self._quoted.setdefault(right, []).append(quoted)

    def __bool__(self) -> bool:
        return bool(self._quoted)

    def __str__(self) -> str:
        told = [f"{_listed(quoted)}; {right}" for right, quoted in self._quoted.items()]
        if len(told) == 1:
            return told[0]
        return ". ".join(f"({number}) {text}" for number, text in enumerate(told, 1))


def _listed(quoted: list[str]) -> str:
    more = len(quoted) - _MOST
    return ", ".join(quoted[:_MOST]) + (f" and {more} more" if more > 0 else "")
