"""Resource amounts as Kubernetes spells them: `100m`, `1.5Gi`, `12e6`.

A quantity keeps the spelling it came with. What it amounts to, and what Go would print when
it writes it again, is worked out once per spelling and remembered.

Go holds an amount as an int64 with a power of ten where a rough count of digits says that it
fits, and as an arbitrary decimal otherwise. Only the first form may keep its spelling, so
which of the two it was decides what is printed. `QuantityParts` says so.

Upstream: apimachinery v0.36.4, pkg/api/resource. Kept from there: a missing number counts as
zero (`-`, `.`, `Ki`), and an exponent wraps around at 32 bits.
"""

import re
from typing import Literal, NamedTuple, final

import msgspec

from podstatus.kube.scalars.parse_cache import cached_for_short_strings

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

MAX_DIGITS = 600
"""Amounts that need more digits are refused where Go would go on multiplying: any Python
converts this many (it may refuse above 640), and no resource comes near it."""

_INT64_MAX = 2**63 - 1
_NANO = -9
_EXPECTED = "a number with an optional suffix is expected, such as 2, 0.5, 100m, 64Mi or 1e3"

# Go trims these. Tabs and line ends too, but sees them only as the escapes of JSON text.
_SPACES = " \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))

_SPELLING = re.compile(r"([+-]?)0*+([0-9]*+)(?:\.([0-9]*+))?+(.*)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?\.?[0-9]")
_EXPONENT = re.compile(r"[eE]([+-]?)(?=[0-9])0*+([0-9]{0,19})")
_DECIMAL_UNITS = dict[int, str](zip(range(-9, 21, 3), ("n", "u", "m", "", *"kMGTPE"), strict=True))
_BINARY_UNITS = dict(enumerate(("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")))
_SUFFIXES: dict[str, tuple[int, Format]] = {
    **{unit: (power, "DecimalSI") for power, unit in _DECIMAL_UNITS.items()},
    **{unit: (10 * step, "BinarySI") for step, unit in _BINARY_UNITS.items() if step},
}


class QuantityError(ValueError):
    """A text is no quantity, or one too large to work with."""


class QuantitySuffixError(QuantityError):
    """There is no such suffix."""


class QuantityRangeError(QuantityError):
    """The amount needs more digits than are worked with."""


class QuantityParts(msgspec.Struct, frozen=True):
    """An amount as Go holds it: `value * 10**scale`."""

    value: int
    scale: int
    big: bool
    """Whether Go holds it as an `inf.Dec` (whose own scale is `-scale`), not an `int64Amount`."""
    text: str
    """The spelling Go kept, and prints again; empty if it spells the amount anew."""
    format: Format


