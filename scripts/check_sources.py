#!/usr/bin/env python3
"""Checks the sources for what the compiler does not check: layers, file sizes, headers, forbidden patterns."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_LINES = 600
# The most public declarations in 1,000 lines of a library, so that an app's team has little to read. Counted are the
# lines that begin a declaration with `public` or `open` (imports are none; the cases of an enum belong to it) against all
# lines of the library's Swift files, comments included.
MAX_PUBLIC_PER_1000_LINES = {"Hermes": 30.0}

# The targets of ours that each target may import (docs/architecture.md).
LAYERS = {
    "HermesWire": set(),
    "HermesCore": set(),
    "HermesSQLite": {"HermesCore"},
    "HermesPush": {"HermesCore", "HermesWire"},
    "HermesGateways": {"HermesCore", "HermesWire"},
    "HermesServer": {"HermesCore", "HermesGateways", "HermesPush", "HermesSQLite", "HermesWire"},
    "Hermes": {"HermesWire"},
    "HermesProtocols": {"Hermes", "HermesWire"},
    "HermesTestKit": {"Hermes", "HermesCore", "HermesGateways", "HermesServer", "HermesSQLite", "HermesWire"},
    "HermesCLI": {"Hermes", "HermesProtocols", "HermesServer", "HermesWire"},
}
# Modules that must not be seen from a layer.
FORBIDDEN_MODULES = {
    "HermesWire": {"Foundation", "Logging", "NIOPosix", "Dispatch"},
    "HermesCore": {"NIOPosix", "GRDB", "Configuration", "HermesWire"},
    "HermesPush": {"GRDB", "Configuration", "Hummingbird"},
    "HermesGateways": {"GRDB", "Hummingbird"},
    "Hermes": {"GRDB", "Hummingbird", "ServiceLifecycle", "Configuration"},
    "HermesProtocols": {"GRDB", "Hummingbird", "ServiceLifecycle", "Configuration", "NIOPosix"},
}
HEADER = ("// Hermes", "// SPDX-License-Identifier: Apache-2.0")
FOLDERS_WITHOUT_MEANING = {"Utils", "Helpers", "Common", "Misc"}

# The wire protocols, by the prefix of their types. A gateway may not name another's types, and what all gateways share
# may name none; the settings and the catalogue list all protocols.
PROTOCOL_TYPE = re.compile(r"\b(IMPB|MQTT|Delimited|LiveRoom|QSIOP|STUN)(?![a-z])\w*")
LISTS_ALL_PROTOCOLS = {"Settings", "GatewayCatalog.swift"}
# The core may name no protocol and none of its packets.
CORE_NAME = re.compile(
    r"\w*(?:mqtt|impb|live_?room|delimited|qsiop|web_?socket|packet|puback|pubrec|pubrel|pubcomp|suback|connack)\w*",
    re.IGNORECASE,
)
# How often a file still does so. The numbers may only fall.
NAMED_PROTOCOLS = {
    "Sources/HermesGateways/Listening/GatewayEnvironment.swift": 4,
    "Sources/HermesGateways/MQTT/MQTTInbox.swift": 3,
    "Sources/HermesGateways/MQTT/MQTTConnection+Inbox.swift": 4,
    "Sources/HermesGateways/MQTT/MQTTConnection+NativeLogin.swift": 6,
}
ENCODING_SLOT = re.compile(r"static var \w+: Self \{ Self\(rawValue: (\d+)\) \}")

# Each needs its reason in a comment on the same line or in the three lines before.
NEEDS_REASON = [
    (re.compile(r"\btry!"), "try!"),
    (re.compile(r"\bas!"), "as!"),
    (re.compile(r"(?<![\w.])Task\s*(\{|\()"), "a bare Task"),
    (re.compile(r"\bTask\.detached\b"), "Task.detached"),
    (re.compile(r"@unchecked Sendable"), "@unchecked Sendable"),
    (re.compile(r"nonisolated\(unsafe\)"), "nonisolated(unsafe)"),
    (re.compile(r"\bfatalError\("), "fatalError"),
    (re.compile(r"\bpreconditionFailure\("), "preconditionFailure"),
    (re.compile(r"swift-format-ignore"), "swift-format-ignore"),
]
IMPORT = re.compile(r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|private|fileprivate)\s+)?import\s+"
                    r"(?:(?:struct|class|enum|protocol|func|var|let|typealias)\s+)?(\w+)")
# SwiftProtobuf's JSON decoder accepts enum numbers that its encoder writes past the end of a buffer.
PROTOBUF_JSON = re.compile(r"\bjson(?:UTF8Bytes|UTF8Data|String):")
PROTOBUF_JSON_FILE = "Sources/HermesWire/Framing/Message+JSON.swift"
PUBLIC = re.compile(r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:public|open)\s+(?!import\b)")
# What measures is in Benchmarks/, which Package.swift adds only under HERMES_DEV; so no product contains it.
BENCHMARK = re.compile(r"\w*bench\w*", re.IGNORECASE)
STRING = re.compile(r'"(?:\\.|[^"\\])*"')
CREATED_FILE = re.compile(r"\.createFile\(")
# A command must notice that its result cannot be printed.
BARE_PRINT = re.compile(r"(?<![\w.])(?<!func )(?:Swift\.)?(?:print|debugPrint)\(")
# Swift wraps such a function twice more at each access.
LOCKED_FUNCTION = re.compile(r"\b(Mutex|NIOLockedValueBox)<\(?(@\w+ )*\([^<>\]]*->")

# A suite, up to its brace.
SUITE = re.compile(r"@Suite[^{]*")
# A test has one name, a sentence.
TEST = re.compile(r"@Test\b(?:(?!\bfunc\b)[\s\S])*?\bfunc\s+(`?)|@Test\(\s*\"")

# What begins a block inside a function, and the calls whose closures are a test's own body.
CONTROL = re.compile(r"(?:\} )?(?:for|if|while|switch|do|else|guard|repeat|catch)\b")
TEST_BODY = re.compile(r"\bwith(?!Lock)[A-Z]?\w*\b")


# What a build without the trait `Pages` leaves out, and the files among it that it keeps.
PAGES = ("Sources/HermesServer/Pages/", "Sources/HermesServer/Console/")
WITHOUT_PAGES = {"NoPages.swift", "Figures.swift"}


def is_generated(path: pathlib.Path) -> bool:
    return path.name.endswith(".pb.swift") or path.name == "WebFiles+Content.swift"


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def is_of_test(lines: list[str], number: int) -> bool:
    """Whether the statement in this line (from 0) is in the body of a test, not in that of a function or closure inside."""
    depth = indentation(lines[number])
    for place in range(number - 1, -1, -1):
        text = lines[place].strip()
        if not text or indentation(lines[place]) >= depth:
            continue
        depth = indentation(lines[place])
        if not (text.endswith("{") or re.search(r"\{ .*\bin$", text)) or CONTROL.match(text):
            continue
        # The block's head may take several lines.
        while place > 0 and (text[0] in ")}{" or text.startswith(("async ", "throws "))):
            place -= 1
            if indentation(lines[place]) == depth and lines[place].strip():
                text = lines[place].strip()
        if re.search(r"\bfunc\b", text):
            return "@Test" in text or any("@Test" in line for line in attributes(lines, place))
        if not TEST_BODY.search(text):
            return False
    return False


def attributes(lines: list[str], place: int) -> list[str]:
    """The lines before a declaration, up to the end of the declaration before."""
    first = place
    while first > 0 and lines[first - 1].strip() and lines[first - 1].strip() not in ("}", "{"):
        first -= 1
    return lines[first:place]


def silent_returns(lines: list[str]) -> list[int]:
    """The numbers of the lines where a test returns, and so passes, because a value is another case than it expects."""
    found = []
    for number, line in enumerate(lines):
        if not line.endswith("else { return }"):
            continue
        first = number
        while first > 0 and not lines[first].lstrip().startswith("guard"):
            first -= 1
        statement = " ".join(part.strip() for part in lines[first:number + 1])
        if statement.startswith("guard case ") and is_of_test(lines, first):
            found.append(number + 1)
    return found


def check(path: pathlib.Path) -> list[str]:
    problems = []
    name = path.relative_to(ROOT)
    lines = path.read_text(encoding="utf-8").splitlines()
    in_sources = name.parts[0] == "Sources"
    if str(name).startswith(PAGES) and path.name not in WITHOUT_PAGES and (
        "#if Pages" not in lines[:8] or lines[-1] != "#endif"
    ):
        problems.append(f"{name}: it belongs between #if Pages and #endif (docs/architecture.md)")
    if not in_sources:
        text = "\n".join(lines)
        for test in TEST.finditer(text):
            if test.group(1) != "`" or re.match(r"@Test\(\s*\"", test.group()):
                number = text.count("\n", 0, test.start()) + 1
                problems.append(f"{name}:{number}: a test's name is a sentence between backticks, the function's")
        for suite in SUITE.finditer(text):
            if ".timeLimit" in suite.group() and ".inTurns" not in suite.group():
                number = text.count("\n", 0, suite.start()) + 1
                problems.append(f"{name}:{number}: a suite with a time limit is .inTurns, or the limit depends on the others")
        for number in silent_returns(lines):
            problems.append(f"{name}:{number}: a test that returns here passes; record an issue or throw")
        if name.parts[0] == "Tests" and "Process()" in text:
            problems.append(f"{name}: Foundation's Process crashes beside other tests; use ChildProcess")
    target = name.parts[1] if len(name.parts) > 2 else ""
    if not is_generated(path):
        if tuple(lines[:2]) != HEADER and path.name != "Package.swift":
            problems.append(f"{name}:1: the two-line header is missing")
        if len(lines) > MAX_LINES:
            problems.append(f"{name}: {len(lines)} lines; split by concern at {MAX_LINES}")
    for part in name.parts[:-1]:
        if part in FOLDERS_WITHOUT_MEANING:
            problems.append(f"{name}: a folder called {part} says nothing")
    if in_sources and any(BENCHMARK.search(part) for part in name.parts):
        problems.append(f"{name}: a benchmark in a product; it belongs into Benchmarks/")
    for number, line in enumerate(lines, 1):
        found = IMPORT.match(line)
        if found and in_sources and target in LAYERS:
            module = found.group(1)
            if module.startswith("Hermes") and module not in LAYERS[target] and module != target:
                problems.append(f"{name}:{number}: {target} must not import {module} (docs/architecture.md)")
            if module in FORBIDDEN_MODULES.get(target, ()) and not is_generated(path):
                problems.append(f"{name}:{number}: {target} must not import {module} (docs/architecture.md)")
        if is_generated(path) or not in_sources:
            continue
        code = STRING.sub('""', line).split("//")[0]
        benchmark = BENCHMARK.search(code)
        if benchmark:
            problems.append(f"{name}:{number}: a benchmark in a product ({benchmark.group()}); it belongs into Benchmarks/")
        if LOCKED_FUNCTION.search(code):
            problems.append(f"{name}:{number}: a Mutex around a function makes each call slower; use Hook, or a struct around it")
        if CREATED_FILE.search(code):
            problems.append(f"{name}:{number}: FileManager narrows a file's mode after others could open it; use PrivateFile")
        if target == "HermesCLI" and BARE_PRINT.search(code):
            problems.append(f"{name}:{number}: print() does not tell that the output failed; use CommandOutput")
        if PROTOBUF_JSON.search(code) and str(name) != PROTOBUF_JSON_FILE:
            problems.append(f"{name}:{number}: JSON of protobuf is parsed by Message.init(wireJSON:) alone")
        for pattern, what in NEEDS_REASON:
            subject = line if what == "swift-format-ignore" else code
            if pattern.search(subject):
                near = lines[max(0, number - 4):number]
                if not any("//" in text and "swift-format-ignore" not in text for text in near):
                    problems.append(f"{name}:{number}: {what} without the reason beside it")
    return problems


def named_protocols(path: pathlib.Path) -> list[str]:
    """The names in a file of the core or of a gateway that belong to a protocol that it must not know."""
    parts = path.relative_to(ROOT).parts
    code = [STRING.sub('""', line).split("//")[0] for line in path.read_text(encoding="utf-8").splitlines()]
    if parts[1] == "HermesCore":
        return [f"{number}: {name}" for number, line in enumerate(code, 1) for name in CORE_NAME.findall(line)]
    if parts[1] != "HermesGateways" or parts[2] in LISTS_ALL_PROTOCOLS:
        return []
    found = ((number, match) for number, line in enumerate(code, 1) for match in PROTOCOL_TYPE.finditer(line))
    return [f"{number}: {match.group()}" for number, match in found if match.group(1) != parts[2]]


def check_protocols(files: list[pathlib.Path]) -> list[str]:
    problems = []
    counts = dict.fromkeys(NAMED_PROTOCOLS, 0)
    for path in files:
        name = str(path.relative_to(ROOT))
        if not name.startswith("Sources/"):
            continue
        names = named_protocols(path)
        known = NAMED_PROTOCOLS.get(name, 0)
        counts[name] = len(names)
        if len(names) > known:
            problems.append(f"{name}: names of another protocol, {len(names)} where {known} are known: {', '.join(names)}")
    for name, known in NAMED_PROTOCOLS.items():
        if counts[name] < known:
            problems.append(f"{name}: names another protocol {counts[name]} times, not {known}: lower it in scripts/check_sources.py")
    return problems


def check_encoding_slots() -> list[str]:
    """The numbers of the gateways' slots are distinct; each gateway declares its own."""
    problems = []
    owners: dict[str, str] = {}
    for path in sorted((ROOT / "Sources").rglob("*.swift")):
        text = path.read_text(encoding="utf-8")
        for number in ENCODING_SLOT.findall(text) if "extension EncodingSlot" in text else ():
            if number in owners:
                problems.append(f"{path.relative_to(ROOT)}: slot {number} is in {owners[number]} already")
            owners[number] = path.name
    return problems


