"""Resource quantities: `100m`, `1.5Gi`, `12e6`.

A quantity keeps the string it was parsed from. Its value, and the form in which Go prints it, are
computed once per string and cached.

Go stores a quantity as an int64 with a power of ten if an estimate of its digits fits, and as an
arbitrary decimal otherwise. Only the first form may keep its string, so the representation decides
what is printed. `QuantityParts` records it.

Upstream: apimachinery v0.36.4, pkg/api/resource. As there, a missing number is zero (`-`, `.`,
`Ki`), and an exponent wraps around at 32 bits.
"""

import re
from typing import Literal, NamedTuple, final

import msgspec

from podstatus.kube.scalars.parse_cache import cached_for_short_strings

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

MAX_DIGITS = 600
"""Quantities with more digits are rejected, where Go would continue to multiply: every Python
converts this many (it may refuse more than 640), and no real resource needs them."""

_INT64_MAX = 2**63 - 1
_NANO = -9
_EXPECTED = "a number with an optional suffix is expected, such as 2, 0.5, 100m, 64Mi or 1e3"

# Trimmed by Go. It also trims tabs and newlines, but sees them only as escapes in JSON text.
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
    """The text is not a quantity, or the quantity is too large."""


class QuantitySuffixError(QuantityError):
    """The quantity has an unknown suffix."""


class QuantityRangeError(QuantityError):
    """The quantity needs more digits than are supported."""


class QuantityParts(msgspec.Struct, frozen=True):
    """A quantity as Go stores it: `value * 10**scale`."""

    value: int
    scale: int
    big: bool
    """Whether Go stores it as an `inf.Dec` (with a scale of `-scale`), not an `int64Amount`."""
    text: str
    """The string that Go keeps and prints again; empty if it formats the value."""
    format: Format


@final
class Quantity(str):
    """A resource quantity that keeps its string.

    Equality, order and hash are those of the string; `compare` compares the values.
    """

    __slots__ = ("_computed",)
    _computed: QuantityParts
    """Set for a sum and a number. Go does not format and parse it: 1000000 bytes are not `1M`."""

    def __new__(cls, text: str) -> "Quantity":
        """Return a quantity with exactly this string. Raises QuantityError if it is invalid."""
        _read(str(text))
        return super().__new__(cls, text)

    @classmethod
    def parse(cls, value: object) -> "Quantity":
        """Parse a JSON value: a string, a number, or null for zero. Raises QuantityError."""
        if isinstance(value, Quantity):
            return value
        if isinstance(value, str):
            return _quantity(value)
        if value is None:
            return _quantity("0")
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _quantity(_number_text(value))
        raise QuantityError(f"quantity is of type {type(value).__name__}; {_EXPECTED}")

    @classmethod
    def of(cls, value: int, format: Format) -> "Quantity":
        """Return a whole number as a quantity in this format. Upstream: NewQuantity, quantity.go.

        Raises QuantityRangeError for a number that is no int64.
        """
        if not -_INT64_MAX - 1 <= value <= _INT64_MAX:
            raise QuantityRangeError(f"quantity {value} does not fit into 64 bits")
        return cls._of_parts(QuantityParts(value, 0, False, "", format))

    @classmethod
    def _of_parts(cls, parts: QuantityParts) -> "Quantity":
        quantity = str.__new__(cls, _respell(parts))
        quantity._computed = parts  # noqa: SLF001
        return quantity

    @property
    def parts(self) -> QuantityParts:
        """The quantity as Go stores it in memory."""
        return getattr(self, "_computed", None) or _read(str(self))

    @property
    def canonical(self) -> str:
        """The string that Go prints: the original if Go keeps it, otherwise a formatted one."""
        return str(self) if hasattr(self, "_computed") else _canonical(str(self))

    @property
    def nanos(self) -> int:
        """The value in units of 1e-9, with Go's rounding away from zero and its limits."""
        parts = self.parts
        if not parts.value:
            return 0
        if parts.scale > MAX_DIGITS:
            raise QuantityError(f"quantity {self[:80]!r} is too large for this operation")
        return parts.value * _power_of_ten(parts.scale - _NANO)

    @property
    def value(self) -> int:
        """The value in whole units, rounded up, as Go's int64.

        Upstream: Value, quantity.go. A value that does not fit wraps around, or is zero where Go
        multiplies step by step.
        """
        return _scaled_value(self.parts, 0)

    @property
    def milli_value(self) -> int:
        """The value in thousandths, with the limits of `value`. Upstream: MilliValue."""
        return _scaled_value(self.parts, 3)

    def plus(self, other: "Quantity") -> "Quantity":
        """Return the sum, in the format of the first operand that is not zero.

        Upstream: Add, quantity.go.
        """
        return self._of_parts(_add(self.parts, other.parts))

    def compare(self, other: "Quantity") -> int:
        """Return -1, 0 or 1: less than, equal to, or greater than the other by value."""
        own, others = self.parts, other.parts
        # Beyond this difference, any number except zero exceeds any number of the lower scale.
        far = 2 * MAX_DIGITS
        shift = max(-far, min(own.scale - others.scale, far))
        left = own.value * _power_of_ten(max(shift, 0))
        right = others.value * _power_of_ten(max(-shift, 0))
        return (left > right) - (left < right)


