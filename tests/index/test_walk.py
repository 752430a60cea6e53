"""Which files may be read: ignores as git's, secrets by name, binaries and generated files by content."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from lsp_complete.index.secrets import is_secret
from lsp_complete.index.walk import Guard, Rules, walk, worth_indexing


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def listed(root: Path, rules: Rules | None = None, excludes: Path | None = None) -> list[str]:
    guard = Guard([root], rules, excludes or root / "no-such-file")
    return sorted(Path(entry.path).relative_to(root).as_posix() for entry in walk(guard))


SECRET = [
    ".env", ".env.local", ".ENV.production", ".envrc", "prod.env", "server.pem", "tls.key", "id_rsa", "id_ed25519", "id_ed25519.pub",
    "id_anything.txt", "credentials", "credentials.json", "aws-credentials.yml", "secrets.yaml", "my_secrets.toml", ".netrc",
    ".npmrc", ".pypirc", ".git-credentials", "service-account-prod.json", "terraform.tfstate", "x.tfvars", "store.jks",
    "deploy_rsa", "passwords.txt", "home/.ssh/config.py", "a/.aws/x.py",
]  # fmt: skip
HARMLESS = [
    "id_ranges.py", "credentials.py", "secrets_manager.go", "environment.py", "env.py", "keyboard.ts", "identity.txt", "tokens.rs",
    "password_form.tsx", "monkey.py", "README.md",
]  # fmt: skip


@pytest.mark.parametrize("name", SECRET)
def test_secret_names(name: str) -> None:
    assert is_secret(f"/somewhere/{name}")


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_names(name: str) -> None:
    assert not is_secret(f"/somewhere/{name}")


def test_patterns_of_the_user_add_and_bad_ones_do_no_harm() -> None:
    assert is_secret("/w/vault/x.py", ["vault/", "!!"])
    assert not is_secret("/w/lib/x.py", ["vault/"])


def test_nested_ignores_are_gits(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            ".git/info/exclude": "local_only.py\n",
            ".gitignore": "build/\n*.gen.py\n!keep.gen.py\n/top.py\n",
            "a.py": "x", "top.py": "x", "sub/top.py": "x", "build/b.py": "x", "z.gen.py": "x", "keep.gen.py": "x", "local_only.py": "x",
            "sub/.gitignore": "own.py\n!/z.gen.py\n", "sub/own.py": "x", "sub/z.gen.py": "x", "sub/deep/own.py": "x",
            "sub/build/c.py": "x", "other/own.py": "x", "node_modules/m.js": "x", "env/pyvenv.cfg": "", "env/lib/p.py": "x",
        },
    )  # fmt: skip
    found = listed(tmp_path)
    assert found == ["a.py", "keep.gen.py", "other/own.py", "sub/top.py", "sub/z.gen.py"]


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_same_files_as_git(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            ".gitignore": "*.log.py\n**/tmp/\ndoc/*.py\n!doc/a.py\nfoo/**/bar.py\n\\#odd.py\n",
            "x.log.py": "x", "a/tmp/b.py": "x", "doc/a.py": "x", "doc/b.py": "x", "foo/q/bar.py": "x", "foo/bar.py": "x",
            "#odd.py": "x", "a/ok.py": "x", "a/.gitignore": "/only.py\n", "a/only.py": "x", "a/b/only.py": "x",
        },
    )  # fmt: skip
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    done = subprocess.run(
        ["git", "-C", str(tmp_path), "ls-files"], check=True, capture_output=True, text=True
    )
    assert listed(tmp_path) == sorted(name for name in done.stdout.splitlines() if name.endswith(".py"))


def test_global_excludes_and_settings_only_leave_out_more(tmp_path: Path) -> None:
    put(tmp_path, {"root/a.py": "x", "root/b.py": "x", "root/c/d.py": "x", "root/e.py": "x", "excludes": "b.py\n"})
    root = tmp_path / "root"
    assert listed(root, Rules(exclude=("c/", "!b.py")), tmp_path / "excludes") == ["a.py", "e.py"]


def test_an_ignored_folder_opened_as_workspace_is_read(tmp_path: Path) -> None:
    put(tmp_path, {".git/HEAD": "x", ".gitignore": "vendor/\nb.py\n", "vendor/lib/a.py": "x", "vendor/lib/b.py": "x"})
    assert listed(tmp_path / "vendor" / "lib") == ["a.py", "b.py"]


def test_a_subfolder_opened_as_workspace_obeys_the_repository(tmp_path: Path) -> None:
    put(tmp_path, {".git/HEAD": "x", ".gitignore": "b.py\n", "lib/a.py": "x", "lib/b.py": "x"})
    assert listed(tmp_path / "lib") == ["a.py"]


def test_size_kind_secrets_and_number(tmp_path: Path) -> None:
    put(tmp_path, {"big.py": "x" * 2000, "a.py": "x", "b.py": "x", ".env.py": "x", "data.json": "{}", "x.min.js": "x", "e.py": ""})
    assert listed(tmp_path, Rules(max_bytes=1000)) == ["a.py", "b.py"]
    assert len(listed(tmp_path, Rules(max_files=1))) == 1


def test_links_are_not_followed(tmp_path: Path) -> None:
    put(tmp_path, {"root/a.py": "x", "outside/secret.py": "x"})
    root = tmp_path / "root"
    (root / "link.py").symlink_to(tmp_path / "outside" / "secret.py")
    (root / "folder").symlink_to(tmp_path / "outside")
    assert listed(root) == ["a.py"]
    guard = Guard([root], None, root / "none")
    assert not guard.readable(str(root / "link.py"))
    assert not guard.readable(str(root / "folder" / "secret.py"))
    assert not guard.readable(str(root / ".." / "outside" / "secret.py"))
    assert guard.readable(str(root / "a.py"))


def test_several_roots_and_nested_ones(tmp_path: Path) -> None:
    put(tmp_path, {"one/a.py": "x", "one/in/b.py": "x", "two/c.py": "x"})
    guard = Guard([tmp_path / "one", tmp_path / "two", tmp_path / "one" / "in"], None, tmp_path / "none")
    assert [Path(entry.path).name for entry in walk(guard)] == ["a.py", "b.py", "c.py"]


def test_changed_ignores_count_after_forget(tmp_path: Path) -> None:
    put(tmp_path, {"a.py": "x"})
    guard = Guard([tmp_path], None, tmp_path / "none")
    assert guard.readable(str(tmp_path / "a.py"))
    put(tmp_path, {".gitignore": "a.py\n"})
    guard.forget()
    assert not guard.readable(str(tmp_path / "a.py"))


@pytest.mark.parametrize(
    ("data", "good"),
    [
        (b"def f():\n    pass\n", True),
        (b"# @generated by tool\nx = 1\n", False),
        (b"// Code generated by protoc. DO NOT EDIT.\n", False),
        (b"\0\1\2", False),
        (b"   \n", False),
        (b"var a=1;" * 200, False),
    ],
)
def test_content(data: bytes, good: bool) -> None:
    assert worth_indexing(data) is good
