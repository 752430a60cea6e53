"""What is wanted at a place, in which tier, and how it reads. The article's section 5.1 and its tail bias stand here."""

from __future__ import annotations

import pytest

from lsp_complete.context.budget import fit
from lsp_complete.context.symbol import Chunk
from lsp_complete.context.tiers import gather
from tests.context.helpers import Project, place, words

CLIENT = '''"""Clients."""
from .net import Socket


class Client:
    """Talks to the server. And more."""

    limit: int = 3

    def __init__(self, host: str, port: int = 80) -> None:
        self.socket = Socket(host)
        self.closed = False

    def fetch(self, path: str, *, timeout: float = 1.0) -> Response:
        """Fetch one page."""
        return self.socket.send(path)

    def close(self) -> None:
        self.closed = True

    def _private(self) -> None:
        pass


class Response:
    status: int

    def json(self) -> dict: ...


def make_client(url: str) -> Client:
    """Make one."""
    return Client(url)
'''
NET = "class Socket:\n    def __init__(self, host): ...\n    def send(self, data: bytes) -> bytes: ...\n"
PROJECT = Project({"app/client.py": CLIENT, "app/net.py": NET, "other/client.py": "class Client:\n    def wrong(self): ...\n"})


def chunks(text: str, project: Project = PROJECT, **how: object) -> dict[str, Chunk]:
    return {c.key: c for c in gather(place(text, **how), project.lookups())}  # type: ignore[arg-type]


def test_the_callee_at_the_cursor_is_a_with_its_signature() -> None:
    found = chunks("from .client import make_client\n\n\ndef run():\n    c = make_client(‸\n")
    chunk = found["app/client.py#make_client"]
    assert chunk.tier == "A" and chunk.forms[0].startswith("def make_client(url: str) -> Client:")
    assert all("url: str" in form for form in chunk.forms)


def test_a_class_is_shown_by_constructor_members_and_names() -> None:
    chunk = chunks("from .client import Client\n\nc = Client(‸\n")["app/client.py#Client"]
    longest, second, shortest = chunk.forms[0], chunk.forms[1], chunk.forms[-1]
    assert "def __init__(self, host: str, port: int = 80) -> None:" in longest and "self.socket = Socket(host)" in longest
    assert "def fetch(self, path: str, *, timeout: float = 1.0) -> Response: ...  # Fetch one page." in longest
    assert "def _private" not in longest and "Talks to the server." in longest
    assert "# limit, fetch, close, _private" in second or ("# fetch, close, _private" in second and shortest == "class Client: ...  # Talks to the server.\n")


@pytest.mark.parametrize(
    "text",
    [
        "from .client import Client\n\ndef f(c: Client):\n    c.‸\n",
        "from .client import Client\n\ndef f():\n    c = Client('x')\n    c.‸\n",
        "from .client import make_client\n\ndef f():\n    c = make_client('x')\n    c.‸\n",
        "from . import client\n\ndef f():\n    c = client.make_client('x')\n    c.‸\n",
        "from .client import Client\n\nclass App:\n    def __init__(self, c: Client):\n        self.c = c\n\n    def f(self):\n        self.c.‸\n",
        "from .client import Client\n\nclass App:\n    c: Client\n\n    def f(self):\n        self.c.‸\n",
        "from .client import Client\n\nclass App(Client):\n    def f(self):\n        super().‸\n",
    ],
)
def test_the_object_at_the_cursor_is_known_by_its_class(text: str) -> None:
    chunk = chunks(text)["app/client.py#Client"]
    assert "def fetch(" in chunk.forms[0]


def test_attributes_are_followed() -> None:
    found = chunks("from .client import Client\n\ndef f(c: Client):\n    c.socket.‸\n")
    assert found["app/net.py#Socket"].tier == "A" and "def send(self, data: bytes) -> bytes" in found["app/net.py#Socket"].forms[0]


def test_the_import_decides_between_files_of_one_name() -> None:
    assert "other/client.py#Client" not in chunks("from .client import Client\n\nc = Client(‸\n")
    found = chunks("from other.client import Client\n\nc = Client(‸\n")
    assert "other/client.py#Client" in found and "app/client.py#Client" not in found


def test_circular_guesses_end() -> None:
    chunks("def f():\n    a = b.make()\n    b = a.make()\n    a.‸\n")
    chunks("class A(B): ...\nclass B(A): ...\nx = A()\nx.‸\n")


