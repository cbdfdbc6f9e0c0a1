"""Quantities: strings that Go keeps, reformats or rejects, and comparison by value."""

import copy
from fractions import Fraction

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from podstatus.kube.scalars.quantity import MAX_DIGITS, Quantity, QuantityError, QuantityParts

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
INT64_MAX = 2**63 - 1

KEPT = """
0 1 10 100m 1500m 4987m 2445n 3497u 667M 788P 1958P 3. 3.Gi +1 +1Gi +1M -1 -1m -1Ki -1e-3
1.500 00012E 00012Ki 00012e3 00012P 1E3 1e3 12e6 999Ki 10Ki 875Mi 1841Gi 2481Ti 123456789Mi
406050.441e-3 3545.609675392 586.45838E2 1048576e9 9E 1e3000 5e4294967296 5e9223372036854775805
+12345678901Ki
"""

RESPELLED = {
    "1000m": "1",
    "0.5": "500m",
    "1.5": "1500m",
    "7.5m": "7500u",
    "1000": "1k",
    "1024Mi": "1Gi",
    "1.0Ki": "1Ki",
    "+123456789013Ki": "123456789013Ki",
    "8Ki": "8Ki",
    "1.5Gi": "1536Mi",
    "1.5Pi": "1536Ti",
    "1.5T": "1500G",
    "1E2": "100",
    "1000E2": "100e3",
    "420E2": "42e3",
    "0.001e3": "1",
    "1048576E2": "104857600",
    "253043.82735P": "253043827350G",
    "2408.22306866": "2408223068660n",
    "00": "0",
    "-0": "0",
    "0Pi": "0",
    "0e3": "0",
    # below 1024, or with a fraction: printed as decimal
    "0.5Ki": "512",
    "-0.5Ki": "-512",
    "1.1Ki": "1126400m",
    "6243.63544Mi": "6546926275133440u",
    "4492.9Pi": "5058555691453225369600m",
    # finer than nano: rounded away from zero
    "0.0000000001": "1n",
    "-0.0000000001": "-1n",
    "1.0000000001n": "2n",
    "436e-30": "1e-9",
    "1e-2147483647": "1e-9",
    "0.0000000001Ki": "103n",
    # larger than an int64: binary is capped, decimal is not
    "00012Ei": str(INT64_MAX),
    "-12Ei": f"-{INT64_MAX}",
    "8Ei": str(INT64_MAX),
    "9223372036854775808": "9223372036854775808",
    "12345678901234567890000": "12345678901234567890k",
    # there is no suffix beyond exa, and Go drops the zeros
    "1000E": "1",
    # a missing number is zero
    "-": "0",
    ".": "0",
    "Ki": "0",
    "m": "0",
    # exponents have 32 bits
    "5e4294967297": "50",
    "10e2147483647": "10e2147483647",
}

REFUSED = """
1e 1_000 1mi NaN inf 1.2.3 1KiB 1u0 3079Ki0 1K 1Zi 1i ++1 +-1 1+ 1e+ 1ee5 1e1.5 0x10 1,5 true
1e9223372036854775808 .Pi -Ei .e-10 null ٣ 1e٣ 1\u200b
"""
SPACED = ["", " ", "1 Ki", "- 1", "1\n", "\t1"]


DIGITS = st.text("0123456789", min_size=1, max_size=22)
NUMBERS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-", "+"]),
    DIGITS,
    st.sampled_from(["", "000", "000000000"]),
    st.just("") | st.just(".") | DIGITS.map(".{}".format),
)
UNITS = st.sampled_from([*DECIMAL, *BINARY])
EXPONENTS = st.builds("{}{}".format, st.sampled_from("eE"), st.integers(-40, 40))
QUANTITIES = st.builds("{}{}".format, NUMBERS, UNITS | EXPONENTS).map(Quantity)


@pytest.mark.parametrize("text", KEPT.split())
def test_a_tidy_spelling_is_kept_though_it_may_not_be_canonical(text: str) -> None:
    assert Quantity(text).canonical == text


@pytest.mark.parametrize(("text", "canonical"), RESPELLED.items())
def test_other_spellings_are_rewritten(text: str, canonical: str) -> None:
    assert Quantity(text).canonical == canonical


@pytest.mark.parametrize("text", [*REFUSED.split(), *SPACED])
def test_junk_is_refused_with_the_text_and_an_example(text: str) -> None:
    with pytest.raises(QuantityError, match="expected, such as") as caught:
        Quantity.parse(text)
    assert repr(text.strip(" ")) in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "0"),
        (5, "5"),
        (1.5, "1.5"),
        (1e16, "1e+16"),
        (10**20, "1" + "0" * 20),
        (" 1Gi ", "1Gi"),
    ],
)
def test_json_values_are_read_as_their_text(value: object, text: str) -> None:
    quantity = Quantity.parse(value)
    assert quantity == text
    assert type(quantity) is Quantity


