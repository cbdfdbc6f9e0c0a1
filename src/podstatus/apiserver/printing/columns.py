"""The columns of Tables, and the port of what prints their rows."""

from typing import Any, Protocol

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


class Printer(Protocol):
    """Converts objects of one resource to rows of a Table."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The column definitions, in print order."""

    def cells(self, document: Document, now: Time) -> list[Any]:
        """Return one cell per column."""

    def conditions(self, document: Document) -> list[Document]:
        """Return the row conditions, for example Completed for a pod that has terminated."""


NAME = Column(name="Name", format="name", description="The object's name.")
AGE = Column(name="Age", description="How long ago the object was created.")
