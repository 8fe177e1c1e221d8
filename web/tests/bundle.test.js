// Hermes
// SPDX-License-Identifier: Apache-2.0

// The scripts that the server serves. scripts/embed-web makes them from the modules.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

const root = fileURLToPath(new URL("../../", import.meta.url));
/** The largest compressed size of hermes.js with its imports, in bytes. */
const maxBytes = 29 * 1024;

let folder = "";
before(() => {
    folder = mkdtempSync(join(tmpdir(), "hermes-bundle-"));
    // The files must count as modules, independent of this package.
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
});
after(() => rmSync(folder, { recursive: true }));

/** Runs the bundler on modules. `a.js` is the entry, and `outside.js` stays a separate module. */
function bundle(name, modules) {
    const source = join(folder, name);
    mkdirSync(source);
    for (const [path, text] of Object.entries(modules)) writeFileSync(join(source, path), text);
    const script = `
import pathlib, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import web_bundle
root = pathlib.Path(sys.argv[2]).resolve()
try:
    text, _ = web_bundle.bundle(root / "a.js", {root / "a.js", root / "outside.js"}, root)
    (root / "bundle.js").write_text(text)
except web_bundle.BundleError as error:
    print(error)
`;
    const refusal = execFileSync("python3", ["-c", script, join(root, "scripts"), source], { encoding: "utf8" }).trim();
    return { refusal, source };
}

const load = (source, path) => import(pathToFileURL(join(source, path)).href);

