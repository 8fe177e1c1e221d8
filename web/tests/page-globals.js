// Hermes
// SPDX-License-Identifier: Apache-2.0

// What modules of the chat find in a page when they are loaded. Import it before them.
export const storage = { getItem: () => "en", setItem() {} };
for (const [name, value] of Object.entries({
    location: { search: "", origin: "http://test" },
    localStorage: storage,
    sessionStorage: storage,
})) {
    Object.defineProperty(globalThis, name, { value, configurable: true });
}

/**
 * Makes the storage keep what is written until the test ends.
 *
 * @param {import("node:test").TestContext} context
 * @returns {Map<string, string>} What it holds.
 */
export function keepStorage(context) {
    const kept = new Map();
    const real = { ...storage };
    context.after(() => Object.assign(storage, real));
    Object.assign(storage, {
        getItem: (/** @type {string} */ key) => kept.get(key) ?? null,
        setItem: (/** @type {string} */ key, /** @type {string} */ value) => void kept.set(key, value),
        removeItem: (/** @type {string} */ key) => void kept.delete(key),
    });
    return kept;
}
