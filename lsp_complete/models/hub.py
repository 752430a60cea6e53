"""Fetches a model from a hub repository (Hugging Face, or a mirror named by `HF_ENDPOINT`).

Strategy: `huggingface_hub` says where the file lies, how large it is and what its LFS digest is (it knows tokens and
mirrors); the bytes come as one plain HTTP stream with a range request, so that a download goes on where it stopped.

Rules:
- Size and digest that the hub tells must agree with the catalogue's, where those are known, before anything is fetched.
- Where the catalogue has no digest, the hub's own LFS digest is the check; without either nothing is fetched.
- The access token goes to the hub's own host only.
- The hub's client sends no telemetry: only the file that the user asked for is asked for.
- Both libraries are imported here when a download begins: nothing at start-up touches the network.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from lsp_complete.errors import DownloadError
from lsp_complete.models.catalogue import CatalogueModel
from lsp_complete.models.partial import PartialFile, require_space
from lsp_complete.models.paths import CHUNK, Progress, silent

DEFAULT_ENDPOINT = "https://huggingface.co"
RETRY_DELAYS = (1.0, 3.0, 10.0)
_LFS_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


class HubUnavailable(DownloadError):
    """The hub cannot be reached or does not give this file out: another source may."""


@dataclass(frozen=True, slots=True)
class HubFile:
    """What the hub says of a file. url: where its bytes are now; commit: the revision it stands for."""

    url: str
    size: int
    sha256: str
    commit: str


def endpoint() -> str:
    """The hub's address: `HF_ENDPOINT`, else the public one."""
    return (os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT).rstrip("/")


def locate(model: CatalogueModel, timeout: float = 10.0, revision: str | None = None) -> HubFile:
    """Ask the hub for the file's place, size and digest. timeout in seconds.

    Raises HubUnavailable if it cannot be had there, DownloadError if it is not the file of the catalogue.
    """
    source = model.hub
    if source is None:
        raise HubUnavailable(f"{model.name} has no hub repository in the catalogue.")
    _no_telemetry()
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    url = hf_hub_url(source.repo, source.file, revision=revision or source.revision, endpoint=endpoint())
    try:
        found = get_hf_file_metadata(url, timeout=timeout)
    except Exception as error:  # the hub's client raises its HTTP library's own errors too
        raise _unavailable(model, error) from error
    digest = found.etag if found.etag and _LFS_DIGEST.match(found.etag) else model.file.sha256
    if digest is None or not found.size:
        raise HubUnavailable(
            f"{source.repo}: the hub names no digest or size for {source.file}, so nothing could be checked. "
            "Set HF_ENDPOINT to a hub or mirror that passes its headers on."
        )
    _agree(model, found.size, digest)
    return HubFile(str(found.location), found.size, digest, found.commit_hash or source.revision)


def _no_telemetry() -> None:
    """Before the hub's client is imported: it would report its use, and ask the hub for a list of AI agents first."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")


def _agree(model: CatalogueModel, size: int, digest: str) -> None:
    expected = model.file
    if (expected.sha256 is not None and digest != expected.sha256) or (
        expected.size_exact and size != expected.size
    ):
        raise HubUnavailable(
            f"{model.name}: the hub's file is not the one of the catalogue (digest {digest[:16]}…, {size:,} bytes). "
            "It was replaced there; nothing was fetched."
        )


def _unavailable(model: CatalogueModel, error: Exception) -> HubUnavailable:
    repo = model.hub.repo if model.hub else ""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403):
        return HubUnavailable(
            f"{repo}: the hub refuses access ({status}). Accept the model's licence on its page, "
            "and log in (`hf auth login`) or set HF_TOKEN."
        )
    if status == 404:
        return HubUnavailable(f"{repo}: the hub has no such repository, revision or file (404).")
    first = str(error).strip().splitlines()
    return HubUnavailable(
        f"The hub at {endpoint()} cannot be reached: {type(error).__name__}: {first[0][:200] if first else 'no reason given'}. Check the connection, or set HF_ENDPOINT to a mirror."
    )


def fetch_from_hub(
    model: CatalogueModel,
    target: Path,
    progress: Progress = silent,
    *,
    timeout: float = 10.0,
    retry_delays: Sequence[float] = RETRY_DELAYS,
) -> Path:
    """Fetch and check the file, going on after a broken connection. Blocks; the caller holds the model's lock.

    retry_delays: seconds to wait before each further try; a try that brought bytes starts the row again.
    Raises HubUnavailable if not even the first byte came, DownloadError otherwise (the part is kept).
    """
    found = locate(model, timeout)
    with PartialFile(target, f"hub {found.sha256}", found.size, to_marks=False, progress=progress) as part:
        require_space(target.parent, found.size - part.offset)
        start, failures = part.offset, 0
        while part.offset < found.size:
            before = part.offset
            reason = _stream(found, part, progress)
            if not reason:
                continue
            failures = 1 if part.offset > before else failures + 1
            if failures > len(retry_delays):
                kind = DownloadError if part.offset > start else HubUnavailable
                raise kind(
                    f"{model.name}: the download broke off after {part.offset:,} of {found.size:,} bytes: {reason}. "
                    "Run the same command again; it goes on from there."
                )
            progress(part.offset, part.size, "the connection broke; trying again")
            time.sleep(retry_delays[failures - 1])
            found = _again(model, found, timeout)
        return part.finish(found.sha256, "hub")


def _again(model: CatalogueModel, found: HubFile, timeout: float) -> HubFile:
    """A fresh address (signed ones expire), pinned to the revision of the first answer; the old one if none is given."""
    try:
        fresh = locate(model, timeout, found.commit)
    except HubUnavailable:
        return found
    return fresh if (fresh.sha256, fresh.size) == (found.sha256, found.size) else found


def _stream(found: HubFile, part: PartialFile, progress: Progress) -> str:
    """Append what the server sends from the part's end on. Returns "" at the end of the stream, else why it broke."""
    import httpx

    headers = {"Accept-Encoding": "identity", "Range": f"bytes={part.offset}-", **_token_header(found.url)}
    try:
        with httpx.stream(
            "GET",
            found.url,
            headers=headers,
            follow_redirects=True,
            timeout=httpx.Timeout(30.0, connect=10.0),
        ) as answer:
            if answer.status_code == 200 and part.offset:
                part.restart()
            elif answer.status_code == 206 and not _continues(
                answer.headers.get("Content-Range", ""), part.offset
            ):
                return "the server sent another range than the one asked for"
            elif answer.status_code not in (200, 206):
                return f"the server answered {answer.status_code}"
            before = part.offset
            for chunk in answer.iter_bytes(CHUNK):
                part.append(chunk)
                progress(part.offset, part.size, "from the hub")
            return "" if part.offset > before else "the server sent nothing"
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"{type(error).__name__}: {str(error)[:200]}"


def _continues(content_range: str, offset: int) -> bool:
    match = re.match(r"bytes (\d+)-", content_range)
    return match is not None and int(match.group(1)) == offset


def _token_header(url: str) -> dict[str, str]:
    if urlsplit(url).netloc != urlsplit(endpoint()).netloc:
        return {}
    _no_telemetry()
    from huggingface_hub import get_token

    token = get_token()
    return {"Authorization": f"Bearer {token}"} if token else {}
