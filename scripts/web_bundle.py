# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Removes comments and white space from JavaScript modules, and joins several modules into one. Used by
scripts/embed-web.

It supports only the JavaScript that the modules of web/ use, and refuses everything else. Imports and exports must be
lists of names, without aliases, default exports or namespaces. Two modules must not import each other.

A joined module becomes a function that is called at once and returns the module's exports. Its other names are local to
the function: `const{a,b}=(()=>{…return{a,b}})();`.
"""

import pathlib
import re
from typing import NamedTuple


class BundleError(Exception):
    """A module that this bundler does not support."""


class Token(NamedTuple):
    # "name", "number", "text" or "sign". A "text" is a string, a whole template literal, or a regular expression.
    kind: str
    text: str
    # The white space before the token: "", " ", or "\n". It is "\n" if there was a line end, even inside a comment.
    gap: str


NAME = re.compile(r"[A-Za-z_$#\u0080-\uffff][\w$\u0080-\uffff]*")
NUMBER = re.compile(r"\.?\d(?:[eE][+-]\d|[\w.])*")
STRING = re.compile(r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""", re.S)
REGEX = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
BLANK = re.compile(r"\s+|//[^\n]*|/\*.*?\*/", re.S)
# After these words, a slash begins a regular expression. After other names, it is a division.
BEFORE_VALUE = set("return typeof instanceof in of new delete void throw case do else yield await".split())


def tokens(source: str) -> list[Token]:
    """Returns the tokens of a module without its comments."""
    found: list[Token] = []
    position = 0
    while True:
        start = position
        while blank := BLANK.match(source, position):
            position = blank.end()
        passed = source[start:position]
        gap = "\n" if "\n" in passed else " " if passed else ""
        if position == len(source):
            return found
        kind, end = token_at(source, position, found[-1] if found else None)
        found.append(Token(kind, source[position:end], gap))
        position = end


def token_at(source: str, position: int, last: Token | None) -> tuple[str, int]:
    """Returns the kind and the end of the token that begins at the position."""
    if match := NAME.match(source, position):
        return "name", match.end()
    if match := NUMBER.match(source, position):
        return "number", match.end()
    first = source[position]
    if first in "\"'":
        if match := STRING.match(source, position):
            return "text", match.end()
        raise BundleError(f"a string without an end: {source[position:position + 40]!r}")
    if first == "`":
        return "text", template_end(source, position)
    if first == "/":
        is_value = last is not None and (
            last.kind in ("number", "text")
            or (last.kind == "name" and last.text not in BEFORE_VALUE)
            or last.text in (")", "]", "}")
        )
        if not is_value:
            if match := REGEX.match(source, position):
                return "text", match.end()
            raise BundleError(f"a regular expression without an end: {source[position:position + 40]!r}")
    return "sign", position + 1


def template_end(source: str, position: int) -> int:
    """Returns the end of the template literal that begins at the position. Its expressions may contain further template
    literals."""
    position += 1
    while position < len(source):
        if source[position] == "\\":
            position += 2
        elif source[position] == "`":
            return position + 1
        elif source.startswith("${", position):
            position += 2
            depth, last = 1, None
            while depth:
                while blank := BLANK.match(source, position):
                    position = blank.end()
                if position >= len(source):
                    break
                kind, end = token_at(source, position, last)
                last = Token(kind, source[position:end], "")
                depth += {"{": 1, "}": -1}.get(last.text, 0) if kind == "sign" else 0
                position = end
        else:
            position += 1
    raise BundleError("a template literal without an end")


def joined(parts: list[Token]) -> str:
    """Returns the text of the tokens, with the necessary spaces. A line end is kept if it may end a statement."""
    text: list[str] = []
    last = Token("sign", ";", "")
    for token in parts:
        text.append(between(last, token))
        text.append(token.text)
        last = token
    return "".join(text)


def between(last: Token, token: Token) -> str:
    if not token.gap:
        return ""
    if token.gap == "\n" and not (last.kind == "sign" and last.text in "{(,;[=?:&|<") and token.text not in ")]}":
        return "\n"
    words = ("name", "number")
    if last.kind in words and token.kind in words:
        return " "
    # Without a space, "1 .x" would become the number "1.", "a + +b" would become "a++b", and "a / /b/" would become a
    # comment. A word and a text need no space between them.
    number = last.kind == "number" and token.text == "."
    pair = last.kind == "sign" and token.text[0] == last.text and last.text in "+-/"
    return " " if number or pair else ""


class Module(NamedTuple):
    path: pathlib.Path
    # The imported names, by the module.
    imports: dict[pathlib.Path, list[str]]
    exports: list[str]
    # The names that this module exports from other modules, by the other module.
    passed: dict[pathlib.Path, list[str]]
    body: list[Token]


def names_until_brace(parts: list[Token], position: int, path: pathlib.Path) -> tuple[list[str], int]:
    """Returns the names in `{ a, b }`, and the position after the closing brace."""
    if parts[position].text != "{":
        raise BundleError(f"{path.name}: imports and exports must be lists of names, not {parts[position].text}")
    names: list[str] = []
    position += 1
    while parts[position].text != "}":
        if parts[position].kind == "name" and parts[position + 1].text in (",", "}"):
            names.append(parts[position].text)
        elif parts[position].text != ",":
            raise BundleError(f"{path.name}: an import or export with an alias, at {parts[position].text}")
        position += 1
    return names, position + 1


