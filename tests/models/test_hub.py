"""The hub, over real HTTP on the loopback device."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lsp_complete.errors import DownloadError
from lsp_complete.models.download import pull
from lsp_complete.models.hub import HubUnavailable, fetch_from_hub
from lsp_complete.models.paths import part_path, read_stamp

from . import builders

CONTENT = bytes(range(256)) * 9000
ROOT = Path(__file__).parents[2]
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def use(hub: builders.Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.address)


def test_fetches_from_the_mirror_that_the_environment_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with builders.Hub(CONTENT, etag=DIGEST) as hub:
        use(hub, monkeypatch)
        path = pull(builders.model(CONTENT), source="hub")
    assert path.read_bytes() == CONTENT
    stamp = read_stamp(path)
    assert stamp is not None and stamp.source == "hub"
    assert [method for method, _, _ in hub.requests] == ["HEAD", "GET"]
    assert hub.requests[0][1] == "/someone/Tiny-Coder-GGUF/resolve/main/tiny-coder.gguf"


def test_the_hub_is_asked_for_nothing_but_the_file(folder: Path, tmp_path: Path) -> None:
    """In a fresh process: the hub's client decides at its import what it reports."""
    script = (
        "import sys; from pathlib import Path; from lsp_complete.models.hub import fetch_from_hub; "
        "from tests.models import builders; "
        f"fetch_from_hub(builders.model({CONTENT[:1000]!r}), Path(sys.argv[1]) / 'tiny-coder.gguf')"
    )
    with builders.Hub(CONTENT[:1000], etag=hashlib.sha256(CONTENT[:1000]).hexdigest()) as hub:
        environment = {**os.environ, "HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path / "hf")}
        subprocess.run([sys.executable, "-c", script, str(folder)], check=True, env=environment, cwd=ROOT)
    assert {path for _, path, _ in hub.requests} == {"/someone/Tiny-Coder-GGUF/resolve/main/tiny-coder.gguf"}


def test_goes_on_after_the_connection_broke(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = folder / "tiny-coder.gguf"
    with builders.Hub(CONTENT, etag=DIGEST, breaks=[1_500_000, 0, None]) as hub:
        use(hub, monkeypatch)
        assert fetch_from_hub(builders.model(CONTENT), target, retry_delays=(0, 0)).read_bytes() == CONTENT
    starts = [int(headers["range"].removeprefix("bytes=").rstrip("-")) for headers in hub.gets()]
    assert starts[0] == 0 and 0 < starts[1] == starts[2] <= 1_500_000


def test_a_later_run_goes_on_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = folder / "tiny-coder.gguf"
    with builders.Hub(CONTENT, etag=DIGEST, breaks=[1_500_000]) as hub:
        use(hub, monkeypatch)
        with pytest.raises(DownloadError, match="Run the same command again"):
            fetch_from_hub(builders.model(CONTENT), target, retry_delays=())
        assert not target.exists() and part_path(target).exists()
        assert pull(builders.model(CONTENT), source="hub").read_bytes() == CONTENT
    assert hub.gets()[-1]["range"] != "bytes=0-"
    assert not part_path(target).exists()


def test_another_file_at_the_hub_is_not_gone_on_with(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, other = folder / "tiny-coder.gguf", bytes(reversed(CONTENT))
    with builders.Hub(CONTENT, etag=DIGEST, breaks=[1_500_000]) as hub:
        use(hub, monkeypatch)
        with pytest.raises(DownloadError):
            fetch_from_hub(builders.model(CONTENT, digest=False), target, retry_delays=())
    with builders.Hub(other, etag=hashlib.sha256(other).hexdigest()) as hub:
        use(hub, monkeypatch)
        assert fetch_from_hub(builders.model(CONTENT, digest=False), target).read_bytes() == other
        assert hub.gets()[0]["range"] == "bytes=0-"


def test_a_server_without_ranges_starts_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with builders.Hub(CONTENT, etag=DIGEST, breaks=[1_500_000], ranges=False) as hub:
        use(hub, monkeypatch)
        assert (
            fetch_from_hub(
                builders.model(CONTENT), folder / "tiny-coder.gguf", retry_delays=(0,)
            ).read_bytes()
            == CONTENT
        )


def test_damaged_bytes_are_thrown_away(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with builders.Hub(CONTENT, etag=DIGEST, body=bytes(len(CONTENT))) as hub:
        use(hub, monkeypatch)
        with pytest.raises(DownloadError, match="digest"):
            pull(builders.model(CONTENT), source="hub")
    assert [path.name for path in folder.iterdir() if not path.name.endswith(".lock")] == []


def test_without_a_known_digest_the_lfs_digest_decides(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with builders.Hub(CONTENT, etag=DIGEST, body=bytes(len(CONTENT))) as hub:
        use(hub, monkeypatch)
        with pytest.raises(DownloadError, match="digest"):
            pull(builders.model(CONTENT, digest=False), source="hub")


def test_without_any_digest_nothing_is_fetched(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with builders.Hub(CONTENT) as hub:
        use(hub, monkeypatch)
        with pytest.raises(HubUnavailable, match="nothing could be checked"):
            pull(builders.model(CONTENT, digest=False), source="hub")
    assert hub.gets() == []


def test_a_replaced_file_is_refused_before_it_is_fetched(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with builders.Hub(CONTENT, etag="0" * 64) as hub:
        use(hub, monkeypatch)
        with pytest.raises(HubUnavailable, match="not the one of the catalogue"):
            pull(builders.model(CONTENT), source="hub")
    assert hub.gets() == []


@pytest.mark.parametrize(
    ("status", "reason"), [(401, "licence"), (403, "licence"), (404, "no such"), (500, "cannot be reached")]
)
def test_refusals_say_what_to_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch, status: int, reason: str
) -> None:
    with builders.Hub(CONTENT, etag=DIGEST, status=status) as hub:
        use(hub, monkeypatch)
        with pytest.raises(HubUnavailable, match=reason):
            pull(builders.model(CONTENT), source="hub")


def test_the_token_goes_to_the_hub_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with (
        builders.Hub(CONTENT) as storage,
        builders.Hub(CONTENT, etag=DIGEST, elsewhere=f"{storage.address}/bytes") as hub,
    ):
        use(hub, monkeypatch)
        assert pull(builders.model(CONTENT), source="hub").read_bytes() == CONTENT
    assert hub.gets() == []
    assert [headers.get("authorization") for headers in storage.gets()] == [None]
    with builders.Hub(CONTENT, etag=DIGEST) as hub:
        use(hub, monkeypatch)
        pull(builders.model(CONTENT), source="hub", folder=folder)  # already here: asks nobody
    assert hub.requests == []


def test_a_full_disk_is_said_before_anything_is_fetched(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with builders.Hub(CONTENT, etag=DIGEST) as hub:
        use(hub, monkeypatch)
        hub.head = lambda handler: _huge(handler)  # type: ignore[method-assign]
        with pytest.raises(DownloadError, match="Not enough room"):
            pull(builders.model(CONTENT, size=1 << 60), source="hub")
    assert hub.gets() == []


def _huge(handler: object) -> None:
    from http.server import BaseHTTPRequestHandler

    assert isinstance(handler, BaseHTTPRequestHandler)
    handler.send_response(200)
    handler.send_header("X-Linked-Etag", DIGEST)
    handler.send_header("X-Linked-Size", str(1 << 60))
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def test_auto_uses_the_hub_where_there_are_no_parts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with builders.Hub(CONTENT, etag=DIGEST) as hub:
        use(hub, monkeypatch)
        assert pull(builders.model(CONTENT)).read_bytes() == CONTENT
