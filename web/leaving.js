// Hermes
// SPDX-License-Identifier: Apache-2.0

// Logging out. The server is told if it can be reached; without it the log-out counts in this browser, whose user may
// leave it to others.

/** For how long a page that logs out waits for the server, in milliseconds. */
const patience = 5000;

/**
 * Tells the server, unless there is no connection or no answer in time.
 *
 * @param {{ state: { is: string } }} client
 * @param {() => Promise<any>} farewell
 * @param {number} wait In milliseconds.
 * @returns {Promise<boolean>} Whether the server was told.
 */
export async function tellServer(client, farewell, wait = patience) {
    const isLive = client.state.is === "live";
    // Begins without a connection, too: it ends when the client is closed.
    const told = farewell().then(
        () => true,
        () => false,
    );
    const late = new Promise((resolve) => setTimeout(() => resolve(false), wait));
    return isLive && Promise.race([told, late]);
}

/**
 * Removes what the browser keeps.
 *
 * @param {import("./stores.js").Store[]} stores
 */
export async function clearStores(stores) {
    for (const store of stores) {
        const records = await store.load();
        await store.write([...records.keys()].map((key) => [key, undefined]), true);
        store.close();
    }
}
