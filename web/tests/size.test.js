// Hermes
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

/** What a page loads at most, without comments and indentation, each file compressed by itself. */
const maxBytes = 25_000;

test("the SDK's code takes at most 25 KB compressed", (context) => {
    const folder = new URL("../", import.meta.url);
    const names = readdirSync(folder).filter((name) => name.endsWith(".js") && !name.startsWith("node-"));
    let [code, all] = [0, 0];
    for (const name of names) {
        const text = readFileSync(new URL(name, folder), "utf8");
        const bare = text.replace(/\/\*\*.*?\*\//gs, "").replace(/^\s*\/\/.*$/gm, "").replace(/^\s+/gm, "");
        code += gzipSync(bare, { level: 9 }).length;
        all += gzipSync(text, { level: 9 }).length;
    }
    context.diagnostic(`${names.length} files: ${code} bytes of code, ${all} with comments`);
    assert.ok(code <= maxBytes, `${code} bytes`);
});
