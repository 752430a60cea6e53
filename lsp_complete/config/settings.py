"""Every setting: its name, type, default, bounds, unit, meaning, and who may set it.

Strategy: one frozen model with a group per part of the program. What a setting needs beside its type (unit,
scope, sensitivity) stands beside it, so that loading, the printed table, the README and the editors'
schema all read the same lines.

Rules:
- Scope "own": taken only from the user's own file or environment. Everything that names a path, an
  endpoint or a port, records, or decides how much of the machine is used is "own".
- Scope "narrow": a workspace or an editor may only make it stricter (turn off, exclude more, do less).
- Scope "any": a workspace or an editor may set it, within the bounds given here.
- A sensitive setting is always "own".
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Scope = Literal["own", "narrow", "any"]

_ONE_LINE = r"^[^\r\n]*$"
Pattern = Annotated[str, StringConstraints(pattern=_ONE_LINE, min_length=1, max_length=300)]
"""A pattern as in .gitignore. One line: a line break could smuggle in a second pattern that takes others back."""


def _option(
    default: Any,
    description: str,
    *,
    unit: str = "",
    scope: Scope = "any",
    sensitive: bool = False,
    path: bool = False,
    ge: int | None = None,
    le: int | None = None,
    max_length: int | None = None,
    pattern: str | None = None,
) -> Any:
    """One setting. `path`: a leading `~` in the value is expanded when it is read from a source."""
    if sensitive and scope != "own":
        raise ValueError("a sensitive setting is taken from the user's own file or environment only")
    extra: dict[str, Any] = {"unit": unit, "scope": scope, "sensitive": sensitive, "path": path}
    return Field(
        default=default,
        description=description,
        json_schema_extra=extra,
        ge=ge,
        le=le,
        max_length=max_length,
        pattern=pattern,
    )


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), validate_default=True)


class EngineSettings(_Group):
    """The engine process. It is shared by all windows of a user, so no workspace may shape it."""

    threads: int = _option(
        0, "CPU threads; 0 chooses by measuring at the start", unit="threads", scope="own", ge=0, le=512
    )
    context: int = _option(
        8192,
        "Room for all slots together; lowered if memory is short",
        unit="tokens",
        scope="own",
        ge=512,
        le=1 << 20,
    )
    slots: int = _option(8, "Prompts kept ready for reuse at a time", unit="slots", scope="own", ge=1, le=64)
    kv_type: Literal["f16", "q8_0", "q4_0"] = _option(
        "q8_0", "Precision of the attention cache; q8_0 halves its memory at no cost in speed", scope="own"
    )
    v_type: Literal["same", "f16", "q8_0", "q4_0"] = _option(
        "same", "Precision of the values in the attention cache, where it shall not be that of the keys (`kv_type`)", scope="own"
    )
    gpu_layers: int = _option(
        -1, "Layers on the GPU: -1 all that fit, 0 none", unit="layers", scope="own", ge=-1, le=1000
    )
    idle_exit_s: int = _option(
        60,
        "The engine ends this long after the last editor window left",
        unit="s",
        scope="own",
        ge=0,
        le=86400,
    )
    host_cache_mb: int = _option(
        512,
        "Memory for evaluated prompts beside the slots; 0 turns it off",
        unit="MB",
        scope="own",
        ge=0,
        le=1 << 20,
    )
    disk_cache_mb: int = _option(
        2048, "Disk space for evaluated prompts; 0 turns it off", unit="MB", scope="own", ge=0, le=1 << 22
    )
    speculation: bool = _option(
        True, "Verify several expected tokens at once; changes speed, never text", scope="own"
    )
    draft_tokens: int = _option(
        7, "Most tokens verified at once, whoever proposed them; fewer are proposed where that does not pay", unit="tokens", scope="own", ge=1, le=31
    )
    draft_temperature: int = _option(
        0,
        "The draft model proposes samples at this temperature; 0 proposes its most probable token",
        unit="hundredths",
        scope="own",
        ge=0,
        le=200,
    )
    draft_least: int = _option(
        40, "The draft model stops before a token that it gives a smaller probability", unit="percent", scope="own", ge=0, le=100
    )
    draft_back_off: int = _option(
        0,
        "After so many wholly rejected proposals in a row the draft model proposes half as many tokens; 0 leaves that to measured acceptance",
        unit="proposals",
        scope="own",
        ge=0,
        le=64,
    )
    endpoint: str = _option(
        "",
        "URL of an OpenAI-style /v1/completions server to use instead of the embedded engine; "
        "your code is sent there. Empty: nothing is sent anywhere",
        scope="own",
        sensitive=True,
    )


class SuggestSettings(_Group):
    """What is offered, when, and how much of it."""

    surface: Literal["auto", "ghost", "menu", "both"] = _option(
        "auto", "Ghost text, completion menu, or both; auto goes by the editor"
    )
    multiline: Literal["auto", "always", "never"] = _option(
        "auto", "Whether a suggestion may go on past the end of the line; auto goes by the place"
    )
    level: Literal["eager", "balanced", "quiet"] = _option(
        "balanced", "How sure the model must be before a suggestion is shown unasked"
    )
    max_lines: int = _option(24, "Longest suggestion", unit="lines", ge=1, le=200)
    max_tokens: int = _option(96, "Longest suggestion", unit="tokens", ge=1, le=512)
    min_chars: int = _option(
        2,
        "Shortest suggestion shown unasked, so that `)` alone never takes the Tab key; closers on a line of their own never do",
        unit="characters",
        ge=0,
        le=100,
    )
    debounce_ms: int = _option(0, "Wait at least so long after a key before asking the model; a slow machine waits by itself", unit="ms", ge=0, le=5000)
    in_strings: bool = _option(True, "Suggest inside string literals")
    in_comments: bool = _option(True, "Suggest inside comments")
    time_limit_ms: int = _option(
        4000, "A request is answered after this long at the latest", unit="ms", ge=50, le=60000
    )
    typed_through: bool = _option(True, "Answer from the last suggestion while typing agrees with it")


class ContextSettings(_Group):
    """What the model reads. 0 means: by model and machine."""

    lines_above: int = _option(
        0, "Lines of the file above the cursor; 0 by model", unit="lines", ge=0, le=5000
    )
    lines_below: int = _option(
        0, "Lines of the file below the cursor; 0 by model", unit="lines", ge=0, le=5000
    )
    anchor_lines: int = _option(
        0,
        "Whole lines above the cursor that stand after the middle token; 0 by model",
        unit="lines",
        ge=0,
        le=200,
    )
    budget_tokens: int = _option(
        0, "Longest prompt; 0 by model and measured speed", unit="tokens", ge=0, le=1 << 17
    )
    cross_file: bool = _option(
        False,
        "Add outlines and definitions from other files of the workspace (off until `bench crossfile` has shown its gain)",
        scope="narrow",
    )
    layout: Literal["anchored", "standard"] = _option(
        "anchored", "Prompt layout; standard is healed prefix-suffix-middle, for comparison"
    )


class IndexSettings(_Group):
    """The index of the workspace's symbols."""

    enabled: bool = _option(True, "Index the workspace's symbols in the background", scope="narrow")
    exclude: tuple[Pattern, ...] = _option(
        (),
        "Further patterns to leave out, as in .gitignore; a workspace can only add to them",
        scope="narrow",
        max_length=500,
    )
    secrets: tuple[Pattern, ...] = _option(
        (),
        "Further patterns of files that are never read, beside the built-in list (.env, keys, credentials)",
        scope="own",
        sensitive=True,
    )
    max_file_kb: int = _option(512, "Larger files are not indexed", unit="KB", scope="own", ge=1, le=1 << 16)
    max_files: int = _option(20000, "Files indexed at most", unit="files", scope="own", ge=0, le=1_000_000)