@final
class Quantity(str):
    """A resource amount, kept as it was spelled.

    Equality, order and hash are those of the spelling; `compare` goes by value.
    """

    __slots__ = ("_computed",)
    _computed: QuantityParts
    """Of a sum. Go does not spell it and read it again: in binary, 1000000 bytes are not `1M`."""

    def __new__(cls, text: str) -> "Quantity":
        """A quantity of exactly this spelling, which must be one."""
        _read(str(text))
        return super().__new__(cls, text)

    @classmethod
    def parse(cls, value: object) -> "Quantity":
        """Read a quantity from a JSON value: a string, a bare number, or null for zero."""
        if isinstance(value, Quantity):
            return value
        if isinstance(value, str):
            return _quantity(value)
        if value is None:
            return _quantity("0")
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _quantity(_number_text(value))
        raise QuantityError(f"quantity is of type {type(value).__name__}; {_EXPECTED}")

    @property
    def parts(self) -> QuantityParts:
        """The amount as Go holds it in memory."""
        return getattr(self, "_computed", None) or _read(str(self))

    @property
    def canonical(self) -> str:
        """What Go prints for this quantity: its spelling if that was kept, else a new one."""
        return str(self) if hasattr(self, "_computed") else _canonical(str(self))

    @property
    def nanos(self) -> int:
        """The amount in units of 1e-9, after Go's rounding away from zero and its caps."""
        parts = self.parts
        if not parts.value:
            return 0
        if parts.scale > MAX_DIGITS:
            raise QuantityError(f"quantity {self[:80]!r} is too large to be counted")
        return parts.value * _power_of_ten(parts.scale - _NANO)

    @property
    def milli_value(self) -> int:
        """The amount in thousandths, rounded up, as the int64 that Go counts with.

        Upstream: MilliValue, quantity.go. What does not fit wraps around, or is zero if Go
        multiplies step by step.
        """
        parts = self.parts
        shift = parts.scale + 3
        if not parts.value or shift > MAX_DIGITS:
            return 0
        milli = (
            parts.value * _power_of_ten(shift)
            if shift > 0
            else -(-parts.value // _power_of_ten(-shift))
        )
        wrapped = (milli + 2**63) % 2**64 - 2**63
        at_once = parts.big or shift in (1, 2, 3, 6, 9)
        return wrapped if at_once or wrapped == milli else 0

    def plus(self, other: "Quantity") -> "Quantity":
        """The sum, in the format of the first of the two that is not zero.

        Upstream: Add, quantity.go.
        """
        parts = _add(self.parts, other.parts)
        quantity = str.__new__(Quantity, _respell(parts))
        quantity._computed = parts  # noqa: SLF001
        return quantity

    def compare(self, other: "Quantity") -> int:
        """-1, 0 or 1: less than, equal to, or greater than the other by value."""
        mine, theirs = self.parts, other.parts
        # Beyond this distance any number but zero is larger than any other below it.
        far = 2 * MAX_DIGITS
        shift = max(-far, min(mine.scale - theirs.scale, far))
        left = mine.value * _power_of_ten(max(shift, 0))
        right = theirs.value * _power_of_ten(max(-shift, 0))
        return (left > right) - (left < right)


class _Spelling(NamedTuple):
    text: str
    sign: int
    digits: str
    """Whole part without leading zeros, at least `0`, followed by the fraction."""
    places: int
    """How many of the digits are the fraction."""
    exponent: int
    """Of two for BinarySI, of ten for the others; of any size."""
    format: Format


@cached_for_short_strings
def _quantity(text: str) -> Quantity:
    return Quantity(text.strip(_SPACES))


@cached_for_short_strings
def _read(text: str) -> QuantityParts:
    if text == "0":
        return QuantityParts(0, 0, False, text, "DecimalSI")
    spelling = _split(text)
    small = _small_binary if spelling.format == "BinarySI" else _small_decimal
    return small(spelling) or _exact(spelling)


@cached_for_short_strings
def _canonical(text: str) -> str:
    parts = _read(text)
    return parts.text or _respell(parts)


def _split(text: str) -> _Spelling:
    match = _SPELLING.fullmatch(text)
    if not text or match is None:
        raise QuantityError(f"quantity {text[:80]!r} cannot be read; {_EXPECTED}")
    sign, whole, fraction, suffix = match.groups(default="")
    power, form = _SUFFIXES.get(suffix) or (_exponent(text, suffix), "DecimalExponent")
    return _Spelling(
        text=text,
        sign=-1 if sign == "-" else 1,
        digits=(whole or "0") + fraction,
        places=len(fraction),
        exponent=power,
        format=form,
    )


def _exponent(text: str, suffix: str) -> int:
    match = _EXPONENT.fullmatch(suffix)
    power = int(match[1] + (match[2] or "0")) if match else None
    if power is None or not -_INT64_MAX - 1 <= power <= _INT64_MAX:
        raise QuantitySuffixError(f"quantity {text[:80]!r} has suffix {suffix[:80]!r}; {_EXPECTED}")
    return power


def _small_decimal(spelling: _Spelling) -> QuantityParts | None:
    digits = spelling.digits
    scale = _int32(spelling.exponent - spelling.places)
    if len(digits) > 18 or scale < _NANO:  # 18 digits always fit an int64
        return None
    kept = scale % 3 == 0 and not digits.endswith("000") and not digits.startswith("0")
    text = spelling.text if kept else ""
    return QuantityParts(spelling.sign * int(digits), scale, False, text, spelling.format)


def _small_binary(spelling: _Spelling) -> QuantityParts | None:
    digits = spelling.digits
    # Go's guess at the decimal digits of the whole: three for each factor of 1024, and one more.
    if spelling.places or len(digits) + 3 * spelling.exponent // 10 + 1 > 15:
        return None
    number = int(digits)
    text = spelling.text if number % 8 else ""
    value = spelling.sign * number << spelling.exponent
    return QuantityParts(value, 0, False, text, "BinarySI")


def _exact(spelling: _Spelling) -> QuantityParts:
    if not _NUMBER.match(spelling.text):
        raise QuantityError(f"quantity {spelling.text[:80]!r} has no digits; {_EXPECTED}")
    binary = spelling.format == "BinarySI"
    scale = _int32((0 if binary else spelling.exponent) - spelling.places)
    digits = spelling.digits.lstrip("0")
    if not digits:
        return QuantityParts(0, scale, True, "", spelling.format)
    if len(digits) + max(scale - _NANO, 0) > MAX_DIGITS:
        raise QuantityRangeError(f"quantity {spelling.text[:80]!r} needs over {MAX_DIGITS} digits")
    nanos = _to_nanos(int(digits) << (spelling.exponent if binary else 0), scale)
    if binary and nanos > _INT64_MAX * 10**9:
        return QuantityParts(spelling.sign * _INT64_MAX, 0, True, "", "BinarySI")
    form = "DecimalSI" if binary and nanos < 10**9 else spelling.format
    return QuantityParts(spelling.sign * nanos, _NANO, True, "", form)


def _add(left: QuantityParts, right: QuantityParts) -> QuantityParts:
    if not left.value or not right.value:
        only = left if left.value else right
        return QuantityParts(only.value, only.scale, only.big, "", only.format)
    if abs(left.scale - right.scale) > MAX_DIGITS:
        raise QuantityError(
            f"the sum of {_respell(left)} and {_respell(right)} needs over {MAX_DIGITS} digits"
        )
    scale = min(left.scale, right.scale)
    value = sum(parts.value * _power_of_ten(parts.scale - scale) for parts in (left, right))
    big = left.big or right.big or not -_INT64_MAX - 1 <= value <= _INT64_MAX
    return QuantityParts(value, scale, big, "", left.format)


def _to_nanos(value: int, scale: int) -> int:
    """A positive amount in units of 1e-9, rounded up."""
    shift = scale - _NANO
    if shift >= 0:
        return value * _power_of_ten(shift)
    # Dividing by more than this gives 1 just the same.
    return -(-value // _power_of_ten(min(-shift, 2 * MAX_DIGITS)))


def _respell(parts: QuantityParts) -> str:
    """The amount without a fraction and with the largest suffix that allows it."""
    if not parts.value:
        return "0"
    if parts.format == "BinarySI":
        whole, rest = divmod(parts.value, _power_of_ten(-parts.scale))
        if not rest and abs(whole) >= 1024:
            number, steps = _remove_factor(1024, whole)
            return f"{number}{_BINARY_UNITS.get(steps, '')}"  # none is left for 1024Ei either
    number, zeros = _remove_factor(10, parts.value)
    exponent = _int32(parts.scale + zeros)
    odd = exponent % 3
    return f"{number * _power_of_ten(odd)}{_decimal_suffix(_int32(exponent - odd), parts.format)}"


def _decimal_suffix(exponent: int, form: Format) -> str:
    if form == "DecimalExponent":
        return f"e{exponent}" if exponent else ""
    return _DECIMAL_UNITS.get(exponent, "")  # Go drops what it has no suffix for: 1000E is "1"


def _remove_factor(factor: int, value: int) -> tuple[int, int]:
    times = 0
    while value % factor == 0:
        value //= factor
        times += 1
    return value, times


def _number_text(number: float) -> str:
    try:
        return repr(number)
    except ValueError as error:
        raise QuantityRangeError(f"quantity, a number, needs over {MAX_DIGITS} digits") from error


def _power_of_ten(power: int) -> int:
    return int(10**power)


def _int32(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31
