"""`lsp-complete quantize`: a smaller file of a model that is here, to try what a precision costs (`replay gate`)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..cli import Sub


def add_parser(sub: Sub) -> None:
    """`quantize MODEL TYPE --out FILE`."""
    parser = sub.add_parser("quantize", help="make a smaller file of a model that is here, to compare with `replay gate`")
    parser.add_argument("model", metavar="MODEL", help="catalogue name or GGUF file")
    parser.add_argument("type", metavar="TYPE", help="q2_k, q3_k_m, q4_0, q4_k_m, q5_k_m, q6_k or q8_0")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to write the new file")
    parser.add_argument("--pure", action="store_true", help="every matrix in that type, where some are kept finer otherwise")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from ..config import Settings
    from ..engine.llama_quantize import quantize
    from ..service.startup import model_path

    source = model_path(Settings(model=args.model))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    size = quantize(source, args.out, args.type.lower(), pure=args.pure)
    print(f"{args.out}: {size / 1e6:.0f} MB (from {source.name}, {source.stat().st_size / 1e6:.0f} MB)")
    print("A file that was quantized before loses more by this than its original would.")
    return 0
