# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Type-checks a target with other options than those of the last debug build. Reads the compiler's command from the plan
of this build. Used by scripts/check-types-without-pages and scripts/check-example."""

import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
PLAN = ROOT / ".build/debug.yaml"
# The options for output files. A type check writes no files. The options in PLACES have a value.
OUTPUTS = {"-emit-dependencies", "-emit-module", "-incremental", "-c", "-serialize-diagnostics", "-parseable-output",
           "-emit-objc-header", "-enable-batch-mode"}
PLACES = {"-emit-module-path", "-output-file-map", "-index-store-path", "-emit-objc-header-path"}


def command(target: str) -> list[str]:
    """Returns the compiler's arguments for a target from the plan."""
    lines = PLAN.read_text().split("\n")
    begin = next(n for n, line in enumerate(lines) if line.startswith(f'  "C.{target}-') and line.endswith('.module":'))
    return next(json.loads(line.strip()[len("args: ") :]) for line in lines[begin:] if line.startswith("    args: "))


def type_check(arguments: list[str], flags: set[str], options: frozenset[str] | set[str] = frozenset()) -> int:
    """Type-checks without these flags, and without these options, which have a value. Returns the compiler's exit code."""
    kept, is_value = [], False
    for argument in arguments:
        if not is_value and argument not in OUTPUTS | PLACES | flags | options:
            kept.append(argument)
        is_value = argument in PLACES | options
    return subprocess.run([kept[0], "-typecheck", "-whole-module-optimization", *kept[1:]], cwd=ROOT).returncode
