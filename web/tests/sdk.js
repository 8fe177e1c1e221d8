// Hermes
// SPDX-License-Identifier: Apache-2.0

// The tested SDK: its modules, or the single file from the server that WEB_SDK names.
const sdk = await import(process.env.WEB_SDK ?? "../hermes.js");

export const { disablePush, enablePush, HermesClient, MemoryStore, SharedClient, standardPolicy } = sdk;
