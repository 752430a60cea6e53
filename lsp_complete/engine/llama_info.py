"""What this build of llama.cpp can use: instruction sets and accelerators. For `lsp-complete doctor`.

Rule: called in a process of its own. A library that was built for another CPU ends the process that loads it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import llama_cpp
import llama_cpp.llama_cpp as lc

from lsp_complete.engine.vocab import init_native


@dataclass(frozen=True, slots=True)
class NativeInfo:
    """version: of the Python binding. backends: `CPU`, `CUDA`, `Metal`, …, as llama.cpp names them.

    features: what the backends use, in llama.cpp's spelling (`AVX2`, `AVX512_VNNI`, `REPACK`, …).
    gpu: layers can be put on a GPU.
    """

    version: str
    backends: tuple[str, ...]
    features: tuple[str, ...]
    gpu: bool


def native_info() -> NativeInfo:
    """Load llama.cpp and ask it. Takes about 0.3 s."""
    init_native()
    text = lc.llama_print_system_info().decode("utf-8", "replace")
    backends, features = parse_system_info(text)
    return NativeInfo(llama_cpp.__version__, backends, features, bool(lc.llama_supports_gpu_offload()))


def parse_system_info(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(backends, features) of llama.cpp's line `CPU : SSE3 = 1 | AVX = 1 | CUDA : ARCHS = 890 | …`; features of value 0 are left out."""
    backends: list[str] = []
    features: list[str] = []
    for part in text.split("|"):
        name, colon, rest = part.partition(" : ")
        if colon:
            backends.append(name.strip())
            part = rest
        match = re.fullmatch(r"\s*(\w+)\s*=\s*(\S+)\s*", part)
        if match and match.group(2) != "0":
            features.append(match.group(1))
    return tuple(dict.fromkeys(backends)), tuple(dict.fromkeys(features))