@pytest.mark.parametrize("value", [[], {}, b"1", float("nan")])
def test_other_json_values_are_refused(value: object) -> None:
    with pytest.raises(QuantityError, match="quantity"):
        Quantity.parse(value)


@pytest.mark.parametrize("make", [Quantity, Quantity.parse])
def test_a_quantity_cannot_be_made_of_junk(make: type[Quantity]) -> None:
    with pytest.raises(QuantityError, match="'1KiB' has suffix 'KiB'"):
        make("1KiB")


def test_true_is_not_taken_for_a_number() -> None:
    with pytest.raises(QuantityError, match="of type bool"):
        Quantity.parse(True)


def test_equality_is_that_of_the_spelling() -> None:
    assert Quantity("1") != Quantity("1000m")
    assert len({Quantity("1"), Quantity("1000m"), Quantity("1")}) == 2


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [
        ("1", "1000m", 0),
        ("0", "0m", 0),
        ("1Gi", "1024Mi", 0),
        ("1G", "1Gi", -1),
        ("1e3", "1k", 0),
        ("1E", "1e18", 0),
        ("0.0000000001", "0.00000000010", 0),
        ("436e-3", "436e-30", 1),
        ("9223372036854775808", "100E", -1),
        ("623583.15354Ei", "100e3", 1),
        ("8Ei", "9Ei", 0),
        ("-1k", "3814n", -1),
        ("1e2147483646", "9e599", 1),
        ("-1e2147483646", "1n", -1),
        ("0e2147483646", "1n", -1),
    ],
)
def test_amounts_compare_by_value(left: str, right: str, order: int) -> None:
    assert Quantity(left).compare(Quantity(right)) == order
    assert Quantity(right).compare(Quantity(left)) == -order


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("0", QuantityParts(0, 0, False, "0", "DecimalSI")),
        ("100m", QuantityParts(100, -3, False, "100m", "DecimalSI")),
        ("0.5", QuantityParts(5, -1, False, "", "DecimalSI")),
        ("-1e3", QuantityParts(-1, 3, False, "-1e3", "DecimalExponent")),
        ("1Gi", QuantityParts(2**30, 0, False, "1Gi", "BinarySI")),
        ("8Ki", QuantityParts(8192, 0, False, "", "BinarySI")),
        ("1.5Gi", QuantityParts(3 * 2**29 * 10**9, -9, True, "", "BinarySI")),
        ("0.5e-9", QuantityParts(1, -9, True, "", "DecimalExponent")),
        ("0.00001Ki", QuantityParts(10_240_000, -9, True, "", "DecimalSI")),
        (
            "1234567890123456789",
            QuantityParts(1234567890123456789 * 10**9, -9, True, "", "DecimalSI"),
        ),
        # neither zero nor the limit is scaled
        ("0.0Ki", QuantityParts(0, -1, True, "", "BinarySI")),
        ("-9Ei", QuantityParts(-INT64_MAX, 0, True, "", "BinarySI")),
    ],
)
def test_parts_tell_how_go_holds_the_amount(text: str, parts: QuantityParts) -> None:
    assert Quantity(text).parts == parts


def test_absurd_sizes_are_bounded() -> None:
    assert Quantity("9" * MAX_DIGITS + "e-9").canonical == "9" * MAX_DIGITS + "e-9"
    with pytest.raises(QuantityError, match=f"needs over {MAX_DIGITS} digits"):
        Quantity("9" * MAX_DIGITS)
    with pytest.raises(QuantityError, match="too large for this operation"):
        _ = Quantity("1e2147483646").nanos
    with pytest.raises(QuantityError, match=f"needs over {MAX_DIGITS} digits"):
        Quantity.parse(10**5000)


@pytest.mark.parametrize(
    ("addends", "total"),
    [
        ("1 1", "2"),
        ("100m 0.9", "1"),
        ("1.5 1.5", "3"),
        ("64Mi 64Mi", "128Mi"),
        ("1Gi 1G", "2073741824"),
        ("1G 1Gi", "2073741824"),
        ("1Gi 512Mi", "1536Mi"),
        ("1e3 1k", "2e3"),
        ("1k 1e3", "2k"),
        ("1 -1", "0"),
        # the first operand that is not zero determines the format, also of several
        ("0 1Gi", "1Gi"),
        ("0Ki 1024", "1024"),
        ("0Ki 0 1024", "1024"),
        ("0.5Ki 512", "1Ki"),
        ("512 0.5Ki", "1024"),
        ("0.25Ki 0.25Ki 512", "1Ki"),
        # adding zero does not keep the original string
        ("1.500 0", "1500m"),
        # parsed again, these would have another value
        ("1Ki 998976", "1000000"),
        ("4Ei 4Ei", "8Ei"),
        ("8Ei 8Ei", "18446744073709551614"),
        ("9223372036854775807 1", "9223372036854775808"),
    ],
)
def test_a_sum_is_exact_and_has_the_format_of_the_first_that_is_not_zero(
    addends: str, total: str
) -> None:
    first, *others = map(Quantity, addends.split())
    for other in others:
        first = first.plus(other)
    assert first.canonical == first == total
    assert type(first) is Quantity
    assert copy.copy(first).canonical == copy.deepcopy(first).canonical == total
    assert Quantity.parse(first).canonical == total


