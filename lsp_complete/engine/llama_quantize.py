"""Making a smaller file of a model file, by llama.cpp's own quantizer. For trying what a precision costs (`replay gate`).

Rules:
- The new file appears whole or not at all: it is written beside the target and renamed.
- A file that is quantized already loses more by this than its original would: the caller should say so.
- Blocks for some seconds per hundred MB and uses all threads given. Any thread; no model is loaded into memory for use.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import llama_cpp

from ..errors import ModelError
from .native import ERRORS
from .vocab import init_native

TYPES = {
    "q2_k": llama_cpp.LLAMA_FTYPE_MOSTLY_Q2_K,
    "q3_k_m": llama_cpp.LLAMA_FTYPE_MOSTLY_Q3_K_M,
    "q4_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_0,
    "q4_k_m": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_K_M,
    "q5_k_m": llama_cpp.LLAMA_FTYPE_MOSTLY_Q5_K_M,
    "q6_k": llama_cpp.LLAMA_FTYPE_MOSTLY_Q6_K,
    "q8_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0,
}


def quantize(source: Path, target: Path, kind: str, threads: int = 0, *, pure: bool = False) -> int:
    """Write `source` with its weights as `kind` (a key of TYPES) to `target`; the new file's size in bytes. threads: 0 all.

    pure: every matrix in that type, where llama.cpp keeps some finer. (Rows that the type's blocks do not divide get another type in
    either case.) Raises ModelError if llama.cpp refuses, OSError.
    """
    if kind not in TYPES:
        raise ModelError(f"there is no type {kind!r}; there are {', '.join(TYPES)}")
    if target.exists() and target.samefile(source):
        raise ModelError("the new file must not be the one it is made from")
    init_native()
    parameters = llama_cpp.llama_model_quantize_default_params()
    parameters.nthread, parameters.ftype = threads, TYPES[kind]
    parameters.allow_requantize, parameters.pure = True, pure
    draft = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        ERRORS.take()
        status = llama_cpp.llama_model_quantize(
            os.fsencode(source), os.fsencode(draft), ctypes.byref(parameters)
        )
        if status != 0 or not draft.is_file():
            raise ModelError(f"{source.name} could not be quantized: {ERRORS.take() or f'status {status}'}")
        draft.chmod(0o600)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return target.stat().st_size
