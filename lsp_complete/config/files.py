"""Where settings come from on this machine: the user's file, workspace files, the editor, the environment.

Rules:
- A workspace's file is a stranger's: only a regular file of at most 64 KB is read.
- A file that cannot be read or parsed becomes a `Source` with a problem, never an exception.
- `~` is expanded here, in the settings that are paths, so that whoever opens the path need not think of it.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

import platformdirs

from lsp_complete.config.load import Kind, Source, Sources, unwrap
from lsp_complete.config.options import OPTIONS, PREFIX

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

APP = "lsp-complete"
FILE_NAME = "lsp-complete.toml"
WORKSPACE_FILES = (FILE_NAME, "." + FILE_NAME)
MAX_FILE_BYTES = 64 * 1024


def user_file(env: Mapping[str, str] | None = None) -> Path:
    """The user's own settings file, there or not. LSP_COMPLETE_CONFIG names another one."""
    chosen = (os.environ if env is None else env).get("LSP_COMPLETE_CONFIG", "")
    if chosen:
        return Path(os.path.expanduser(chosen))
    return Path(platformdirs.user_config_dir(APP, appauthor=False)) / FILE_NAME


def gather(
    roots: Iterable[Path] = (),
    editor: Sequence[object] = (),
    env: Mapping[str, str] | None = None,
    own_file: Path | None = None,
) -> Sources:
    """Read every source.

    roots: workspace folders, later ones winning. editor: initialization options, then the settings of each
    didChangeConfiguration, as received or as `editor_source` made them. env and own_file stand in for this process's own in tests.
    """
    env = os.environ if env is None else env
    own = own_file or user_file(env)
    workspace = [
        read_file(root / name, "workspace")
        for root in roots
        for name in WORKSPACE_FILES
        if not _same(root / name, own)
    ]
    own_variables = {key: value for key, value in env.items() if key.startswith(PREFIX)}
    return Sources(
        user=tuple(filter(None, [read_file(own, "user")])),
        workspace=tuple(filter(None, workspace)),
        editor=tuple(filter(None, map(editor_source, editor))),
        environment=(_expanded(Source("environment", "environment", own_variables)),),
    )


def editor_source(raw: object) -> Source | None:
    """What an editor sent as a source; None if it is no table of settings (some send null or a list)."""
    if isinstance(raw, Source):
        return raw
    if not isinstance(raw, Mapping):
        return None
    return Source("editor", "the editor's settings", unwrap({str(key): value for key, value in raw.items()}))


def read_file(path: Path, kind: Kind) -> Source | None:
    """A settings file as a source; None if there is none."""
    trusted = kind == "user"
    try:
        data = _read(path, limit=None if trusted else MAX_FILE_BYTES)
        values = cast("dict[str, object]", tomllib.loads(data.decode("utf-8-sig")))
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return None
    except UnicodeDecodeError:
        return Source(kind, _display(path), problem="it is not UTF-8 text")
    except OSError as error:
        return Source(kind, _display(path), problem=f"it cannot be read ({error.strerror or error})")
    except (ValueError, RecursionError) as error:
        return Source(kind, _display(path), problem=f"it is not valid TOML ({error})")
    source = Source(kind, _display(path), values)
    return _expanded(source) if trusted else source


def _read(path: Path, limit: int | None) -> bytes:
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise OSError(None, "it is not a regular file")
        if limit is not None and state.st_size > limit:
            raise OSError(None, f"it is larger than {limit // 1024} KB")
        return file.read() if limit is None else file.read(limit)


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _display(path: Path) -> str:
    try:
        return "~/" + path.relative_to(Path.home()).as_posix()
    except (ValueError, RuntimeError):
        return str(path)


def _expanded(source: Source) -> Source:
    """The source with `~` expanded at the start of the settings that are paths."""
    names = {name for name, option in OPTIONS.items() if option.path}
    names |= {option.variable for option in OPTIONS.values() if option.path}
    return Source(source.kind, source.name, _expand(source.values, names), source.problem)


def _expand(values: Mapping[str, object], names: set[str], prefix: str = "") -> dict[str, object]:
    return {
        key: _expand(value, names, f"{prefix}{key}.")
        if isinstance(value, Mapping)
        else os.path.expanduser(value)
        if isinstance(value, str) and prefix + key in names
        else value
        for key, value in values.items()
    }