PRUNED = '''import os


def read_settings(path: str, *, strict: bool = True) -> dict[str, str]:
    """Read the settings file."""
    lines = open(path).read().splitlines()
    return dict(line.split("=", 1) for line in lines if strict or "=" in line)


def check_user(name: str, roles: list[str], deadline: float) -> bool:
    """Whether a user may log in before a deadline."""
    for role in roles:
        if role == name:
            return True
    return deadline > 0


''' + "".join(f"def filler_{n}(a, b):\n    return a + {n}\n\n\n" for n in range(40)) + '''def login(name):
    settings = read_settings("x")
    if check_user(‸):
        return settings


def main():
    login("me")
'''


def test_section_5_1_callees_outside_the_window_keep_their_signatures() -> None:
    """Completing inside a helper whose callees were pruned: their signatures and first lines must still be in the prompt, however
    small the budget; unrelated siblings need not."""
    found = gather(place(PRUNED, lines=40), Project({}).lookups())
    for budget in (400, 60, 1):
        text = "".join(one.text for one in fit(found, budget, words).chosen)
        assert "def check_user(name: str, roles: list[str], deadline: float) -> bool:" in text
        assert "def read_settings(path: str, *, strict: bool = True) -> dict[str, str]:" in text
        assert "filler_" not in text
    wide = "".join(one.text for one in fit(found, 400, words).chosen)
    assert '"""Whether a user may log in before a deadline."""' in wide and "for role in roles:" in wide


def test_section_5_1_callers_keep_theirs_too() -> None:
    text = "def outer(a, b):\n    x = 1\n    inner(a, b)\n\n\n" + "\n" * 60 + "def inner(a, b):\n    ‸pass\n"
    found = chunks(text)
    assert found["app/main.py#outer"].tier == "A" and "def outer(a, b):" in found["app/main.py#outer"].forms[-1]


def test_tail_bias_a_changed_signature_at_the_top_is_shown_at_its_place() -> None:
    before = gather(place(PRUNED, lines=40), Project({}).lookups())
    changed = PRUNED.replace("deadline: float)", "deadline: float, region: str)")
    after = gather(place(changed, lines=40), Project({}).lookups())
    assert "region: str" not in "".join(c.forms[-1] for c in before)
    own = sorted((c for c in after if c.own), key=lambda c: c.line)
    text = "".join(c.forms[0] for c in own)
    assert "region: str" in text and text.index("def read_settings") < text.index("def check_user")


def test_what_the_window_shows_is_not_said_twice() -> None:
    found = chunks("def helper(a):\n    return a\n\n\ndef f():\n    helper(‸\n", visible=(0, 10))
    assert found == {}


def test_imports_above_the_window_that_are_used_near() -> None:
    text = "import os\nfrom a import used, more\nfrom b import unused\n" + "\n" * 50 + "def f():\n    used(‸\n"
    own = [c for c in chunks(text).values() if c.own]
    assert [c.forms[0] for c in own] == ["from a import used, more\n"]


def test_the_same_inputs_give_the_same_chunks() -> None:
    text = "from .client import Client, make_client\n\ndef f(c: Client):\n    make_client(c.‸\n"
    assert gather(place(text), PROJECT.lookups()) == gather(place(text), PROJECT.lookups())


def test_without_cross_file_only_this_file() -> None:
    found = gather(place("from .client import Client\n" + "\n" * 40 + "c = Client(‸\n"), PROJECT.lookups(), cross_file=False)
    assert found and all(chunk.own for chunk in found)


@pytest.mark.parametrize(
    ("path", "text", "files", "wanted"),
    [
        (
            "src/app.ts", 'import { Box } from "./box";\n\nfunction f(b: Box) {\n  b.‸\n}\n',
            {"src/box.ts": "export class Box {\n  constructor(private size: number) {}\n  add(item: string): void { this.n = 1; }\n}\n"},
            "add(item: string): void { ... }",
        ),
        (
            "src/app.go", "package app\n\nfunc f(b *Box) {\n\tb.‸\n}\n",
            {"src/box.go": "package app\n\ntype Box struct {\n\tSize int\n}\n\nfunc (b *Box) Add(item string) error {\n\treturn nil\n}\n"},
            "func (b *Box) Add(item string) error { ... }",
        ),
        (
            "src/main.rs", "use crate::boxes::Crate;\n\nfn f(c: &Crate) {\n    c.‸\n}\n",
            {"src/boxes.rs": "pub struct Crate { size: u8 }\n\nimpl Crate {\n    pub fn add(&self, item: u8) -> u8 { item }\n}\n"},
            "fn add(&self, item: u8) -> u8",
        ),
    ],
)  # fmt: skip
def test_other_languages(path: str, text: str, files: dict[str, str], wanted: str) -> None:
    found = gather(place(text, path), Project(files).lookups())
    assert any(wanted in chunk.forms[0] for chunk in found), [c.forms[0] for c in found]
