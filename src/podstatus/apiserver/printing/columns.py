"""The columns of Tables, and what prints their rows."""

from collections.abc import Callable
from typing import Any

import msgspec

from podstatus.apiserver.strategies.base import Document
from podstatus.kube.scalars.time import Time


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of the Table that `kubectl get` prints."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0
    """0: always printed; 1: only with `-o wide`."""


class Printer(msgspec.Struct, frozen=True):
    """Converts objects of one resource to rows of a Table."""

    columns: tuple[Column, ...]
    """The column definitions, in print order."""
    cells: Callable[[Document, Time], list[Any]]
    """Returns one cell per column."""
    conditions: Callable[[Document], list[Document]] = lambda _: []
    """Returns the row conditions, for example Completed for a pod that has terminated."""


NAME = Column(name="Name", format="name", description="The object's name.")
AGE = Column(name="Age", description="How long ago the object was created.")