def test_a_sum_of_1024_exbibytes_has_no_suffix_left() -> None:
    total = Quantity("4Ei")
    for _ in range(8):
        total = total.plus(total)
    assert total.canonical == "1"


def test_numbers_too_far_apart_are_not_added() -> None:
    with pytest.raises(QuantityError, match=f"the sum of 1e3000 and 1 needs over {MAX_DIGITS}"):
        Quantity("1e3000").plus(Quantity("1"))
    assert Quantity("1e3000").plus(Quantity("0")).canonical == "1e3000"


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        ("1", 1000),
        ("100m", 100),
        ("1u", 1),
        ("1000001u", 1001),
        ("1.5Gi", 1610612736000),
        ("0", 0),
        ("0e-2000000000", 0),
        # beyond int64
        ("9223372036854775", 9223372036854775000),
        ("9007199254740992k", 5188146770730811392),
        ("1e3000", 0),
        ("10E", 0),
        ("8Ei", -1000),
    ],
)
def test_thousandths_are_counted_as_go_counts_them(text: str, milli: int) -> None:
    assert Quantity(text).milli_value == milli


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("100m", 1), ("-1100m", -1), ("1.5Gi", 1610612736), ("10E", 0), ("1e3000", 0)],
)
def test_whole_units_are_rounded_up_as_go_does(text: str, value: int) -> None:
    assert Quantity(text).value == value


@given(QUANTITIES, QUANTITIES)
def test_a_sum_is_that_of_the_nanos(left: Quantity, right: Quantity) -> None:
    assert left.plus(right).nanos == left.nanos + right.nanos
    assert left.plus(right).compare(right.plus(left)) == 0


def test_copies_are_quantities() -> None:
    quantity = Quantity("1.5Gi")
    for twin in (copy.deepcopy(quantity), copy.copy(quantity)):
        assert type(twin) is Quantity
        assert twin == quantity


def test_msgspec_reads_quantities_and_says_where_one_is_wrong() -> None:
    def hook(_: type, value: object) -> Quantity:
        return Quantity.parse(value)

    read = msgspec.json.Decoder(dict[str, Quantity], dec_hook=hook).decode
    assert read('{"cpu": "100m", "memory": 1024, "gpu": null}') == {
        "cpu": "100m",
        "memory": "1024",
        "gpu": "0",
    }
    with pytest.raises(msgspec.ValidationError, match=r"'1KiB'.*`\$\[...\]`"):
        read('{"cpu": "1KiB"}')


@given(QUANTITIES)
def test_writing_again_keeps_the_value_unless_the_suffix_runs_out(quantity: Quantity) -> None:
    assume(abs(quantity.nanos) < 10**30 or quantity.parts.format == "DecimalExponent")
    again = Quantity(quantity.canonical)
    assert again.compare(quantity) == 0
    assert Quantity(again.canonical).compare(again) == 0
    assert type(again.canonical) is str


@given(QUANTITIES, QUANTITIES)
def test_comparison_is_that_of_the_nanos(left: Quantity, right: Quantity) -> None:
    assert left.compare(right) == (left.nanos > right.nanos) - (left.nanos < right.nanos)


@given(NUMBERS, UNITS)
def test_the_amount_is_rounded_away_from_zero_and_capped(number: str, unit: str) -> None:
    factor = 2 ** BINARY[unit] if unit in BINARY else Fraction(10) ** DECIMAL[unit]
    nanos = abs(Fraction(number.rstrip("."))) * factor * 10**9
    size = -(-nanos.numerator // nanos.denominator)
    if unit in BINARY:
        size = min(size, INT64_MAX * 10**9)
    assert Quantity(number + unit).nanos == (-size if number[0] == "-" else size)


@given(st.text("0123456789.+-eEinumkKMGTP _x", max_size=8))
def test_any_text_is_a_quantity_or_a_quantity_error(text: str) -> None:
    try:
        quantity = Quantity.parse(text)
    except QuantityError:
        return
    assert quantity == text.strip(" ")
    assert Quantity(quantity.canonical)
