"""The dashboard in Chromium while two servers are at work: what is on it, and that nothing comes from elsewhere."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lsp_complete.measure import kept
from lsp_complete.measure.client import LspClient, spawn
from lsp_complete.measure.edits import Edit, Position
from lsp_complete.measure.replay_compare import compare
from tests.measure.test_replay import rows

from .sandbox import DEADLINE_S, ROOT, Sandbox, program, until
from .vscode import Code, browser, drive

pytestmark = [pytest.mark.editor, pytest.mark.slow]

LINES = ("total = price * quantity + shipping_cost", "label = name_of_user")


async def typed(client: LspClient, uri: str, stop: asyncio.Event) -> None:
    """A file into which lines are typed, a request after every key, from when the engine answers until told to stop."""
    client.open(uri, "python", LINES[0][:9])
    while not (await client.inline(uri, Position(0, 9))).items:
        pass
    client.change(uri, [Edit(Position(0, 0), Position(0, 9), "")])
    line = 0
    while not stop.is_set():
        for text in LINES:
            for column, char in enumerate(text):
                here = Position(line, column)
                client.change(uri, [Edit(here, here, char)])
                await client.inline(uri, Position(line, column + 1))
            end = Position(line, len(text))
            client.change(uri, [Edit(end, end, "\n")])
            line += 1


@contextmanager
def page_at(box: Sandbox, url: str) -> Iterator[Code]:
    """A page of Chromium."""
    driver = drive(box)
    try:
        page = Code(driver, box)
        page.do("open", url=url)
        yield page
    finally:
        assert driver.stdin is not None
        driver.stdin.close()
        driver.wait(DEADLINE_S)


def shows(page: Code, url: str, code: str, what: str) -> None:
    """Load a page until a JavaScript expression holds in it. (The page's own policy forbids to wait for it inside of the page.)"""

    def holds() -> bool:
        try:
            return bool(page.do("look", code=code))
        except AssertionError as error:  # the page loaded itself again meanwhile
            assert "navigation" in str(error) or "destroyed" in str(error), error
            return False

    page.do("open", url=url)
    until(holds, lambda: page.do("open", url=url), what)


def test_two_servers_at_work(box: Sandbox) -> None:
    program("vscode")
    browser()
    box.more |= {"LSP_COMPLETE_RECORD_ENABLED": "true", "PYTHONPATH": str(ROOT)}
    comparisons = box.home / "state" / "lsp-complete" / "comparisons"
    kept.keep(compare(rows(), rows(exact=0.0)), ("before", "after"), ("a.gguf", "b.gguf"), "worse", comparisons)
    shot = Path(os.environ.get("EDITOR_TEST_SHOT") or box.base / "ghost.png").with_name("dashboard.png")

    async def run() -> None:
        servers = []
        for name in ("one", "two"):
            client = await spawn([str(box.server)], box.environment(), box.base / f"{name}.log")
            await client.initialize(box.project, {"settings": {"suggest": {"level": "eager", "min_chars": 1}}})
            servers.append(client)
        board = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "lsp_complete", "dashboard", "--until-eof", "--port", "0",
            env=box.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert board.stdout is not None and board.stdin is not None
        found = re.search(rb"http://\S+", await board.stdout.readline())
        assert found
        stop = asyncio.Event()
        work = [asyncio.create_task(typed(c, (box.project / f"{n}.py").as_uri(), stop)) for n, c in enumerate(servers)]
        await asyncio.to_thread(look, found.group().decode(), [c.process.pid for c in servers if c.process])
        stop.set()
        await asyncio.gather(*work)
        board.stdin.close()
        assert await board.wait() == 0
        for client in servers:
            await client.shutdown()

    def look(url: str, pids: list[int]) -> None:
        with page_at(box, url) as page:
            for pid in pids:
                shows(page, url, f"document.body.textContent.includes('Server {pid}')", f"server {pid}")
            shows(page, url, "document.querySelectorAll('svg[aria-label=\"latency over time\"]').length === 2", "both curves")
            shows(page, url, "document.querySelectorAll('.bar span').length > 4", "waterfalls and slots")
            shows(page, url, "document.querySelectorAll('a[href^=\"recording/\"]').length > 0", "a recording")
            assert page.do("look", code="document.scripts.length") == 0
            elsewhere = "performance.getEntriesByType('resource').map((e) => e.name).filter((n) => !n.startsWith(location.origin))"
            assert json.loads(page.do("look", code=f"JSON.stringify({elsewhere})")) == []
            links = {kind: page.do("look", code=f"document.querySelector('a[href^=\"{kind}/\"]').href") for kind in ("comparison", "recording")}
            page.do("full", path=str(shot))
            shows(page, links["comparison"], "document.querySelectorAll('svg[aria-label=\"interval\"]').length > 5", "the comparison's intervals")
            page.do("full", path=str(shot.with_name("dashboard-comparison.png")))
            shows(page, links["recording"], "document.body.textContent.includes('characters typed')", "the recording's figures")
            page.do("full", path=str(shot.with_name("dashboard-recording.png")))

    asyncio.run(run())