class LogSettings(_Group):
    """What goes to standard error. Source code never does."""

    level: Literal["debug", "info", "warning", "error"] = _option(
        "warning", "Least level that is logged", scope="own"
    )
    requests: bool = _option(False, "One line of JSON for each request, times and counts only", scope="own")


class RecordSettings(_Group):
    """Recording of requests for replay, on this machine only."""

    enabled: bool = _option(False, "Record requests for replay", scope="own", sensitive=True)
    dir: str = _option(
        "", "Folder of the recordings; empty: the user's state folder", scope="own", sensitive=True, path=True
    )
    max_mb: int = _option(
        256, "Oldest recordings go beyond this size", unit="MB", scope="own", sensitive=True, ge=1, le=1 << 20
    )
    days: int = _option(
        30, "Recordings older than this go", unit="days", scope="own", sensitive=True, ge=1, le=3650
    )
    content: bool = _option(
        True, "Record source text too; without it only times and counts", scope="own", sensitive=True
    )


class DashboardSettings(_Group):
    """The local page of figures."""

    port: int = _option(
        0, "Loopback port of `lsp-complete dashboard`; 0 picks a free one", scope="own", sensitive=True, ge=0, le=65535
    )


class Settings(_Group):
    """All settings. Immutable; one value holds for one workspace."""

    model: str = _option(
        "auto",
        "Model to use: a catalogue name, an alias or the path of a GGUF file; "
        "auto takes the best one here that is fast enough",
        scope="own",
        sensitive=True,
        path=True,
    )
    model_dir: str = _option(
        "", "Folder of the models; empty: the user's cache folder", scope="own", sensitive=True, path=True
    )
    draft_model: str = _option(
        "",
        "Smaller model of the same vocabulary that proposes tokens; pays on a GPU or for models of 7B and more",
        scope="own",
        sensitive=True,
        path=True,
    )
    reference_model: str = _option(
        "",
        "Larger or more precise model that is asked while you rest; its suggestions replace those made of empty habits "
        "(`result`, `temp`, repeats); takes its memory beside the model's",
        scope="own",
        sensitive=True,
        path=True,
    )
    prefetch: Literal["off", "light", "full"] = _option(
        "light",
        "Work ahead while the machine is idle: none, what is cheap, or all that helps",
        scope="narrow",
    )
    first_deadline_ms: int = _option(
        800,
        "If the full prompt takes longer than this, answer from a small one first",
        unit="ms",
        ge=0,
        le=60000,
    )
    languages: dict[str, bool] = _option(
        {}, 'Language id to true or false; "*" holds for all others', scope="narrow", max_length=200
    )
    rules: str = _option(
        "", "One line of project rules that the model sees as a comment", max_length=500, pattern=_ONE_LINE
    )
    engine: EngineSettings = EngineSettings()
    suggest: SuggestSettings = SuggestSettings()
    context: ContextSettings = ContextSettings()
    index: IndexSettings = IndexSettings()
    log: LogSettings = LogSettings()
    record: RecordSettings = RecordSettings()
    dashboard: DashboardSettings = DashboardSettings()

    def language_enabled(self, language_id: str) -> bool:
        """Whether suggestions are wanted in a language; its own entry wins over `*`, and on is the default."""
        return self.languages.get(language_id, self.languages.get("*", True))
