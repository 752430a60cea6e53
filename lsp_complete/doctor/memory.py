"""`lsp-complete doctor --memory`: the memory of models against what is free."""

from __future__ import annotations

import json
from dataclasses import asdict

from lsp_complete.errors import MemoryPlanError
from lsp_complete.models.catalogue import CatalogueModel, load_catalogue
from lsp_complete.models.fit import MemoryRow, smaller_models, table
from lsp_complete.models.free import free_memory
from lsp_complete.models.installed import list_installed
from lsp_complete.models.memory import MemoryPlan, megabytes, plan, reserve


def run_memory(name: str, as_json: bool) -> int:
    """Print the table of one model, or of all that are here (else the default). Raises ModelError for an unknown name."""
    free = free_memory()
    models = _models(name)
    if as_json:
        print(
            json.dumps(
                {
                    "free": free,
                    "reserve": reserve(free),
                    "models": [_as_dict(model, free) for model in models],
                },
                indent=2,
            )
        )
        return 0
    print(
        f"{megabytes(free)} of memory are free; {megabytes(reserve(free))} of it are left to other programs."
    )
    for model in models:
        print(f"\n{model.short_name} ({model.title}), weights {megabytes(model.file.size)}")
        print(render_table(table(model, free)))
        print(_choice(model, free))
    return 0


def _models(name: str) -> list[CatalogueModel]:
    if name:
        return [load_catalogue().get(name)]
    return [item.model for item in list_installed() if item.model is not None] or [
        load_catalogue().default_model
    ]


def render_table(rows: tuple[MemoryRow, ...]) -> str:
    """Contexts down, KV types across: what all together takes, and ✗ where it does not fit."""
    kinds = tuple(dict.fromkeys(row.kv_type for row in rows))
    lines = ["  context   " + "".join(f"{kind:>16}" for kind in kinds)]
    for context in dict.fromkeys(row.context for row in rows):
        cells = [next(row for row in rows if (row.context, row.kv_type) == (context, kind)) for kind in kinds]
        lines.append(
            f"  {context:>7,}   "
            + "".join(f"{megabytes(row.total) + ('  ' if row.fits else ' ✗'):>16}" for row in cells)
        )
    return "\n".join(lines)


def _plan(model: CatalogueModel, free: int) -> MemoryPlan | str:
    try:
        return plan(model.short_name, model.shape, model.file.size, free, smaller=smaller_models(model))
    except MemoryPlanError as error:
        return str(error)


def _choice(model: CatalogueModel, free: int) -> str:
    chosen = _plan(model, free)
    if isinstance(chosen, str):
        return f"  {chosen}"
    text = f"  chosen: context {chosen.context:,}, {chosen.slots} slots, KV {chosen.kv_type}, {megabytes(chosen.need.total)}"
    return text + (f" ({chosen.reduced})" if chosen.reduced else "")


def _as_dict(model: CatalogueModel, free: int) -> dict[str, object]:
    chosen = _plan(model, free)
    return {
        "model": model.name,
        "rows": [asdict(row) for row in table(model, free)],
        "plan": asdict(chosen) if isinstance(chosen, MemoryPlan) else None,
        "refusal": chosen if isinstance(chosen, str) else None,
    }
