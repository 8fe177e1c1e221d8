#!/usr/bin/env python3
"""Checks rules for the sources that the compiler does not check: layers, file sizes, headers, forbidden patterns.

    scripts/check_sources.py
    scripts/check_sources.py --self-test     checks the rules against damaged files and small examples
"""

import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_LINES = 600
# The largest number of public declarations in 1,000 lines of a library, so that an app's team has little to read. The
# script counts the lines that begin a declaration with `public` or `open`, without imports. The cases of an enum are
# not counted separately. The number of lines includes all lines of the library's Swift files, with comments.
MAX_PUBLIC_PER_1000_LINES = {"Hermes": 30.0}

# The targets of Hermes that each target may import (docs/architecture.md).
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
# Modules that a target must not import.
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

# The folders of HermesWire and HermesGateways that belong to no wire protocol. Each other folder has the name of a
# protocol, and this name is the prefix of the protocol's types. A gateway must not name the types of another protocol.
# The code that all gateways share must not name the types of any protocol, except for the settings and the catalogue,
# which list all protocols.
SHARED_FOLDERS = {"Content", "Framing", "JSON", "Listening", "Native", "Proxy", "Schema", "Settings", "WebSocket", "X509"}
LISTS_ALL_PROTOCOLS = {"Settings", "GatewayCatalog.swift"}
# The core must not name protocols or their packets.
CORE_NAME = re.compile(
    r"\w*(?:mqtt|impb|live_?room|delimited|qsiop|web_?socket|packet|puback|pubrec|pubrel|pubcomp|suback|connack)\w*",
    re.IGNORECASE,
)
# The files that still name another protocol, and how often each does so. These numbers may only decrease.
NAMED_PROTOCOLS = {
    "Sources/HermesGateways/Listening/GatewayEnvironment.swift": 4,
}
ENCODING_SLOT = re.compile(r"static var \w+: Self \{ Self\(rawValue: (\d+)\) \}")

# Each of these needs a comment with its reason on the same line or in the three lines before it.
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
IMPORT = re.compile(r"^[ \t]*(?:@\w+(?:\([^)]*\))?[ \t]+)*(?:(?:public|package|internal|private|fileprivate)[ \t]+)?"
                    r"(?:@\w+[ \t]+)*import[ \t]+(?:(?:struct|class|enum|protocol|func|var|let|typealias)[ \t]+)?(\w+)",
                    re.MULTILINE)
# SwiftProtobuf's JSON decoder accepts enum numbers for which its encoder writes past the end of a buffer.
PROTOBUF_JSON = re.compile(r"\bjson(?:UTF8Bytes|UTF8Data|String):")
PROTOBUF_JSON_FILE = "Sources/HermesWire/Framing/Message+JSON.swift"
# Attributes and modifiers, such as `nonisolated`, may be before `public`.
PUBLIC = re.compile(
    r"^\s*(?:(?:@\w+|borrowing|class|consuming|convenience|distributed|dynamic|final|indirect|infix|isolated|lazy"
    r"|mutating|nonisolated|nonmutating|optional|override|postfix|prefix|required|static|unowned|weak)"
    r"(?:\([^)]*\))?\s+)*(?:public|open)\s+(?!import\b)"
)
# Benchmarks belong in Benchmarks/. Package.swift adds that folder only if HERMES_DEV is set, so no product contains it.
BENCHMARK = re.compile(r"\w*bench\w*", re.IGNORECASE)
# The beginnings of comments and strings, and the parentheses of an interpolation.
TOKEN = re.compile(r'//|/\*|(?P<hashes>#*)(?P<quotes>"""|")|[()]')
COMMENT_BOUND = re.compile(r"/\*|\*/")
# The types and functions that a file declares at its top level.
DECLARATION = re.compile(
    r"^(?:[a-z@][\w()]*\s+)*(?:struct|class|enum|actor|protocol|func|typealias)\s+(\w+)", re.MULTILINE
)
CREATED_FILE = re.compile(r"\.createFile\(")
# A command must notice when its result cannot be printed.
BARE_PRINT = re.compile(r"(?<![\w.])(?<!func )(?:Swift\.)?(?:print|debugPrint)\(")
# At each access, Swift adds two more wrappers around such a function.
LOCKED_FUNCTION = re.compile(r"\b(Mutex|NIOLockedValueBox)<\(?(@\w+ )*\([^<>\]]*->")

