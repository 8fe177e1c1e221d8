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
