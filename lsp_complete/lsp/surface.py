"""Where suggestions appear: ghost text, the completion menu, or both. Pure; clients as data."""

from __future__ import annotations

GHOST_CLIENTS = ("visual studio code", "vscode", "vscodium", "code-server", "cursor", "neovim", "lsp-mode", "emacs lsp-mode")
"""Clients with ghost text whatever capability they declare (lsp-mode declares none)."""

MENU_CLIENTS = ("helix", "eglot", "kate", "sublime", "zed")
"""Clients that show completion menus only."""


def choose(setting: str, client: str, declares_inline: bool) -> str:
    """ "ghost" | "menu" | "both". An unknown client without the capability gets both."""
    if setting in ("ghost", "menu", "both"):
        return setting
    name = client.lower()
    if any(known in name for known in MENU_CLIENTS) and not declares_inline:
        return "menu"
    if declares_inline or any(known in name for known in GHOST_CLIENTS):
        return "ghost"
    return "both"