def check_manifest() -> list[str]:
    """The targets of Benchmarks/ and Fuzz/ exist for developers alone."""
    lines = (ROOT / "Package.swift").read_text(encoding="utf-8").splitlines()
    problems = []
    for number, line in enumerate(lines, 1):
        if "HERMES_DEV" in line:
            break
        if "Fuzz" in line or BENCHMARK.search(line):
            problems.append(f"Package.swift:{number}: benchmarks and fuzzers come after the line that asks for HERMES_DEV")
    return problems


TARGET = re.compile(r'(library|program|tests)\(\s*"(\w+)",(?: path: "([^"]+)",)?\s*\[([^\]]*)\]')
IMPORT = re.compile(r"^(?:@\w+ )?(?:package |public |internal |private |fileprivate )?(?:@testable )?import (?:\w+ )?(\w+)$", re.MULTILINE)


def check_dependencies() -> list[str]:
    """Each dependency of a target is imported by one of its files."""
    problems = []
    for kind, name, path, uses in TARGET.findall((ROOT / "Package.swift").read_text(encoding="utf-8")):
        folder = ROOT / (path or (f"Tests/{name}Tests" if kind == "tests" else f"Sources/{name}"))
        files = folder.rglob("*.swift") if folder.is_dir() else ()
        imported = {module for file in files for module in IMPORT.findall(file.read_text(encoding="utf-8"))}
        for use in re.findall(r'"(\w+)"', uses):
            if imported and use not in imported:
                problems.append(f"Package.swift: no file of {folder.relative_to(ROOT)} imports {use}")
    return problems


