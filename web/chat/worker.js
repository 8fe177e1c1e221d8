// Hermes
// SPDX-License-Identifier: Apache-2.0

// The chat's service worker. It stores the page's files for use without a network, and shows notifications.
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
 * Returns the response from the network, so that a page is never older than its server. Without a network, returns the
 * stored file.
 *
 * @param {Request} request
 */
async function answer(request) {
    let response;
    try {
        response = await fetch(request);
    } catch (error) {
        const kept = await keptFor(request).catch(() => undefined);
        if (kept) return kept;
        throw error;
    }
    // The response is used even if it cannot be stored.
    if (response.ok) await keep(request, response.clone()).catch(() => {});
    return response;
}

/** @param {Request} request */
async function keptFor(request) {
    return (await caches.open(cacheName)).match(request, { ignoreSearch: true });
}

/**
 * @param {Request} request
 * @param {Response} response
 */
async function keep(request, response) {
    // The query is removed. Otherwise each address with another query would be stored for good.
    await (await caches.open(cacheName)).put(request.url.split("?")[0], response);
}
