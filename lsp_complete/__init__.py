"""lsp_complete: local code completion as a language server with an embedded model."""

__version__ = "0.1.0"
