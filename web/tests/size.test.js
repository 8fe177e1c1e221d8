// Hermes
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

/** What a page loads with hermes.js, without comments and indentation, compressed in one piece. */
const maxBytes = 25 * 1024;

test("the SDK's code takes at most 25 KiB compressed", (context) => {
    const folder = new URL("../", import.meta.url);
    const others = /^node-|^service-worker|^notifications/;
    const names = readdirSync(folder).filter((name) => name.endsWith(".js") && !others.test(name));
    const bytes = (text) => gzipSync(text, { level: 9 }).length;
    const texts = names.map((name) => readFileSync(new URL(name, folder), "utf8"));
    const bare = texts.map((text) =>
        text.replace(/\/\*\*.*?\*\//gs, "").replace(/^\s*\/\/.*$/gm, "").replace(/^\s+/gm, ""),
    );
    const sum = (/** @type {string[]} */ all) => all.reduce((total, text) => total + bytes(text), 0);
    const code = bytes(bare.join("\n"));
    context.diagnostic(`${code} bytes of code; ${sum(bare)} as ${names.length} files, ${sum(texts)} with comments`);
    assert.ok(code <= maxBytes, `${code} bytes`);
});