def check_ways() -> list[str]:
    """The files on the ways through the code exist."""
    document = ROOT / "docs/architecture.md"
    paths = re.findall(r"^\d+\. `(Hermes\w*/[^`<]+\.swift)`", document.read_text(), re.MULTILINE)
    return [f"docs/architecture.md: {path} is not there" for path in paths if not (ROOT / "Sources" / path).exists()]


def check_public(target: str, limit: float) -> list[str]:
    files = [path.read_text(encoding="utf-8").splitlines() for path in (ROOT / "Sources" / target).rglob("*.swift")]
    lines = sum(len(file) for file in files)
    public = sum(1 for file in files for line in file if PUBLIC.match(line))
    density = 1000 * public / lines
    print(f"{target}: {public} public declarations in {lines} lines, {density:.1f} per 1,000")
    if density <= limit:
        return []
    return [f"Sources/{target}: {density:.1f} public declarations per 1,000 lines; at most {limit:.1f} (use package)"]


def main() -> int:
    files = [ROOT / "Package.swift"]
    for folder in ("Sources", "Tests", "Benchmarks", "Fuzz"):
        files += sorted((ROOT / folder).rglob("*.swift"))
    files = [path for path in files if ".build" not in path.parts]
    problems = [problem for path in files for problem in check(path)]
    problems += check_protocols(files)
    problems += check_encoding_slots()
    problems += check_manifest()
    problems += check_dependencies()
    problems += check_ways()
    for target, limit in MAX_PUBLIC_PER_1000_LINES.items():
        problems += check_public(target, limit)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(files)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
