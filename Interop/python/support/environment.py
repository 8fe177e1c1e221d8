# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Makes a Python environment with Google's protobuf and the generated messages, outside the repository.

Programs that need more than Python call `enter()` or `enter_with(…)` first. The call prepares the environment once, and
runs the program again inside the environment.
"""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROTO = ROOT / "Proto"
MARK = "HERMES_INTEROP_READY"


def cache() -> pathlib.Path:
    """Returns the folder of the environment: HERMES_INTEROP_CACHE, or a folder in the user's cache directory."""
    chosen = os.environ.get("HERMES_INTEROP_CACHE")
    if chosen:
        return pathlib.Path(chosen)
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "hermes-interop"


def apt(*packages: str) -> bool:
    """Installs Debian packages if this program has the rights. Returns whether they are installed."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]
    if subprocess.run(install, env=environment, stdout=subprocess.DEVNULL).returncode == 0:
        return True
    subprocess.run(["apt-get", "update", "-q"], env=environment, stdout=subprocess.DEVNULL)
    return subprocess.run(install, env=environment, stdout=subprocess.DEVNULL).returncode == 0


def protobuf_requirement(protoc_version: str) -> str:
    """Returns the versions of PyPI's protobuf that can load the output of this protoc."""
    major = int(re.search(r"(\d+)\.\d+", protoc_version).group(1))
    if major <= 3 or major < 26:  # protoc 3.21 is of protobuf 4.21; protoc 22 to 25 are of protobuf 4.22 to 4.25
        return "protobuf>=4.21,<5" if major <= 3 else f"protobuf>=4.{major},<5"
    if major < 30:
        return f"protobuf>=5.{major},<6"
    return f"protobuf>=6.{major},<7"


def protoc() -> str:
    found = shutil.which("protoc") or (apt("protobuf-compiler") and shutil.which("protoc"))
    if not found:
        sys.exit("interop: protoc is missing; install it (Debian: apt-get install protobuf-compiler)")
    return found


def python_with(*requirements: str) -> pathlib.Path:
    """Returns the Python program of a virtual environment with the requirements. The environment is made only once."""
    place = cache() / ("venv-" + re.sub(r"[^0-9a-z.]+", "-", "-".join(requirements).removeprefix("protobuf")).strip("-"))
    python = place / "bin" / "python3"
    if not (place / "ready").exists():
        shutil.rmtree(place, ignore_errors=True)
        make = [sys.executable, "-m", "venv", str(place)]
        if subprocess.run(make, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
            if not apt("python3-venv") or subprocess.run(make).returncode != 0:
                sys.exit("interop: cannot make a virtual environment (Debian: apt-get install python3-venv)")
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements]
        if subprocess.run(install).returncode != 0:
            sys.exit(f"interop: pip could not install {' '.join(requirements)}; is the network there?")
        (place / "ready").touch()
    return python


def generated(compiler: str) -> pathlib.Path:
    """Returns the folder of the Python messages of Proto/. They are generated again only if the schemas have
    changed."""
    files = sorted(PROTO.rglob("*.proto"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(str(file.relative_to(PROTO)).encode() + b"\0" + file.read_bytes() + b"\0")
    place = cache() / f"messages-{digest.hexdigest()[:16]}"
    if not (place / "ready").exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        names = [str(file.relative_to(PROTO)) for file in files]
        made = subprocess.run([compiler, f"-I{PROTO}", f"--python_out={place}", *names], capture_output=True, text=True)
        if made.returncode != 0:
            sys.exit(f"interop: protoc refused the schemas:\n{made.stderr}")
        (place / "ready").touch()
    return place


def enter() -> None:
    """Runs this program again inside the environment. Returns if the program is already inside."""
    if os.environ.get(MARK):
        return
    compiler = protoc()
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    _again(python_with(protobuf_requirement(version)), str(generated(compiler)))


def enter_with(*requirements: str) -> None:
    """As `enter()`, but with packages of PyPI instead of protobuf and the messages."""
    if not os.environ.get(MARK):
        _again(python_with(*requirements))


def enter_with_messages(*requirements: str) -> None:
    """As `enter()`, but with packages of PyPI in addition to protobuf and the messages."""
    if not os.environ.get(MARK):
        compiler = protoc()
        version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
        _again(python_with(protobuf_requirement(version), *requirements), str(generated(compiler)))


def _again(python: pathlib.Path, *places: str) -> None:
    environment = dict(os.environ)
    environment[MARK] = "1"
    environment["PYTHONPATH"] = os.pathsep.join([*places, str(pathlib.Path(__file__).resolve().parents[1])])
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    environment["PYTHONUNBUFFERED"] = "1"
    os.execve(str(python), [str(python), *sys.argv], environment)