# The head of a suite, up to its opening brace.
SUITE = re.compile(r"@Suite[^{]*")
# A test has exactly one name, which is a sentence.
TEST = re.compile(r"@Test\b(?:(?!\bfunc\b)[\s\S])*?\bfunc\s+(`?)|@Test\(\s*\"")

# The words that begin a block inside a function, and the calls whose closures belong to the body of a test.
CONTROL = re.compile(r"(?:\} )?(?:for|if|while|switch|do|else|guard|repeat|catch)\b")
TEST_BODY = re.compile(r"\bwith(?!Lock)[A-Z]?\w*\b")


# The folders that a build without the trait `Pages` leaves out, and the files in these folders that it includes.
PAGES = ("Sources/HermesServer/Pages/", "Sources/HermesServer/Console/")
WITHOUT_PAGES = {"NoPages.swift", "Figures.swift"}


def protocols(sources: pathlib.Path) -> list[str]:
    """Returns the names of the wire protocols."""
    folders = [folder for target in ("HermesWire", "HermesGateways") for folder in (sources / target).iterdir()]
    return sorted({folder.name for folder in folders if folder.is_dir()} - SHARED_FOLDERS)


def protocol_type(names: list[str]) -> re.Pattern:
    """Returns the pattern for the types of these protocols. If one name begins with another, the longer one counts."""
    return re.compile(rf"\b({'|'.join(sorted(names, key=len, reverse=True))})(?![a-z])\w*")


PROTOCOL_TYPE = protocol_type(protocols(ROOT / "Sources"))


@functools.lru_cache
def string_token(hashes: str, quotes: str) -> re.Pattern:
    """Returns the pattern for the end of a string, for its escapes and for the end of a line."""
    return re.compile(rf"(?P<end>{quotes}{hashes})|\\{hashes}(?P<escaped>.)|\n")


def code_lines(lines: list[str]) -> list[str]:
    """Returns the lines without comments and without the text of strings. Interpolations stay."""
    text = "\n".join(lines)
    kept: list[str] = []
    # The open strings and interpolations. An interpolation is the number of its open parentheses.
    within: list[re.Pattern | int] = []
    place = 0
    while place < len(text):
        inner = within[-1] if within else None
        if isinstance(inner, re.Pattern):
            found = inner.search(text, place)
            if not found:
                break
            place = found.end()
            if found.group() == "\n":
                kept.append("\n")
                if '"""' not in inner.pattern:  # a string of one line without an end is not Swift
                    within.pop()
            elif found.group("end"):
                kept.append('"')
                within.pop()
            elif found.group("escaped") == "(":
                kept.append("\\(")
                within.append(1)
            continue
        found = TOKEN.search(text, place)
        kept.append(text[place:found.start() if found else len(text)])
        if not found:
            break
        place = found.end()
        if found.group() == "//":
            place = end if (end := text.find("\n", place)) >= 0 else len(text)
        elif found.group() == "/*":
            begin, place = place, end_of_comment(text, place)
            kept.append("\n" * text.count("\n", begin, place))
        elif found.group("quotes"):
            kept.append('"')
            within.append(string_token(found.group("hashes"), found.group("quotes")))
        else:
            kept.append(found.group())
            if inner is not None:
                within[-1] += 1 if found.group() == "(" else -1
                if within[-1] == 0:
                    within.pop()
    return "".join(kept).split("\n")


def end_of_comment(text: str, place: int) -> int:
    """Returns the end of a comment, which may contain other comments."""
    depth = 1
    while depth and (bound := COMMENT_BOUND.search(text, place)):
        depth += 1 if bound.group() == "/*" else -1
        place = bound.end()
    return len(text) if depth else place


def is_generated(path: pathlib.Path) -> bool:
    return path.name.endswith(".pb.swift") or path.name == "WebFiles+Content.swift"


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def is_of_test(lines: list[str], number: int) -> bool:
    """Returns whether the statement in this line is in the body of a test. A function or closure inside a test does not
    count as its body. Lines are numbered from 0."""
    depth = indentation(lines[number])
    for place in range(number - 1, -1, -1):
        text = lines[place].strip()
        if not text or indentation(lines[place]) >= depth:
            continue
        depth = indentation(lines[place])
        if not (text.endswith("{") or re.search(r"\{ .*\bin$", text)) or CONTROL.match(text):
            continue
        # The head of the block may have several lines.
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
    """Returns the lines between the end of the previous declaration and this declaration."""
    first = place
    while first > 0 and lines[first - 1].strip() and lines[first - 1].strip() not in ("}", "{"):
        first -= 1
    return lines[first:place]


