// Hermes
// SPDX-License-Identifier: Apache-2.0

// Logging out. If the server can be reached, it is informed. Otherwise the log-out takes effect only in this browser,
// so that other people who use the browser do not see the account.

/** The time that a page waits for the server while it logs out, in milliseconds. */
const patience = 5000;

/**
 * Informs the server, if there is a connection and the server answers in time.
 *
 * @param {{ state: { is: string } }} client
 * @param {() => Promise<any>} farewell
 * @param {number} wait In milliseconds.
 * @returns {Promise<boolean>} Whether the server was informed.
 */
export async function tellServer(client, farewell, wait = patience) {
    const isLive = client.state.is === "live";
    // It begins even without a connection, and ends when the client is closed.
    const told = farewell().then(
        () => true,
        () => false,
    );
    const late = new Promise((resolve) => setTimeout(() => resolve(false), wait));
    return isLive && Promise.race([told, late]);
}

/**
 * Removes all records from the stores.
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