class _Spelling(NamedTuple):
    text: str
    sign: int
    digits: str
    """Integer part without leading zeros, at least `0`, followed by the fraction."""
    fraction_digits: int
    """Number of digits that belong to the fraction."""
    exponent: int
    """Power of two for BinarySI, of ten for the others; unbounded."""
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
        fraction_digits=len(fraction),
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
    scale = _int32(spelling.exponent - spelling.fraction_digits)
    if len(digits) > 18 or scale < _NANO:  # 18 digits always fit an int64
        return None
    is_kept = scale % 3 == 0 and not digits.endswith("000") and not digits.startswith("0")
    text = spelling.text if is_kept else ""
    return QuantityParts(spelling.sign * int(digits), scale, False, text, spelling.format)


def _small_binary(spelling: _Spelling) -> QuantityParts | None:
    digits = spelling.digits
    # Go's estimate of the decimal digits: three for each factor of 1024, and one more.
    if spelling.fraction_digits or len(digits) + 3 * spelling.exponent // 10 + 1 > 15:
        return None
    number = int(digits)
    text = spelling.text if number % 8 else ""
    value = spelling.sign * number << spelling.exponent
    return QuantityParts(value, 0, False, text, "BinarySI")


def _exact(spelling: _Spelling) -> QuantityParts:
    if not _NUMBER.match(spelling.text):
        raise QuantityError(f"quantity {spelling.text[:80]!r} has no digits; {_EXPECTED}")
    binary = spelling.format == "BinarySI"
    scale = _int32((0 if binary else spelling.exponent) - spelling.fraction_digits)
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


def _scaled_value(parts: QuantityParts, power: int) -> int:
    shift = parts.scale + power
    if not parts.value or shift > MAX_DIGITS:
        return 0
    exact = (
        parts.value * _power_of_ten(shift)
        if shift > 0
        else -(-parts.value // _power_of_ten(-shift))
    )
    wrapped = (exact + 2**63) % 2**64 - 2**63
    at_once = parts.big or shift in (1, 2, 3, 6, 9)
    return wrapped if at_once or wrapped == exact else 0


def _to_nanos(value: int, scale: int) -> int:
    """Return a positive value in units of 1e-9, rounded up."""
    shift = scale - _NANO
    if shift >= 0:
        return value * _power_of_ten(shift)
    # Dividing by a larger number gives 1 as well.
    return -(-value // _power_of_ten(min(-shift, 2 * MAX_DIGITS)))


def _respell(parts: QuantityParts) -> str:
    """Format the value without a fraction and with the largest suitable suffix."""
    if not parts.value:
        return "0"
    if parts.format == "BinarySI":
        whole, rest = divmod(parts.value, _power_of_ten(-parts.scale))
        if not rest and abs(whole) >= 1024:
            number, steps = _remove_factor(1024, whole)
            return f"{number}{_BINARY_UNITS.get(steps, '')}"  # 1024Ei has no suffix either
    number, zeros = _remove_factor(10, parts.value)
    exponent = _int32(parts.scale + zeros)
    odd = exponent % 3
    return f"{number * _power_of_ten(odd)}{_decimal_suffix(_int32(exponent - odd), parts.format)}"


def _decimal_suffix(exponent: int, form: Format) -> str:
    if form == "DecimalExponent":
        return f"e{exponent}" if exponent else ""
    return _DECIMAL_UNITS.get(exponent, "")  # Go drops exponents without a suffix: 1000E is "1"


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