def module(path: pathlib.Path) -> Module:
    """Reads a module, and removes its imports and exports from its body."""
    parts = tokens(path.read_text())
    found = Module(path, {}, [], {}, [])
    depth = position = 0

    def source_at(position: int) -> tuple[pathlib.Path, int]:
        if parts[position].text != "from":
            raise BundleError(f"{path.name}: expected from, not {parts[position].text}")
        name = parts[position + 1].text[1:-1]
        if not name.startswith("."):
            raise BundleError(f"{path.name}: {name} is not in this folder")
        end = position + 2
        return (path.parent / name).resolve(), end + (end < len(parts) and parts[end].text == ";")

    while position < len(parts):
        token = parts[position]
        is_word = token.kind == "name" and (not position or parts[position - 1].text != ".")
        if is_word and token.text == "import" and parts[position + 1].text not in (":", "="):
            if depth or parts[position + 1].text in ("(", "."):
                raise BundleError(f"{path.name}: import() and import.meta mean something else in a joined module")
            names, end = names_until_brace(parts, position + 1, path)
            target, position = source_at(end)
            found.imports.setdefault(target, []).extend(names)
            continue
        if is_word and token.text == "export" and not depth:
            following = parts[position + 1]
            if following.text == "{":
                names, end = names_until_brace(parts, position + 1, path)
                target, position = source_at(end)
                found.passed.setdefault(target, []).extend(names)
                continue
            name = position + 2 + (following.text == "async")
            if following.text not in ("const", "class", "function", "async"):
                raise BundleError(f"{path.name}: export {following.text} is not taken; name what is exported")
            if parts[name].kind != "name":
                raise BundleError(f"{path.name}: one exported name for each const, not {parts[name].text}")
            found.exports.append(parts[name].text)
            found.body.append(following._replace(gap=token.gap))
            position += 2
            continue
        if token.text[0] == "`" and re.search(r"\bimport\s*[.(]", token.text):
            raise BundleError(f"{path.name}: import() or import.meta in a template literal")
        depth += {"{": 1, "(": 1, "[": 1, "}": -1, ")": -1, "]": -1}.get(token.text, 0) if token.kind == "sign" else 0
        found.body.append(token)
        position += 1
    return found


def bundle(
    entry: pathlib.Path, externals: set[pathlib.Path], root: pathlib.Path
) -> tuple[str, set[pathlib.Path]]:
    """Returns an entry and everything that it imports as one module, and the set of joined files. Imports of externals
    remain imports."""
    modules: dict[pathlib.Path, Module] = {}
    order: list[Module] = []
    entry = entry.resolve()

    def visit(path: pathlib.Path, way: tuple[pathlib.Path, ...]) -> None:
        if path in way:
            raise BundleError(f"modules import each other: {', '.join(p.name for p in (*way, path))}")
        if path in modules or (path in externals and path != entry):
            return
        modules[path] = module(path)
        for target in (*modules[path].imports, *modules[path].passed):
            visit(target, (*way, path))
        order.append(modules[path])

    visit(entry, ())
    check_names(order, modules)
    text = ["// Hermes, SPDX-License-Identifier: Apache-2.0\n"]
    outside: dict[pathlib.Path, set[str]] = {}
    for part in order:
        for target, names in part.imports.items():
            if target not in modules:
                outside.setdefault(target, set()).update(names)
    for target, names in sorted(outside.items()):
        text.append(f'import{{{",".join(sorted(names))}}}from"{relative(target, entry, root)}";\n')
    for part in order:
        body = joined(part.body)
        if part.path == entry:
            text.append(body)
            names = part.exports + [name for passed in part.passed.values() for name in passed]
            text.append(f'\nexport{{{",".join(names)}}};' if names else "")
        elif part.exports:
            names = ",".join(part.exports)
            text.append(f"const{{{names}}}=(()=>{{{body}\nreturn{{{names}}}}})();\n")
        else:
            text.append(f"(()=>{{{body}\n}})();\n")
    return "".join(text).strip() + "\n", set(modules)


def relative(target: pathlib.Path, entry: pathlib.Path, root: pathlib.Path) -> str:
    up = "../" * len(entry.relative_to(root.resolve()).parent.parts)
    return (up or "./") + target.relative_to(root.resolve()).as_posix()


def check_names(order: list[Module], modules: dict[pathlib.Path, Module]) -> None:
    """Refuses exports that would replace another export, or a global name that another module uses."""
    owners: dict[str, Module] = {}
    for part in order:
        for target, names in (*part.imports.items(), *part.passed.items()):
            missing = [name for name in names if target in modules and name not in modules[target].exports]
            if missing:
                raise BundleError(f"{part.path.name}: {target.name} does not export {', '.join(missing)}")
        for name in part.exports:
            if name in owners:
                raise BundleError(f"{owners[name].path.name} and {part.path.name} both export {name}")
            owners[name] = part
    for part in order:
        for target, names in part.imports.items():
            for name in names:
                if target not in modules and name in owners:
                    raise BundleError(f"{part.path.name} imports {name}, and {owners[name].path.name} exports one, too")
    for part in order:
        known = {name for names in part.imports.values() for name in names} | set(part.exports)
        used: set[str] = set()
        end = Token("sign", ";", "")
        for before, token, after in zip([end, *part.body], part.body, [*part.body[1:], end]):
            if token.kind == "name" and before.text != "." and after.text != ":":
                used.add(token.text)
                # The module itself declares this name.
                if before.text in ("const", "let", "class", "function", "(", ",", "{") or after.text == "=":
                    known.add(token.text)
        for name in sorted((used - known) & owners.keys()):
            owner = owners[name].path.name
            raise BundleError(f"{part.path.name} uses {name}, which {owner} exports, without an import")
