# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Runs named checks one after another, reports each of them, and prints a closing line."""

import time
import traceback


class Failed(AssertionError):
    """A check found a value that it did not expect."""


class Skipped(Exception):
    """A check cannot run on this machine. The text has the reason."""


def require(condition, message) -> None:
    if not condition:
        raise Failed(message() if callable(message) else message)


def equal(found, wanted, what: str) -> None:
    if found != wanted:
        raise Failed(f"{what}: expected {wanted!r}, found {found!r}")


class Report:
    """Counts the checks, prints each result, and prints the closing line, whose numbers Interop/run adds up."""

    def __init__(self) -> None:
        self.passed = self.failed = self.skipped = 0

    def run(self, name: str, body, *arguments) -> bool:
        began = time.monotonic()
        try:
            detail = body(*arguments)
        except Skipped as reason:
            self.skipped += 1
            print(f"skip  {name}: {reason}", flush=True)
            return True
        except Exception as error:  # the other checks run after any error
            self.failed += 1
            print(f"FAIL  {name}: {type(error).__name__}: {error}", flush=True)
            if not isinstance(error, Failed):
                frames = traceback.extract_tb(error.__traceback__)[-3:]
                print("".join(f"      {f.filename.rsplit('/', 1)[-1]}:{f.lineno} {f.line}\n" for f in frames), end="")
            return False
        self.passed += 1
        took = time.monotonic() - began
        print(f"ok    {name}" + (f" ({detail})" if detail else "") + (f" [{took:.1f} s]" if took > 1 else ""), flush=True)
        return True

    def close(self) -> int:
        tail = f", {self.skipped} skipped" if self.skipped else ""
        print(f"{self.passed} passed, {self.failed} failed{tail}", flush=True)
        return 1 if self.failed or not self.passed else 0
