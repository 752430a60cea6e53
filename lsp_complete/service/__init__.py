"""The join: a request from snapshot to answer. Everything below is used by passing values and callables."""

from .core import Service
from .types import Answer, Query, Suggestion

__all__ = ["Answer", "Query", "Service", "Suggestion"]
