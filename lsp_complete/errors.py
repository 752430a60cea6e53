"""The whole error hierarchy. Each message says what happened, why, and what to do.

Pure layers never raise on a user's text; what is raised here reaches a person or a log, so it
never contains source code.
"""

from __future__ import annotations


class LspCompleteError(Exception):
    """Base of every error that this package raises on purpose."""


class ConfigError(LspCompleteError):
    """A setting is unknown or has a wrong value; the default is used instead."""


class ModelError(LspCompleteError):
    """A model file is missing, damaged, or cannot be used here."""


class DownloadError(LspCompleteError):
    """A model could not be fetched or did not match its digest."""


class MemoryPlanError(LspCompleteError):
    """Nothing fits the free memory; the message carries the numbers and the next smaller choice."""


class EngineUnavailable(LspCompleteError):
    """The engine is not there (starting, restarting, gone). The server answers "no suggestion"."""


class ProtocolError(LspCompleteError):
    """A frame on the engine socket is malformed, too large, or of another version."""


class RequestFailed(LspCompleteError):
    """The engine refused or failed one request; the engine itself goes on."""


class PromptCold(RequestFailed):
    """More of the prompt would have to be evaluated than the request allows; nothing was evaluated."""
