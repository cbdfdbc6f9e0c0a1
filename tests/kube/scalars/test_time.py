"""Times: parsing and printing as in Go, and round trips."""

import copy
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.scalars.time import (
    UNSET_TIME,
    MicroTime,
    Time,
    TimeError,
)

SECOND = 10**9
Reader = Callable[[object], Time]

READ = {
    "2020-07-10T09:37:52Z": ("2020-07-10T09:37:52Z", 0),
    "2023-08-16T16:01:21+00:00": ("2023-08-16T16:01:21Z", 0),
    "2021-09-10T22:14:58-07:30": ("2021-09-11T05:44:58Z", 0),
    "2022-02-02T20:08:19.0Z": ("2022-02-02T20:08:19Z", 0),
    "2021-07-12T08:26:09.5Z": ("2021-07-12T08:26:09Z", 500_000_000),
    "2023-06-04T06:06:39.000007-07:30": ("2023-06-04T13:36:39Z", 7000),
    "2024-05-14T14:54:02.000000005Z": ("2024-05-14T14:54:02Z", 5),
    "2024-05-14T14:54:02.9999999999Z": ("2024-05-14T14:54:02Z", 999_999_999),
    "2024-05-14T14:54:02,25Z": ("2024-05-14T14:54:02Z", 250_000_000),
    "2024-01-01T0:00:00Z": ("2024-01-01T00:00:00Z", 0),
    "2024-01-01T00:00:00+24:00": ("2023-12-31T00:00:00Z", 0),
    "2024-01-01T00:00:00-23:60": ("2024-01-02T00:00:00Z", 0),
    "2024-02-29T23:59:59Z": ("2024-02-29T23:59:59Z", 0),
    "2000-02-29T00:00:00Z": ("2000-02-29T00:00:00Z", 0),
    "0000-02-29T12:00:00Z": ("0000-02-29T12:00:00Z", 0),
    "0001-01-01T00:00:00Z": (None, 0),
    "0001-01-01T01:00:00+01:00": (None, 0),
    "0001-01-01T00:00:00.5Z": ("0001-01-01T00:00:00Z", 500_000_000),
    "0000-12-31T23:59:59.5Z": ("0000-12-31T23:59:59Z", 500_000_000),
    "0000-01-01T00:00:00+00:01": ("-0001-12-31T23:59:00Z", 0),
    "9999-12-31T23:59:59-00:01": ("10000-01-01T00:00:59Z", 0),
}

REFUSED = """
2024-01-01 2024-01-01T00:00:00 2024-01-01T00:00Z 2024-01-01T00:00:00+0200 2024-01-01t00:00:00Z
2024-01-01T00:00:00z 2024-01-01T00:00:00.Z 2024-1-01T00:00:00Z 24-01-01T00:00:00Z now
10000-01-01T00:00:00Z -0001-01-01T00:00:00Z 2024-01-01T00:00:00+1:00 2024-01-01T00:00:00ZZ
2024-01-01T000:00:00Z ٢٠٢٤-01-01T00:00:00Z
"""
SPACED = ["", " ", "2024-01-01 00:00:00Z", "2024-01-01T00:00:00Z\n"]

OUT_OF_RANGE = {
    "2024-02-30T00:00:00Z": "has day 30; 1 to 29 is expected",
    "2023-02-29T00:00:00Z": "has day 29; 1 to 28 is expected",
    "1900-02-29T00:00:00Z": "has day 29; 1 to 28 is expected",
    "2024-04-31T00:00:00Z": "has day 31; 1 to 30 is expected",
    "2024-01-00T00:00:00Z": "has day 0; 1 to 31 is expected",
    "2024-00-01T00:00:00Z": "has month 0; 1 to 12 is expected",
    "2024-13-01T00:00:00Z": "has month 13; 1 to 12 is expected",
    "2024-01-01T24:00:00Z": "has hour 24; 0 to 23 is expected",
    "2024-01-01T00:60:00Z": "has minute 60; 0 to 59 is expected",
    "2024-12-31T23:59:60Z": "has second 60; 0 to 59 is expected",
    "2024-01-01T00:00:00+25:00": "has hour of the offset 25; 0 to 24 is expected",
    "2024-01-01T00:00:00-01:61": "has minute of the offset 61; 0 to 60 is expected",
}

