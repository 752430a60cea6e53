"""`python -m lsp_complete` is the command `lsp-complete`."""

from .cli import script

if __name__ == "__main__":
    script()