describe("what the server serves", () => {
    let served = "";
    before(() => {
        served = join(folder, "served");
        execFileSync(join(root, "scripts/embed-web"), ["--to", served]);
        writeFileSync(join(served, "package.json"), '{ "type": "module" }');
    });

    test("the SDK is one file of at most 29 KiB, compressed", (context) => {
        const text = readFileSync(join(served, "hermes.js"), "utf8");
        const bytes = gzipSync(text, { level: 9 }).length;
        context.diagnostic(`${bytes} bytes compressed, ${text.length} unpacked`);
        assert.ok(bytes <= maxBytes, `${bytes} bytes`);
        assert.doesNotMatch(text, /\bimport\b/);
        assert.deepEqual(readdirSync(served).filter((name) => name.endsWith(".js")).sort(), [
            "hermes.js",
            "notifications.js",
            "service-worker.js",
        ]);
    });

    test("all pages together take less than 200 KB, compressed", (context) => {
        const files = readdirSync(served, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
        const sizes = files.map((file) => gzipSync(readFileSync(join(file.parentPath ?? file.path, file.name)), { level: 9 }).length);
        const sum = sizes.reduce((total, size) => total + size, 0);
        context.diagnostic(`${sum} bytes in ${files.length} files`);
        assert.ok(sum < 200_000);
    });

    test("it has the same names as the modules, and its functions take the same arguments", async () => {
        const [one, other] = await Promise.all([load(served, "hermes.js"), import("../hermes.js")]);
        assert.deepEqual(Object.keys(one).sort(), Object.keys(other).sort());
        for (const [name, value] of Object.entries(other)) {
            assert.equal(typeof one[name], typeof value, name);
            if (typeof value !== "function") continue;
            assert.equal(one[name].name, name);
            assert.equal(one[name].length, value.length, name);
            const methods = (type) => Object.getOwnPropertyNames(type.prototype ?? {}).sort();
            assert.deepEqual(methods(one[name]), methods(value), name);
        }
    });
});

describe("the bundler", () => {
    const modules = {
        "a.js": `
// A comment with "quotes" and \`ticks\`
import { add, Counter } from "./b.js";
import { limit } from "./c.js";

/** @type {any} */
const url = "http://example.org/*no comment*/"; // a comment
const single = 'it\\'s // none';
const private_ = "the entry's";
const one = 1, two = 2
const asi = one
/* a cast */ const next = [one, two]
;(() => two)()
let count = two
++count
const template = \`a \${ \`b \${ "}" + /[}\\/\`]/.source } // kept\` } /* kept */
  two lines\`;
const regexes = [/\\/\\/x/.test("//x"), 4 / 2 / 1, "ab".replace(/[/"']/g, ""), (8) / 2, next[0] / 2];
function early() {
    return /* nothing follows
    on this line */
    1
}
const quotient = one / /1/.exec("1")[0];
const signs = [one + +two, one - -two, one- -two, one + + +two, - -one, !(one in { 1: 1 }), typeof /x/];
const number = 1 .toFixed(1) + 1.5.toFixed(1) + 1e-3 + 0x1f + 1_000;
const object = { async: 1, import: 2, get from() { return 3; }, export: 4, add };
class Shape extends Counter {
    #side = 3; static #made = 0
    static make() { Shape.#made++; return new Shape() }
    get side() { return this.#side }
    async *steps() { for await (const step of [1, 2]) yield step }
    has(value) { return #side in value }
}
label: for (const value of [1, 2, 3]) { for (;;) { if (value > 1) break label; continue label } }
const wait = async () => { const all = []; for await (const step of Shape.make().steps()) all.push(step); return all };
const chain = next?.[0] ?? (one ? .5 : 1);
export const result = async () => [
    url, single, private_, asi, next, count, template, regexes, early() ?? null, quotient, signs, number,
    [object.async, object.import, object.from, object.export, object.add(1)],
    Shape.make().side, Shape.make().has({}), await wait(), chain, new Shape().increased(), limit, 你好,
]
const 你好 = "hello"
export { increase } from "./b.js";
`,
        "b.js": `
import { limit } from "./c.js";
const private_ = "of b";
export const add = (value) => value + limit
export class Counter { value = 1; increased() { return increase(this.value) + private_ } }
export function increase(value) { return value + 1 }
`,
        "c.js": "const private_ = 1;\nexport const limit = 10;\n",
    };

    test("a bundle does what its modules do", async () => {
        const { refusal, source } = bundle("same", modules);
        assert.equal(refusal, "");
        const [one, other] = await Promise.all([load(source, "bundle.js"), load(source, "a.js")]);
        assert.deepEqual(await one.result(), await other.result());
        assert.deepEqual(Object.keys(one), Object.keys(other));
        assert.equal(one.increase(2), 3);
        const text = readFileSync(join(source, "bundle.js"), "utf8");
        assert.doesNotMatch(text, /a comment|a cast|nothing follows/);
    });

    test("what stays outside is imported once", async () => {
        const { refusal, source } = bundle("outside", {
            "a.js": 'import { x } from "./outside.js";\nimport { y } from "./b.js";\nexport const sum = x + y;\n',
            "b.js": 'import { x } from "./outside.js";\nexport const y = x;\n',
            "outside.js": "export const x = 21;\n",
        });
        assert.equal(refusal, "");
        assert.equal((await load(source, "bundle.js")).sum, 42);
        assert.equal(readFileSync(join(source, "bundle.js"), "utf8").split('from"./outside.js"').length, 2);
    });

    const outside = "export const x = 1;";
    const refused = {
        "an alias": [{ "a.js": 'import { x as y } from "./b.js";', "b.js": outside }, /alias/],
        "a namespace": [{ "a.js": 'import * as y from "./b.js";', "b.js": outside }, /lists of names/],
        "a default import": [{ "a.js": 'import y from "./b.js";', "b.js": outside }, /lists of names/],
        "a default export": [{ "a.js": "export default 1;" }, /export default/],
        "an exported variable": [{ "a.js": "export let x = 1;" }, /export let/],
        "an exported pattern": [{ "a.js": "export const { x } = {};" }, /one exported name/],
        "a package": [{ "a.js": 'import { x } from "node:fs";' }, /not in this folder/],
        "a dynamic import": [{ "a.js": 'const x = () => import("./b.js");' }, /import\(\)/],
        "a dynamic import in a template": [{ "a.js": 'const x = `${await import("./b.js")}`;' }, /import\(\)/],
        "the module's address": [{ "a.js": "const x = import.meta.url;" }, /import\.meta/],
        "an import of nothing": [{ "a.js": 'import { y } from "./b.js";', "b.js": outside }, /does not export y/],
        "a circle": [
            {
                "a.js": 'import { x } from "./b.js"; export const y = 1;',
                "b.js": 'import { y } from "./a.js"; export const x = 1;',
            },
            /import each other/,
        ],
        "two exports of one name": [
            {
                "a.js": 'import { x } from "./b.js"; import { y } from "./c.js";',
                "b.js": outside,
                "c.js": "export const y = 1; export const x = 2;",
            },
            /both export x/,
        ],
        "an export that hides a global of another module": [
            {
                "a.js": 'import { x } from "./b.js"; import { y } from "./c.js"; x(y);',
                "b.js": 'export const x = () => fetch("/");',
                "c.js": "export const y = 1; export const fetch = 2;",
            },
            /uses fetch/,
        ],
        "a string without an end": [{ "a.js": 'const x = "abc' }, /without an end/],
        "a template without an end": [{ "a.js": "const x = `abc${1" }, /without an end/],
    };
    for (const [index, [name, [files, reason]]] of Object.entries(refused).entries()) {
        test(`refuses ${name}`, () => assert.match(bundle(`refused-${index}`, files).refusal, reason));
    }
});

test("style sheets say start and end, so that pages from right to left are mirrored", () => {
    for (const page of ["chat", "home", "room"]) {
        const text = readFileSync(join(root, `web/${page}/${page}.css`), "utf8");
        const physical = /\b(?:margin|padding|border|inset)-(?:left|right)\b|\b(?:left|right)\s*:|:\s*(?:left|right)\b/g;
        assert.deepEqual(text.match(physical), null, page);
        // A property with four values sets the left and the right side separately.
        const four = [...text.matchAll(/\b(?:margin|padding|inset|border-radius):\s*([^;]+);/g)];
        const sided = four.filter(([, value]) => {
            const sides = value.replace(/\([^)]*\)/g, "()").trim().split(/\s+/);
            return sides.length === 4 && sides[1] !== sides[3];
        });
        assert.deepEqual(sided.map(([text]) => text), [], page);
    }
});
