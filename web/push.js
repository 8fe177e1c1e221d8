// Hermes
// SPDX-License-Identifier: Apache-2.0

/** @param {string} text base64url. */
function bytesOf(text) {
    const base64 = text.replace(/-/g, "+").replace(/_/g, "/");
    return Uint8Array.from(atob(base64), (digit) => digit.charCodeAt(0));
}

/**
 * Subscribes this browser to notifications, and registers the subscription with the server. The server sends pushes to
 * the browser while the client is not connected. Call this function from a click, because the browser asks the user.
 * Call it again at each start, because subscriptions end.
 *
 * @param {import("./api.js").Requests} client
 * @param {object} options
 * @param {string} options.publicKey The server's `push.webPush.publicKey`.
 * @param {string} [options.worker] The URL of the service worker. The worker's scope is the folder of this URL.
 * @returns {Promise<boolean>} Whether the user allows notifications.
 */
export async function enablePush(client, { publicKey, worker = "service-worker.js" }) {
    if ((await Notification.requestPermission()) !== "granted") return false;
    const registration = await navigator.serviceWorker.register(worker, { type: "module" });
    await navigator.serviceWorker.ready;
    const applicationServerKey = bytesOf(publicKey);
    let subscription = await registration.pushManager.getSubscription();
    const known = subscription?.options.applicationServerKey;
    if (subscription && known && String(new Uint8Array(known)) !== String(applicationServerKey)) {
        // The server's key has changed.
        await subscription.unsubscribe();
        subscription = null;
    }
    subscription ??= await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey });
    await client.registerPush(subscription);
    return true;
}

/**
 * Ends the notifications of this browser.
 *
 * @param {import("./api.js").Requests} client
 */
export async function disablePush(client) {
    const registration = await navigator.serviceWorker.getRegistration();
    const subscription = await registration?.pushManager.getSubscription();
    try {
        await client.clearPush();
    } finally {
        // This step also happens if the server cannot be reached. Then the next push fails, and the server deletes the
        // subscription.
        await subscription?.unsubscribe();
    }
}
