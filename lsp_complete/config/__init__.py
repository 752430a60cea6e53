"""Settings: one typed model, its sources, and how it is shown. See settings.py for the names."""

from lsp_complete.config.describe import as_json, as_text, editor_properties, markdown, schema
from lsp_complete.config.files import APP, FILE_NAME, WORKSPACE_FILES, editor_source, gather, user_file
from lsp_complete.config.load import OTHER_VARIABLES, Loaded, Source, Sources, load
from lsp_complete.config.options import OPTIONS, PREFIX, Option, value_of
from lsp_complete.config.settings import (
    ContextSettings,
    DashboardSettings,
    EngineSettings,
    IndexSettings,
    LogSettings,
    RecordSettings,
    Settings,
    SuggestSettings,
)

__all__ = [
    "APP",
    "FILE_NAME",
    "OPTIONS",
    "OTHER_VARIABLES",
    "PREFIX",
    "WORKSPACE_FILES",
    "ContextSettings",
    "DashboardSettings",
    "EngineSettings",
    "IndexSettings",
    "Loaded",
    "LogSettings",
    "Option",
    "RecordSettings",
    "Settings",
    "Source",
    "Sources",
    "SuggestSettings",
    "as_json",
    "as_text",
    "editor_properties",
    "editor_source",
    "gather",
    "load",
    "markdown",
    "schema",
    "user_file",
    "value_of",
]
