// Hermes
// SPDX-License-Identifier: Apache-2.0

// The SDK that is tested: its modules, or the one file that the server serves, which WEB_SDK names.
const sdk = await import(process.env.WEB_SDK ?? "../hermes.js");

export const { disablePush, enablePush, HermesClient, MemoryStore, SharedClient, standardPolicy } = sdk;
