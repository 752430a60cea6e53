"""The wheel holds all it needs: built here, installed outside the clone, and asked what it finds.

The installation's dependencies come from the running environment by a path file, so nothing is compiled or fetched.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from lsp_complete import __version__

pytest.importorskip("hatchling", reason="the packaging tests need `.[test]`")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent


def run(*words: str | Path, cwd: Path | None = None, text: str | None = None) -> str:
    """Run in an environment without traces of this checkout; gives standard output."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LSP_COMPLETE_")
    env = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=env,
        input=text,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def build(source: Path, target: Path) -> Path:
    run(
        sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", target, source
    )  # fmt: skip
    (wheel,) = target.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment with the wheel, non-editable, outside the clone."""
    folder = tmp_path_factory.mktemp("outside") / "venv"
    venv.create(folder, with_pip=True, symlinks=os.name != "nt")
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    run(scripts / "python", "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel)
    site = Path(
        run(scripts / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    )
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return scripts


def shipped_files() -> set[str]:
    """What the wheel must hold: every file of the package, and the grammars under their place in it."""
    found: set[str] = set()
    for top, prefix in (("lsp_complete", "lsp_complete"), ("grammars", "lsp_complete/_grammars")):
        for path in (ROOT / top).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                found.add(f"{prefix}/{path.relative_to(ROOT / top).as_posix()}")
    return found


def test_the_wheel_holds_the_package_the_data_and_the_grammars(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert shipped_files() - names == set()
    assert {name.split("/")[0] for name in names} == {"lsp_complete", f"lsp_complete-{__version__}.dist-info"}
    assert "lsp_complete/_grammars/python/facts.toml" in names


def test_the_metadata_is_what_installers_read(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    info = f"lsp_complete-{__version__}.dist-info"
    meta = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
    assert (meta["Name"], meta["Version"], meta["Requires-Python"]) == ("lsp-complete", __version__, ">=3.10")
    assert meta["License-Expression"] == "Apache-2.0"
    assert "LICENSE" in meta.get_all("License-File", [])
    requirements = " ".join(meta.get_all("Requires-Dist", []))
    assert all(name in requirements for name in ("pygls", "llama-cpp-python", "tree-sitter-python"))
    assert "lsp-complete = lsp_complete.cli:main" in archive.read(f"{info}/entry_points.txt").decode()


def test_the_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, cwd=ROOT)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as source:
        source.extractall(tmp_path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # type: ignore[arg-type]
    again = build(tmp_path / f"lsp_complete-{__version__}", tmp_path / "wheel")
    assert sorted(zipfile.ZipFile(again).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())


def test_the_installed_command_works(installed: Path, tmp_path: Path) -> None:
    found = json.loads(run(installed / "lsp-complete", "version", "--json", cwd=tmp_path))
    assert found["lsp-complete"] == __version__
    shown = run(installed / "lsp-complete", "config", "--json", cwd=tmp_path)
    assert json.loads(shown)["settings"]["suggest.max_lines"]["value"] > 0
    assert "qwen2.5-coder-0.5b" in run(installed / "lsp-complete", "models", "list", cwd=tmp_path)


def test_the_installed_package_finds_its_data(installed: Path, tmp_path: Path) -> None:
    code = """
import json, pathlib, lsp_complete
from lsp_complete.grammar_paths import grammars_dir
from lsp_complete.models.catalogue import load_catalogue
from lsp_complete.syntax import languages
print(json.dumps({
    "package": str(pathlib.Path(lsp_complete.__file__).parent),
    "grammars": str(grammars_dir()),
    "languages": sorted(languages.all_languages()),
    "problems": languages.problems(),
    "models": len(load_catalogue().models),
}))
"""
    found = json.loads(run(installed / "python", "-c", code, cwd=tmp_path))
    package = Path(found["package"])
    assert package.is_relative_to(installed.parent.resolve()) and not package.is_relative_to(ROOT)
    assert found["grammars"] == str(package / "_grammars")
    assert found["languages"] == sorted(path.parent.name for path in (ROOT / "grammars").glob("*/facts.toml"))
    assert found["problems"] == {}
    assert found["models"] >= 10


def test_the_installed_server_speaks(installed: Path, tmp_path: Path) -> None:
    body = '{"jsonrpc":"2.0","method":"exit"}'
    done = subprocess.run(
        [str(installed / "lsp-complete")],
        input=f"Content-Length: {len(body)}\r\n\r\n{body}".encode(),
        capture_output=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()


@pytest.mark.skipif(os.name == "nt", reason="the scripts are for a POSIX shell")
@pytest.mark.parametrize("name", ["scripts/demo", "scripts/test", "scripts/lib.sh", ".ci/run"])
def test_scripts_are_valid_and_can_be_run(name: str) -> None:
    run("bash", "-n", ROOT / name)
    assert name.endswith(".sh") or os.access(ROOT / name, os.X_OK)


def in_library(
    commands: str, *, text: str = "", path: str = os.environ["PATH"]
) -> subprocess.CompletedProcess[str]:
    script = f"set -euo pipefail; source '{ROOT}/scripts/lib.sh'; PATH='{path}'; {commands}"
    env = {key: value for key, value in os.environ.items() if key not in ("CXX", "PYTHON")}
    return subprocess.run(
        ["bash", "-c", script, "scripts/demo"],
        input=text,
        capture_output=True,
        text=True,
        env=env,
        timeout=60,
        check=False,
    )


@pytest.mark.skipif(os.name == "nt", reason="the scripts are for a POSIX shell")
def test_scripts_name_the_missing_package(tmp_path: Path) -> None:
    for commands, package in (
        ("need_compiler", "apt-get install g++"),
        ("find_python", "apt-get install python3 python3-venv"),
    ):
        done = in_library(commands, path=str(tmp_path))
        assert done.returncode == 1
        assert package in done.stderr
    broken = tmp_path / "python-without-venv"
    broken.write_text(
        '#!/bin/sh\ncase "$2" in *version_info*) echo python3.11-venv;; *) exit 1;; esac\n', encoding="utf-8"
    )
    broken.chmod(0o755)
    done = in_library(f"need_venv '{broken}'")
    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr and "python3.11-venv" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="the scripts are for a POSIX shell")
def test_scripts_show_the_compilers_progress() -> None:
    log = "Collecting pygls==2.1.1\n  [1/193] /usr/bin/g++ -o a\n  [193/193] /usr/bin/g++ -o z\nlast line without an end"
    done = in_library("progress", text=log)
    assert done.returncode == 0, done.stderr
    assert "collecting pygls" in done.stdout
    for line, shown in (
        ("  [120/193] g++", "step 120 of 193"),
        ("[ 12%] Building CXX", "12 %"),
        ("[2/3] stage", ""),
    ):
        assert shown in in_library("progress", text=line + "\n").stdout
