# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Finds axe-core, the accessibility checker that runs in the page. The environment variable WEB_AXE names its file;
otherwise it comes from the package index.

The checker is not part of Hermes. A test downloads it once, compares its SHA-256 with the known value, and keeps it in
the user's cache. If the checker is not available, the test fails where the environment variable CI is set. Elsewhere
the test prints a line and continues without the checker.
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
# The SHA-256 of axe-core 4.12.1.
HASH = "84494fec757e4710dc751c8d7a636e457f4532f08f85c86dc9070133fbff53bc"


@functools.cache
def source() -> str | None:
    """Returns the script. If the script is not available, prints a line and returns None."""
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
    """Returns the command of the system's pip, or of the pip in a new virtual environment. Debian: python3-pip or
    python3-venv."""
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
        # A second attempt, because the index may be out of reach for a moment.
        if all(subprocess.run(command, stderr=subprocess.DEVNULL).returncode != 0 for _ in range(2)):
            return None
        for wheel in pathlib.Path(folder).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(archive.read("axe_playwright_python/axe.min.js"))
    return read(place)
