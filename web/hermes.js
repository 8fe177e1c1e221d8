// Hermes
// SPDX-License-Identifier: Apache-2.0

// The SDK's public names. docs/web.md describes them.
export { HermesClient } from "./client.js";
export { ErrorCode, HermesError } from "./errors.js";
export { adaptiveHeartbeat, pushHeartbeat } from "./heartbeat.js";
export { disablePush, enablePush } from "./push.js";
export { standardPolicy } from "./reconnect.js";
export { IndexedDBStore, MemoryStore } from "./stores.js";
export { SharedClient } from "./tabs.js";