def silent_returns(lines: list[str]) -> list[int]:
    """Returns the numbers of the lines in which a test returns because a value is not the expected case. Such a test
    passes."""
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
    code_of = code_lines(lines) if in_sources and not is_generated(path) else lines
    for number, (line, code) in enumerate(zip(lines, code_of, strict=True), 1):
        found = IMPORT.match(line)
        if found and in_sources and target in LAYERS:
            module = found.group(1)
            if module.startswith("Hermes") and module not in LAYERS[target] and module != target:
                problems.append(f"{name}:{number}: {target} must not import {module} (docs/architecture.md)")
            if module in FORBIDDEN_MODULES.get(target, ()) and not is_generated(path):
                problems.append(f"{name}:{number}: {target} must not import {module} (docs/architecture.md)")
        if is_generated(path) or not in_sources:
            continue
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


def named_protocols(parts: tuple[str, ...], lines: list[str], types: re.Pattern = PROTOCOL_TYPE) -> list[str]:
    """Returns the names in a file of the core or of a gateway that belong to a protocol that the file must not name.
    `parts` are the parts of the file's path, beginning with Sources."""
    if parts[1] not in ("HermesCore", "HermesGateways"):
        return []
    code = code_lines(lines)
    if parts[1] == "HermesCore":
        return [f"{number}: {name}" for number, line in enumerate(code, 1) for name in CORE_NAME.findall(line)]
    if parts[2] in LISTS_ALL_PROTOCOLS:
        return []
    found = ((number, match) for number, line in enumerate(code, 1) for match in types.finditer(line))
    return [f"{number}: {match.group()}" for number, match in found if match.group(1) != parts[2]]


def check_protocols(files: list[pathlib.Path]) -> list[str]:
    problems = []
    counts = dict.fromkeys(NAMED_PROTOCOLS, 0)
    for path in files:
        name = str(path.relative_to(ROOT))
        if not name.startswith("Sources/"):
            continue
        names = named_protocols(path.relative_to(ROOT).parts, path.read_text(encoding="utf-8").splitlines())
        known = NAMED_PROTOCOLS.get(name, 0)
        counts[name] = len(names)
        if len(names) > known:
            problems.append(f"{name}: names of another protocol, {len(names)} where {known} are known: {', '.join(names)}")
    for name, known in NAMED_PROTOCOLS.items():
        if counts[name] < known:
            problems.append(f"{name}: names another protocol {counts[name]} times, not {known}: lower it in scripts/check_sources.py")
    return problems


def check_encoding_slots() -> list[str]:
    """Checks that all gateways' encoding slots have different numbers. Each gateway declares its own slots."""
    problems = []
    owners: dict[str, str] = {}
    for path in sorted((ROOT / "Sources").rglob("*.swift")):
        text = path.read_text(encoding="utf-8")
        for number in ENCODING_SLOT.findall(text) if "extension EncodingSlot" in text else ():
            if number in owners:
                problems.append(f"{path.relative_to(ROOT)}: slot {number} is in {owners[number]} already")
            owners[number] = path.name
    return problems


# A file with settings; a function that makes a setting or a field for a key; a constant with its modifiers; and an
# extension in which settings are declared.
HAS_SETTINGS = re.compile(r"\bSetting(?:Field)?\b|\bSharedLimitSetting\b")
SETTING_MAKER = re.compile(
    r"\bfunc (\w+)(?:<[^(]*>)?\(\s*(?:_ property: [^\n]*,\s*)?_ key: String\b[^{]*?-> (?:Self|Setting)\b"
)
CONSTANT = re.compile(r"^[ ]*((?:\w+ )*)let \w+")
EXTENSION = re.compile(r"^extension (?:\w+\.)*(\w+)", re.MULTILINE)


