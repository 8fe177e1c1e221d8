// Hermes
// SPDX-License-Identifier: Apache-2.0

// The globals of a page that modules of the chat need when they are loaded. Import this module before them.
export const storage = { getItem: () => "en", setItem() {} };
for (const [name, value] of Object.entries({
    location: { search: "", origin: "http://test" },
    localStorage: storage,
    sessionStorage: storage,
})) {
    Object.defineProperty(globalThis, name, { value, configurable: true });
}

/**
 * Makes the storage keep its values until the test ends.
 *
 * @param {import("node:test").TestContext} context
 * @returns {Map<string, string>} The stored values.
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
