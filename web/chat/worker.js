// Hermes
// SPDX-License-Identifier: Apache-2.0

// The chat's service worker: keeps the page's files for when there is no network, and shows notifications.
import { showNotifications } from "../notifications.js";
import { addressOf, asks } from "./notified.js";

const cacheName = "hermes-chat";
const worker = /** @type {any} */ (self);

showNotifications(worker, { title: "Hermes Chat", page: addressOf, shows: asks });

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener("fetch", (/** @type {any} */ event) => {
    const { request } = event;
    if (request.method !== "GET" || new URL(request.url).origin !== location.origin) return;
    event.respondWith(answer(request));
});

/**
 * From the network if there is one, so that a page is never older than its server; else what was kept.
 *
 * @param {Request} request
 */
async function answer(request) {
    const cache = await caches.open(cacheName);
    try {
        const response = await fetch(request);
        // Without what follows a question mark, or each address would be kept for good.
        if (response.ok) await cache.put(request.url.split("?")[0], response.clone());
        return response;
    } catch (error) {
        const kept = await cache.match(request, { ignoreSearch: true });
        if (kept) return kept;
        throw error;
    }
}