def setting_problems(texts: dict[str, str]) -> list[str]:
    """Checks that everything about a setting stands in one file: the key is declared once; the file of the declaration
    also declares the type with the setting's property; and a constant with the declaration is private, so the value is
    read in this file, too. A declaration is a call with the key as its first argument, or as the first after a key
    path. The argument is the texts of the sources by path."""
    texts = {path: text for path, text in texts.items() if HAS_SETTINGS.search(text)}
    makers = {"Setting"}.union(*(SETTING_MAKER.findall(text) for text in texts.values()))
    declaration = re.compile(
        rf'(?<!func )\b(?:{"|".join(sorted(makers))})(?:<[^()\n]+>)?\(\s*(?:\\[.\w\[\]: ]+,\s*)?"([\w.]+)"'
    )
    problems = []
    owners: dict[str, str] = {}
    for path, text in texts.items():
        for found in declaration.finditer(text):
            key = found.group(1)
            if key in owners:
                problems.append(f"{path}: {owners[key]} already declares the setting {key}")
            owners[key] = path
            constant = CONSTANT.match(text[text.rfind("\n", 0, found.start()) + 1 : found.start()])
            if constant and "private" not in constant.group(1).split():
                problems.append(f"{path}: the setting {key} is not private, so other files can read it")
            extended = [match.group(1) for match in EXTENSION.finditer(text, 0, found.start())]
            if extended and not re.search(rf"^[ ]*(?:\w+ )*struct {extended[-1]}\b", text, re.MULTILINE):
                problems.append(f"{path}: the setting {key} belongs in the file of {extended[-1]}")
    return problems


def check_settings() -> list[str]:
    paths = sorted((ROOT / "Sources").rglob("*.swift"))
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths if not is_generated(path)}
    return setting_problems(texts)


def check_manifest() -> list[str]:
    """Checks that Package.swift adds the targets of Benchmarks/ and Fuzz/ only for developers."""
    lines = (ROOT / "Package.swift").read_text(encoding="utf-8").splitlines()
    problems = []
    for number, line in enumerate(lines, 1):
        if "HERMES_DEV" in line:
            break
        if "Fuzz" in line or BENCHMARK.search(line):
            problems.append(f"Package.swift:{number}: benchmarks and fuzzers come after the line that asks for HERMES_DEV")
    return problems


