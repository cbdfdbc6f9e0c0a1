"""Garbage collection pauses while a service is imported, and goes on afterwards."""

import gc

import pytest

from podstatus.cli.paused_gc import paused_gc


def test_nothing_is_collected_meanwhile_and_what_was_made_is_exempt() -> None:
    with paused_gc():
        assert not gc.isenabled()
        made = [object(), []]
    assert gc.isenabled()
    assert not any(it is made for it in gc.get_objects()), "frozen"


def test_a_failed_import_leaves_it_enabled() -> None:
    with pytest.raises(ModuleNotFoundError), paused_gc():
        raise ModuleNotFoundError
    assert gc.isenabled()