# Go parses years 0 to 9999; others result from computations only.
TIMES = st.integers(-(10**21), 10**21).map(Time)
READABLE = st.builds(
    "{}{}{}".format,
    st.datetimes()
    .filter(lambda moment: 1 < moment.year < 9999)
    .map(lambda moment: moment.isoformat(timespec="seconds")),
    st.sampled_from(["", ".5", ",25", ".000000001", ".1234567891"]),
    st.sampled_from(["Z", "+00:00", "-07:30", "+14:00", "-24:00"]),
)


@pytest.mark.parametrize(("text", "printed"), READ.items())
def test_fractions_are_kept_in_memory_but_not_printed(text: str, printed: tuple[str, int]) -> None:
    time = Time.parse(text)
    assert (time.wire, time % SECOND) == printed


@pytest.mark.parametrize("text", [*REFUSED.split(), *SPACED])
def test_junk_is_refused_with_the_text_and_an_example(text: str) -> None:
    with pytest.raises(TimeError, match="such as 2024-01-31T09:30:00Z") as caught:
        Time.parse(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(("text", "reason"), OUT_OF_RANGE.items())
def test_times_that_never_were_are_refused(text: str, reason: str) -> None:
    with pytest.raises(TimeError) as caught:
        Time.parse(text)
    assert str(caught.value) == f"time {text!r} {reason}"


@pytest.mark.parametrize("read", [Time.parse, MicroTime.parse])
@pytest.mark.parametrize("value", [0, 1.5, True, [], {}, b"2024-01-01T00:00:00Z"])
def test_only_strings_and_null_are_times(read: Reader, value: object) -> None:
    with pytest.raises(TimeError, match=f"of type {type(value).__name__}"):
        read(value)


@pytest.mark.parametrize("read", [Time.parse, MicroTime.parse])
def test_null_is_the_unset_time(read: Reader) -> None:
    time = read(None)
    assert time == UNSET_TIME == Time()
    assert not time
    assert time.wire is None
    assert UNSET_TIME.truncated() == UNSET_TIME


def test_the_unix_epoch_is_where_it_should_be() -> None:
    epoch = Time.from_unix_nanos(0)
    assert epoch == Time.parse("1970-01-01T00:00:00Z")
    assert Time.from_unix_nanos(-1).wire == "1969-12-31T23:59:59Z"
    assert Time.from_unix_nanos(1_706_693_400_000_000_005).unix_nanos() == 1_706_693_400_000_000_005


def test_a_time_is_shown_readably() -> None:
    time = Time.parse("2024-01-31T09:30:00.0500+01:00")
    assert f"{time}" == str(time) == "2024-01-31T08:30:00.05Z"
    assert repr(time) == "Time.parse('2024-01-31T08:30:00.05Z')"
    assert repr(Time()) == "UNSET_TIME"


@pytest.mark.parametrize(
    ("text", "printed"),
    {
        "2024-01-31T09:30:00.000000Z": "2024-01-31T09:30:00.000000Z",
        "2024-01-31T9:30:00,123456+01:00": "2024-01-31T08:30:00.123456Z",
        "2024-01-31T09:30:00.+12345Z": "2024-01-31T09:30:00.012345Z",
        "2024-01-31T09:30:00.-00000Z": "2024-01-31T09:30:00.000000Z",
        "0001-01-01T00:00:00.000000Z": None,
    }.items(),
)
def test_micro_times_have_six_digits(text: str, printed: str | None) -> None:
    assert MicroTime.parse(text).wire == printed


@pytest.mark.parametrize("fraction", ["", ".", ".5", ".12345", ".1234567", ".-00001", ".+1234"])
def test_other_numbers_of_digits_are_no_micro_time(fraction: str) -> None:
    with pytest.raises(TimeError, match=r"such as 2024-01-31T09:30:00\.000000Z"):
        MicroTime.parse(f"2024-01-31T09:30:00{fraction}Z")


def test_a_micro_time_is_an_instant_that_prints_six_digits() -> None:
    nanos = 1_706_693_400_000_000_005
    time = MicroTime.from_unix_nanos(nanos)
    assert int(time) == int(Time.from_unix_nanos(nanos))
    assert time.unix_nanos() == nanos
    assert time.wire == "2024-01-31T09:30:00.000000Z"
    assert MicroTime.parse(time.wire).unix_nanos() == 1_706_693_400_000_000_000
    assert repr(time) == "MicroTime.parse('2024-01-31T09:30:00.000000Z')"
    assert str(time) == "2024-01-31T09:30:00.000000005Z"
    assert MicroTime.parse(None) == MicroTime() == MicroTime(UNSET_TIME)
    assert MicroTime().wire is None


def test_a_micro_time_prints_no_more_than_microseconds() -> None:
    assert (
        MicroTime(Time.parse("2024-01-31T09:30:00.123456789Z")).wire
        == "2024-01-31T09:30:00.123456Z"
    )


@pytest.mark.parametrize(
    ("time", "left"),
    {
        "2024-01-31T09:30:00.9Z": "2024-01-31T09:30:00Z",
        "0000-12-31T23:59:59.9Z": "0000-12-31T23:59:59Z",
        "0000-01-01T00:00:00Z": "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59.9Z": "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:00-00:01": None,
        "0000-01-01T00:00:00+00:01": None,
        "0001-01-01T00:00:00.5Z": None,
    }.items(),
)
def test_truncation_leaves_whole_seconds_of_years_that_can_be_read(
    time: str, left: str | None
) -> None:
    assert Time.parse(time).truncated().wire == left


def test_copies_are_times() -> None:
    time = Time.parse("2024-01-31T09:30:00.5Z")
    for twin in (copy.deepcopy(time), copy.copy(time)):
        assert type(twin) is Time
        assert twin == time


def test_msgspec_reads_times_and_says_where_one_is_wrong() -> None:
    def hook(_: type, value: object) -> Time:
        return Time.parse(value)

    read = msgspec.json.Decoder(list[Time], dec_hook=hook).decode
    assert read('["1970-01-01T00:00:01Z", null]') == [Time.from_unix_nanos(SECOND), UNSET_TIME]
    with pytest.raises(msgspec.ValidationError, match=r"'soon'.*`\$\[0\]`"):
        read('["soon"]')


@given(TIMES)
def test_reading_what_was_printed_gives_the_truncated_time(time: Time) -> None:
    try:
        again = Time.parse(time.wire)
    except TimeError:
        again = UNSET_TIME
    assert again == time.truncated()
    assert again.truncated() == again


@given(READABLE)
def test_what_is_shown_is_the_same_instant(text: str) -> None:
    time = Time.parse(text)
    assert Time.parse(str(time)) == time
    assert Time.from_unix_nanos(time.unix_nanos()) == time


@given(st.datetimes(timezones=st.just(UTC)))
def test_the_calendar_is_that_of_datetime(moment: datetime) -> None:
    micros = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    time = Time.from_unix_nanos(micros * 1000)
    assert MicroTime(time).wire == (
        f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z" if time else None
    )


@given(st.integers(-(10**6), 10**6), st.integers(-(10**12), 10**12))
def test_the_calendar_repeats_every_400_years(cycles: int, seconds: int) -> None:
    cycle = 146_097 * 86_400
    here, there = str(Time(seconds * SECOND)), str(Time((seconds + cycles * cycle) * SECOND))
    assert here[-16:] == there[-16:]
    assert int(there[:-16]) == int(here[:-16]) + 400 * cycles


def test_seconds_with_a_fraction_are_not_taken_for_nanoseconds() -> None:
    seconds: Any = 1700000000.5
    with pytest.raises(TypeError, match="expected integer nanoseconds, got float"):
        Time.from_unix_nanos(seconds)