def manifest() -> dict:
    """Returns Package.swift as SwiftPM reads it, with the targets for developers."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [os.environ.get("SWIFT", "swift"), "package", "--package-path", str(ROOT), "--scratch-path", scratch,
                   "dump-package"]
        ran = subprocess.run(command, env=os.environ | {"HERMES_DEV": "1"}, capture_output=True, text=True)
    if ran.returncode != 0:
        raise SystemExit(f"Package.swift cannot be read:\n{ran.stdout}{ran.stderr}")
    return json.loads(ran.stdout)


def used(target: dict) -> list[str]:
    """Returns the names of the targets and products that a target depends on."""
    return [next(iter(use.values()))[0] for use in target["dependencies"]]


def dependency_problems(package: dict) -> list[str]:
    """Checks that at least one file of a target imports each of the target's dependencies. The fuzzers share lists of
    dependencies, and not every fuzzer needs all of them."""
    problems = [f"Package.swift: it has no target {name}" for name in LAYERS
                if name not in {target["name"] for target in package["targets"]}]
    for target in package["targets"]:
        folder = target.get("path") or f"{'Tests' if target['type'] == 'test' else 'Sources'}/{target['name']}"
        if folder.startswith("Fuzz/Fuzz"):
            continue
        files = (ROOT / folder).rglob("*.swift")
        imported = {module for file in files for module in IMPORT.findall(file.read_text(encoding="utf-8"))}
        for use in used(target):
            if use not in imported:
                problems.append(f"Package.swift: no file of {folder} imports {use}")
    return problems


# The paths whose files docs/architecture.md lists, with the largest number of files of each.
WAYS = {
    "An MQTT publication to 1,000 subscribers": 8,
    "A message over the native protocol": 10,
    "A push to a sleeping phone": 10,
    "A reconnect of the SDK's client": 6,
}
# A file that is in no list, for the self-test.
LONGER_BY = "Hermes/Engine/ReconnectPolicy.swift"
WAYS_SECTION = re.compile(r"^## Ways through the code\n(.*?)(?=^## )", re.MULTILINE | re.DOTALL)
# The heading of a list, and its items with their continuation lines.
WAY = re.compile(r"^\*\*([^*]+)\*\*\s\(([^()]*?)(\d+)\sfiles\):\n\n((?:\d+\. .*\n(?: +.*\n)*)*)", re.MULTILINE)
WAY_ROW = re.compile(r"^\| ([^|]+) \| (\d+) \| (\d+) \|$", re.MULTILINE)


def ways_problems(document: str) -> list[str]:
    """Returns the problems with the lists of files in docs/architecture.md: a file that does not exist, a list that is
    missing or too long, and a number that differs from the length of its list."""
    section = WAYS_SECTION.search(document)
    if not section:
        return ["the section about the ways through the code is missing"]
    text = section.group(1)
    paths = re.findall(r"`(Hermes\w*/[^`<]+\.swift)`", text)
    problems = [f"{path} is not there" for path in paths if not (ROOT / "Sources" / path).exists()]
    lists = [(" ".join(title.split()), int(number), items) for title, _, number, items in WAY.findall(text)]
    rows = {title: int(now) for title, _, now in WAY_ROW.findall(text)}
    if sorted(title for title, _, _ in lists) != sorted(WAYS):
        problems.append("the lists are not those that scripts/check_sources.py knows (WAYS)")
    for title, number, items in lists:
        length = len(re.findall(r"^\d+\. ", items, re.MULTILINE))
        files = re.findall(r"^\d+\. `(Hermes\w*/[^`<]+\.swift)` ", items, re.MULTILINE)
        if length != len(files) or len(files) != len(set(files)):
            problems.append(f"{title}: each item begins with a different file")
        if number != length:
            problems.append(f"{title}: the heading says {number} files, the list has {length}")
        if rows.get(title) != length:
            problems.append(f"{title}: the table says {rows.get(title)} files, the list has {length}")
        if length > WAYS.get(title, length):
            problems.append(f"{title}: {length} files; at most {WAYS[title]}")
    return problems


def check_ways() -> list[str]:
    document = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    return [f"docs/architecture.md: {problem}" for problem in ways_problems(document)]


def self_test() -> int:
    """Damages the lists of files in docs/architecture.md, and those of dependencies in Package.swift, in many ways. The
    checks must notice each damage."""
    document = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    section = WAYS_SECTION.search(document)
    heading = re.search(r"(\d+) files\):\n\n1\. ", document)
    row = WAY_ROW.search(document)
    if not section or not heading or not row or ways_problems(document):
        print("self-test: the lists of docs/architecture.md have problems", file=sys.stderr)
        return 1
    further = f"99. `{LONGER_BY}` is one more file.\n"
    damages = {
        "no section": document.replace("## Ways through the code", "## Ways"),
        "a file that is not there": document.replace("HTTP2Client.swift`", "HTTP2Clients.swift`"),
        "a wrong number in a heading": document.replace(heading.group(), f"7{heading.group()}", 1),
        "a wrong number in the table": document.replace(row.group(), f"| {row.group(1)} | {row.group(2)} | 5 |"),
        "no row in the table": document.replace(row.group() + "\n", ""),
        "no list": document.replace(f"**{row.group(1)}**", f"{row.group(1)}"),
        "a list with another title": document.replace(row.group(1), "Another path"),
        "an item without a file": document.replace("\n2. `", "\n2. The file `", 1),
        "a file twice": re.sub(
            r"\n1\. (`[^`]+`)(.*?)\n2\. `[^`]+`", r"\n1. \1\2\n2. \1", document, count=1, flags=re.DOTALL
        ),
    }
    for title, most in WAYS.items():
        longer = re.sub(
            rf"(\*\*{re.escape(title)}\*\*\s\([^()]*?)\d+( files\):\n\n)",
            lambda found: f"{found.group(1)}{most + 1}{found.group(2)}{further}",
            document,
        )
        damages[f"a longer list: {title}"] = re.sub(
            rf"(\| {re.escape(title)} \| \d+ \| )\d+", lambda found: f"{found.group(1)}{most + 1}", longer
        )
    missed = [name for name, damaged in damages.items() if damaged == document or not ways_problems(damaged)]
    for name in missed:
        print(f"self-test: not noticed: {name}", file=sys.stderr)
    package = manifest()
    layers = [target for target in package["targets"] if target["name"] in LAYERS]
    for target in layers:
        damaged = [other for other in package["targets"] if other != target]
        unused = target | {"dependencies": target["dependencies"] + [{"target": ["NIOUnused", None]}]}
        if not dependency_problems({"targets": damaged}) or not dependency_problems({"targets": damaged + [unused]}):
            missed.append(target["name"])
            print(f"self-test: not noticed: {target['name']} is missing or has an unused dependency", file=sys.stderr)
    print(f"self-test: {len(damages) + 2 * len(layers)} damages, {len(missed)} not noticed")
    return 1 if missed else 0


def only_in_benchmarks(sources: dict[str, str], benchmarks: dict[str, str]) -> list[str]:
    """Returns the files of the products whose types only benchmarks use. The arguments are texts by path. A file that
    only extends types of other files is not found. Apps use what is public, and tests use HermesTestKit."""
    users: dict[str, int] = {}
    for text in sources.values():
        for word in set(re.findall(r"\w+", text)):
            users[word] = users.get(word, 0) + 1
    measured = {word for text in benchmarks.values() for word in re.findall(r"\w+", text)}
    found = []
    for path, text in sources.items():
        names = DECLARATION.findall(text)
        if "/HermesTestKit/" in path or "@main" in text or re.search(r"^public ", text, re.MULTILINE):
            continue
        if any(name in measured for name in names) and all(users[name] == 1 for name in names):
            found.append(path)
    return found


def check_only_in_benchmarks(files: list[pathlib.Path]) -> list[str]:
    texts: dict[str, dict[str, str]] = {"Sources": {}, "Benchmarks": {}}
    for path in files:
        name = path.relative_to(ROOT)
        if name.parts[0] in texts and not is_generated(path):
            code = code_lines(path.read_text(encoding="utf-8").splitlines())
            texts[name.parts[0]][str(name)] = "\n".join(code)
    found = only_in_benchmarks(texts["Sources"], texts["Benchmarks"])
    return [f"{path}: only benchmarks use it; it belongs into Benchmarks/" for path in found]


def examples() -> int:
    """Checks the rules for names, strings, public declarations and benchmarks against small examples."""
    failed = []

    def expect(what: str, found: object, expected: object) -> None:
        if found != expected:
            failed.append(f"{what}: {found!r}, not {expected!r}")

    with tempfile.TemporaryDirectory() as folder:
        for name in ("HermesWire/XMPP", "HermesWire/JSON", "HermesGateways/XMPP", "HermesGateways/Listening"):
            (pathlib.Path(folder) / name).mkdir(parents=True)
        expect("protocols", protocols(pathlib.Path(folder)), ["XMPP"])
    types = protocol_type(["MQ", "MQTT", "XMPP"])
    for folder, line, names in (
        ("MQTT", "let a = XMPPStanza()", ["1: XMPPStanza"]),
        ("XMPP", "let a = XMPPStanza()", []),
        ("Settings", "let a = XMPPStanza()", []),
        ("MQTT", "let a = MQTTPacket.self // XMPPStanza", []),
        ("MQTT", 'let a = "XMPPStanza"', []),
        ("MQTT", 'let a = "at most \\(XMPPStanza.maxBytes) bytes"', ["1: XMPPStanza"]),
    ):
        path = ("Sources", "HermesGateways", folder, "File.swift")
        expect(f"{folder}: {line}", named_protocols(path, [line], types), names)
    core = ("Sources", "HermesCore", "File.swift")
    expect("core", named_protocols(core, ['let a = "a packet"', 'let b = "\\(packet)"']), ["2: packet"])
    for swift, code in (
        ('a("b // c") // d', 'a("") '),
        ("a /* b /* c */ d */ e", "a  e"),
        ('"a\\"b\\(c)d"', '"\\(c)"'),
        ('"a\\(b ? "c" : d(e, "f)"))g" + h', '"\\(b ? "" : d(e, ""))" + h'),
        ('#"a\\(b)"c\\#(d)"# + e', '"\\(d)" + e'),
        ('"""\na "b" \\(c(\n"d")) // e\n""" + f', '"\n\\(c(\n""))\n" + f'),
    ):
        expect(swift, "\n".join(code_lines(swift.split("\n"))), code)
    for line, counts in (
        ("public struct A {", True), ("    open class A {", True), ("    nonisolated public func a() {", True),
        ("    @MainActor static public func a() {", True), ("    nonisolated(nonsending) public func a() {", True),
        ("    @discardableResult final public func a() {", True), ("override public func a() {", True),
        ("public import NIOCore", False), ("package func a() {", False), ("    case public", False),
        ("    // public func a()", False), ("    let a = public(b)", False),
    ):
        expect(line, bool(PUBLIC.match(line)), counts)
    for line, modules in (
        ("import A", ["A"]), ("@testable import A", ["A"]), ("package import A // why", ["A"]),
        ("@_spi(X) public import A", ["A"]), ("    import A", ["A"]), ("import struct A.B", ["A"]), ("// import A", []),
        ("import A\nlet b = 1\nimport class C.D", ["A", "C"]),
    ):
        expect(line, IMPORT.findall(line), modules)
    sources = {
        "Sources/A/A.swift": "struct A { B() }", "Sources/A/B.swift": "final class B {}",
        "Sources/A/C.swift": "package struct C {}\nextension C {}", "Sources/A/D.swift": "public struct D {}",
        "Sources/HermesTestKit/E.swift": "package struct E {}", "Sources/A/F.swift": "private struct F {}",
    }
    measured = {"Benchmarks/A.swift": "B(), C(), D(), E()"}
    expect("benchmarks", only_in_benchmarks(sources, measured), ["Sources/A/C.swift"])
    group = """
package struct A {
    package var b = 1
}

extension A {
    private static let b = Setting<Int>.number(
        "a.b",
        default: 1
    )
}
"""
    group_setting = "private static let b = Setting<Int>.number("
    field = "[SettingField].number(\\.b, \"a.b\")\n"
    makers = """
extension SettingField {
    func number(
        _ property: any WritableKeyPath<Group, Int> & Sendable,
        _ key: String
    ) -> Self {}
}
"""
    identifier = "private func identifier(_ key: String) -> Setting<Int> {}"
    for damaged, count in (
        ({"A": group}, 0),
        ({"A": group.replace("private ", "")}, 1),
        ({"A": group.replace("struct A", "struct B")}, 1),
        ({"A": group, "B": group}, 1),
        ({"A": group.replace("a.b", "c"), "B": group.replace("extension A", "extension B.A")}, 0),
        ({"A": group.replace(group_setting, field)}, 0),
        ({"A": group.replace(group_setting, field), "B": group}, 1),
        ({"A": group.replace(group_setting, field + field)}, 1),
        ({"A": group.replace(group_setting, field).replace("struct A", "struct B")}, 1),
        ({"A": group.replace("let b = Setting<Int>.", "let b: Setting<Int> = .")}, 0),
        ({"A": group.replace("let b = Setting<Int>.", "let b: Setting<Int> = ."), "B": group}, 1),
        ({"A": group.replace("Setting<Int>.number", "identifier") + identifier}, 0),
        ({"A": group.replace("Setting<Int>.number", "identifier") + identifier, "B": group}, 1),
        ({"A": group.replace("private ", "").replace("Setting<Int>.number", "identifier") + identifier}, 1),
        ({"A": group, "B": 'let b = number("a.b")'}, 0),
    ):
        damaged["Makers"] = makers
        expect("settings", len(setting_problems(damaged)), count)
    for problem in failed:
        print(f"self-test: {problem}", file=sys.stderr)
    print(f"self-test: {len(failed)} examples with a wrong result")
    return 1 if failed else 0


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
    if sys.argv[1:] == ["--self-test"]:
        return max(self_test(), examples())
    files = [ROOT / "Package.swift"]
    for folder in ("Sources", "Tests", "Benchmarks", "Fuzz"):
        files += sorted((ROOT / folder).rglob("*.swift"))
    files = [path for path in files if ".build" not in path.parts]
    problems = [problem for path in files for problem in check(path)]
    problems += check_protocols(files)
    problems += check_only_in_benchmarks(files)
    problems += check_encoding_slots()
    problems += check_settings()
    problems += check_manifest()
    problems += dependency_problems(manifest())
    problems += check_ways()
    for target, limit in MAX_PUBLIC_PER_1000_LINES.items():
        problems += check_public(target, limit)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(files)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
