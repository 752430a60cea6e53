"""Files whose text is never read: keys, credentials, environments. Decided by name alone, before anything is opened.

Rules:
- A name that only might be a secret (`id_…`, `credentials…`, `secrets…`) is one unless it is program text: `id_ranges.py` is a
  module, `id_ed25519` a key.
- A user's own patterns (as in .gitignore) come on top and can only add.
- A file inside a folder of keys (`.ssh`, `.gnupg`, `.aws`, …) is secret whatever its name.
- Names are compared without case. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import PurePath

from pathspec import GitIgnoreSpec

from lsp_complete.syntax.languages import LanguageFacts, language_for

FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".kube", ".docker", ".password-store", ".vault"})
_ALWAYS = re.compile(
    r"""\.env.*|\.?envrc|.*\.env
    |.*\.(?:pem|key|p12|pfx|p8|jks|keystore|kdbx?|ppk|asc|gpg|pgp|ovpn|tfvars|tfstate|crt|cer|der|secrets?|token|credentials?)
    |.*\.(?:tfvars|tfstate)\..*
    |(?:\.|_)netrc|\.pgpass|\.my\.cnf|\.npmrc|\.yarnrc(?:\.yml)?|\.pypirc|\.htpasswd|\.git-credentials|\.dockercfg
    |\.boto|\.s3cfg|\.vault-token|\.terraformrc|\.rediscli_auth|\.bash_history|\.zsh_history|\.python_history
    |authorized_keys|known_hosts|kubeconfig|.*\.kubeconfig
    |(?:service[-_]?account|client[-_]?secret|google[-_]credentials|gcp[-_]key|firebase[-_]adminsdk).*\.json""",
    re.VERBOSE | re.IGNORECASE,
)
_UNLESS_PROGRAM = re.compile(
    r"""id_.+|.*[-_.]?(?:credentials?|secrets?|passwords?|passwd|apikeys?|api[-_]keys?)(?:[-_.].*)?|.*_(?:rsa|dsa|ecdsa|ed25519)""",
    re.VERBOSE | re.IGNORECASE,
)
_DATA = frozenset({"json", "yaml", "toml", "html", "css", "sql", "bash"})


@lru_cache(maxsize=4096)
def _by_name(name: str) -> LanguageFacts | None:
    facts = language_for("", name)
    return None if facts is None or facts.key in _DATA else facts


def program_language(path: str) -> LanguageFacts | None:
    """The language of a file of program text; None for data, markup and unknown files."""
    return _by_name(PurePath(path).name)


def is_secret(path: str, extra: Iterable[str] = ()) -> bool:
    """Whether the file at `path` must never be read. `extra`: further patterns as in .gitignore."""
    pure = PurePath(path.replace("\\", "/"))
    name = pure.name
    if _ALWAYS.fullmatch(name) or any(part.lower() in FOLDERS for part in pure.parts[:-1]):
        return True
    if _UNLESS_PROGRAM.fullmatch(name) and program_language(name) is None:
        return True
    patterns = tuple(extra)
    return bool(patterns) and _spec(patterns).match_file(str(pure).lstrip("/"))


@lru_cache(maxsize=16)
def _spec(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    """The patterns; those that are none are left out."""
    good = []
    for pattern in patterns:
        try:
            GitIgnoreSpec.from_lines([pattern])
        except ValueError:
            continue
        good.append(pattern)
    return GitIgnoreSpec.from_lines(good)
