"""The README and the program say the same: each setting, command and custom message stands there and exists."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lsp_complete import cli, config

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CODE_SPANS = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", README, flags=re.DOTALL))
OWN_MESSAGE = re.compile(r"lsp-complete[./][A-Za-z][A-Za-z.]*")
NOT_MESSAGES = {"lsp-complete.toml"}
BORROWED = {
    "textDocument/didFocus",
    "textDocument/didShowCompletion",
    "textDocument/didPartiallyAcceptCompletion",
    "didChangeStatus",
}
"""Messages that the protocol does not have, under the names other servers gave them."""


def messages_in_code() -> set[str]:
    """Names of our own messages and commands: string constants in `lsp/`, docstrings aside."""
    found: set[str] = set()
    for path in (ROOT / "lsp_complete" / "lsp").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            if OWN_MESSAGE.fullmatch(node.value) or node.value in BORROWED:
                found.add(node.value)
    return found - NOT_MESSAGES


def test_generated_parts_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "gen-docs", "--check"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", config.OPTIONS)
def test_each_setting_stands_in_the_readme(name: str) -> None:
    assert f"| `{name}` |" in README


def test_each_setting_in_the_readme_exists() -> None:
    groups = {name.split(".")[0] for name in config.OPTIONS if "." in name}
    named = {span for span in CODE_SPANS if re.fullmatch(rf"({'|'.join(groups)})\.[a-z_]+", span)}
    assert named <= set(config.OPTIONS)
    variables = set(re.findall(r"LSP_COMPLETE_[A-Z_]+[A-Z]", README))
    known = {option.variable for option in config.OPTIONS.values()} | config.OTHER_VARIABLES
    assert variables <= known


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_each_command_stands_in_the_readme(name: str) -> None:
    assert re.search(rf"`lsp-complete {name}\b" if name != "serve" else r"`lsp-complete( serve)?\b", README)


def test_each_command_in_the_readme_exists() -> None:
    lines = CODE_SPANS + re.findall(r"^(?:\$ )?(lsp-complete .*)$", README, flags=re.MULTILINE)
    named = {found[1] for line in lines if (found := re.match(r"lsp-complete ([a-z]\S*)", line))}
    assert named <= set(cli.COMMANDS)


def test_each_custom_message_stands_in_the_readme() -> None:
    found = messages_in_code()
    assert {
        "lsp-complete.accept",
        "lsp-complete.stats",
        "lsp-complete.restartEngine",
        "textDocument/didFocus",
    } <= found
    assert [name for name in sorted(found) if f"`{name}`" not in README] == []


def test_each_custom_message_in_the_readme_exists() -> None:
    named = {span for span in CODE_SPANS if OWN_MESSAGE.fullmatch(span)} - NOT_MESSAGES
    assert named <= messages_in_code()


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md"])
def test_each_file_that_the_documents_link_to_exists(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text)
    spans = re.findall(r"`((?:scripts|editors|tests|\.ci|grammars)/[\w./-]+)`", text)
    assert [link for link in [*links, *spans] if not (ROOT / link).exists()] == []
