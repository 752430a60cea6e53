"""Messages of clients that do not keep to the protocol's types, mended before they are read.

A change that cannot be read would be lost, and the document would no longer be what the editor has: so what is not needed
(versions, the length of a range) may be missing or null, and positions beyond what the protocol counts are clamped. Pure.
"""

from __future__ import annotations

from typing import Any

from lsprotocol import types

MOST = 2**31 - 1
"""The largest number of the protocol."""


def mend(method: str, params: Any) -> None:
    """Mend the parameters of a text synchronization message in place; others, and what is hopeless, stay as they are."""
    if not isinstance(params, dict):
        return
    if method == types.TEXT_DOCUMENT_DID_OPEN:
        _item(params.get("textDocument"))
    elif method == types.TEXT_DOCUMENT_DID_CHANGE:
        _changed(params.get("textDocument"), params.get("contentChanges"))
    elif method == types.NOTEBOOK_DOCUMENT_DID_OPEN:
        for item in _list(params.get("cellTextDocuments")):
            _item(item)
    elif method == types.NOTEBOOK_DOCUMENT_DID_CHANGE:
        change = params.get("change")
        cells = change.get("cells") if isinstance(change, dict) else None
        for content in _list(cells.get("textContent")) if isinstance(cells, dict) else ():
            if isinstance(content, dict):
                _changed(content.get("document"), content.get("changes"))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: Any, least: int) -> int:
    return min(max(int(value), least), MOST) if isinstance(value, int) else 0


def _item(item: Any) -> None:
    if isinstance(item, dict):
        item["version"] = _number(item.get("version"), -MOST)
        if not isinstance(item.get("languageId"), str):
            item["languageId"] = ""


def _changed(document: Any, changes: Any) -> None:
    if isinstance(document, dict):
        document["version"] = _number(document.get("version"), -MOST)
    for change in _list(changes):
        if not isinstance(change, dict):
            continue
        change.pop("rangeLength", None)  # says nothing that the range does not
        where = change.get("range")
        if where is None:
            change.pop("range", None)
        elif isinstance(where, dict):
            for point in (where.get("start"), where.get("end")):
                if isinstance(point, dict):
                    point.update({key: _number(value, 0) for key, value in point.items() if type(value) is int})
