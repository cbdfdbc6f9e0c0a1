"""Conversion of objects to Tables and PartialObjectMetadata.

Upstream: pkg/endpoints/handlers/response.go and pkg/registry/rest/table.go, apiserver v0.36.4.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from podstatus.apiserver.http.errors import bad_request
from podstatus.apiserver.http.negotiation import META_V1, IncludeObject
from podstatus.apiserver.printing.columns import Printer
from podstatus.apiserver.printing.printers import printer_for
from podstatus.apiserver.resources import ResourceInfo
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.scalars.time import Time
from podstatus.kube.unstructured import nested_dict, nested_str


def parse_include_object(value: str) -> IncludeObject:
    """Parse the `includeObject` parameter of a Table request. Raises StatusError (400)."""
    match value:
        case "Metadata" | "None" | "Object":
            return value
        case "":
            return "Metadata"
    raise bad_request(
        f'Unable to convert to Table as requested: includeObject: Invalid value: "{value}": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )


def table_document(
    resource: ResourceInfo,
    documents: Sequence[Document],
    now: Time,
    *,
    list_metadata: Document | None = None,
    include_object: IncludeObject = "Metadata",
    headers: bool = True,
    api_version: str = META_V1,
) -> Document:
    """Return a Table with a row for each object.

    `list_metadata` is that of the list; None for a single object of a get or watch. A watch sends
    headers with its first event only.
    """
    printer = printer_for(resource)
    rows = [
        _row(printer, document, now)
        | {"object": _row_object(resource, document, include_object, api_version)}
        for document in documents
    ]
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": _object_metadata(documents) if list_metadata is None else list_metadata,
        "columnDefinitions": msgspec.to_builtins(printer.columns) if headers else None,
        "rows": rows,
    }


def partial_metadata(document: Document, *, api_version: str = META_V1) -> Document:
    """Return the object's metadata as PartialObjectMetadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": api_version,
        "metadata": nested_dict(document, "metadata"),
    }


def partial_list(
    documents: Sequence[Document], list_metadata: Document, *, api_version: str = META_V1
) -> Document:
    """Return the metadata of every object in a list."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": api_version,
        "metadata": list_metadata,
        "items": [partial_metadata(item, api_version=api_version) for item in documents],
    }


def _row(printer: Printer, document: Document, now: Time) -> Document:
    row: Document = {"cells": printer.cells(document, now)}
    if conditions := printer.conditions(document):
        row["conditions"] = conditions
    return row


def _row_object(
    resource: ResourceInfo, document: Document, include: IncludeObject, api_version: str
) -> Any:
    if include == "None":
        return None
    if include == "Metadata":
        return partial_metadata(document, api_version=api_version)
    return {**document, "kind": resource.kind, "apiVersion": resource.api_version}


def _object_metadata(documents: Sequence[Document]) -> Document:
    version = nested_str(documents[0], "metadata", "resourceVersion") if documents else ""
    return {"resourceVersion": version} if version else {}
