"""Whether a file is the module that an import names, judged by the words of both. Pure.

Strategy: imports name modules in many ways (`..pkg.mod`, `./pkg/mod.js`, `crate::pkg::mod`, `<pkg/mod.h>`), files lie in folders; both
are sequences of names, and what counts is how many agree from the end. No language is named here.
"""

from __future__ import annotations


def folder(path: str) -> str:
    """The folder of a path."""
    return path.rpartition("/")[0]


def shared_folders(one: str, other: str) -> int:
    """How many leading folders two paths share."""
    count = 0
    for a, b in zip(one.split("/")[:-1], other.split("/")[:-1], strict=False):
        if a != b:
            break
        count += 1
    return count


def module_parts(module: str) -> list[str]:
    """The names in a module as written: `..pkg.mod`, `./pkg/mod.js`, `crate::pkg::mod`, `<pkg/mod.h>`."""
    bare = module.strip("\"'<>`; ")
    for ending in (".h", ".hpp", ".js", ".ts", ".tsx", ".mjs", ".jsx", ".cuh"):
        bare = bare.removesuffix(ending)
    for separator in ("::", "\\", "/"):
        bare = bare.replace(separator, ".")
    return [name for name in bare.split(".") if name and name not in ("crate", "self", "super", "*", "@")]


def path_parts(path: str) -> list[str]:
    """The names of a path as a module: without its ending; an index file stands for its folder."""
    names = path.split("/")
    stem = names[-1].split(".")[0]
    return names[:-1] if stem in ("__init__", "index", "mod") and len(names) > 1 else [*names[:-1], stem]


def matches(path: str, module: str, from_path: str) -> int:
    """How well a file fits a module as an import writes it: names that agree from the end; 0 if the last does not.

    A relative import that names nothing (`from . import x`) fits every file of its folder.
    """
    wanted, have = module_parts(module), path_parts(path)
    if not wanted:
        return 1 if folder(path) == folder(from_path) else 0
    count = 0
    for a, b in zip(reversed(wanted), reversed(have), strict=False):
        if a != b:
            break
        count += 1
    relative = module.strip("\"'<>` ").startswith(".")
    if relative and count and shared_folders(path, from_path) == 0 and "/" in from_path:
        return 0
    return count


def in_package(path: str, module: str) -> bool:
    """Whether the file lies in the package that the import names (the name may be passed on from inside it)."""
    wanted = module_parts(module)
    if module.startswith("."):
        return True
    folders = path.split("/")[:-1]
    return bool(wanted) and (wanted[-1] in folders or wanted[0] in folders)
