# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Finds axe-core, the accessibility checker, which runs in the page: WEB_AXE, or from the package index.

It is no part of Hermes: a test fetches it once, checks that it is the known one, and keeps it in the user's cache. On a
developer's machine a test goes on without it, and says so; where CI is set, it fails.
"""

import functools
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "axe-playwright-python==0.1.8"
# axe-core 4.12.1.
HASH = "84494fec757e4710dc751c8d7a636e457f4532f08f85c86dc9070133fbff53bc"


@functools.cache
def source() -> str | None:
    """The script; None and a line about it if it cannot be had."""
    given = os.environ.get("WEB_AXE")
    if given:
        return pathlib.Path(given).read_text()
    place = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "hermes-web/axe.min.js")
    text = read(place) or fetched(place)
    if not text:
        needs = f"needs pip and {PACKAGE}, or WEB_AXE=FILE"
        if os.environ.get("CI"):
            raise SystemExit(f"axe-core: {needs}")
        print(f"axe-core SKIPPED: {needs}", flush=True)
    return text


def read(place: pathlib.Path) -> str | None:
    try:
        data = place.read_bytes()
    except OSError:
        return None
    return data.decode() if hashlib.sha256(data).hexdigest() == HASH else None


def pip(folder: str) -> list[str] | None:
    """The command of pip: the system's, or one in an environment of its own (Debian: python3-pip or python3-venv)."""
    found = shutil.which("pip3") or shutil.which("pip")
    if found:
        return [found]
    python = pathlib.Path(folder, "venv/bin/python")
    made = subprocess.run([sys.executable, "-m", "venv", str(python.parent.parent)], capture_output=True)
    return [str(python), "-m", "pip"] if made.returncode == 0 else None


def fetched(place: pathlib.Path) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        command = pip(folder)
        if not command:
            return None
        command += ["download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest", folder, PACKAGE]
        # The index is asked once more: it may be out of reach for a moment.
        if all(subprocess.run(command, stderr=subprocess.DEVNULL).returncode != 0 for _ in range(2)):
            return None
        for wheel in pathlib.Path(folder).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(archive.read("axe_playwright_python/axe.min.js"))
    return read(place)
