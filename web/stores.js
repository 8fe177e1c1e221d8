// Hermes
// SPDX-License-Identifier: Apache-2.0

import { ErrorCode, HermesError } from "./errors.js";

/**
 * Keeps the data that must be kept after the page is closed: the device's id, the token, the cursor and the outbox.
 *
 * @typedef {object} Store
 * @property {() => Promise<Map<string, any>>} load Returns all records.
 * @property {(changes: [key: string, value: any][], isDurable?: boolean) => Promise<void>} write Writes all changes or
 *   none. An undefined value removes the record. The promise is fulfilled when the store has the changes. With
 *   `isDurable`, it is fulfilled when they survive a loss of power, as far as the platform can determine.
 * @property {() => void} close
 */

/**
 * Keeps records until the page or the process ends.
 *
 * @implements {Store}
 */
export class MemoryStore {
    /** @type {Map<string, any>} */
    records = new Map();

    async load() {
        return new Map(this.records);
    }

    /** @param {[string, any][]} changes */
    async write(changes) {
        for (const [key, value] of changes) {
            if (value === undefined) this.records.delete(key);
            else this.records.set(key, value);
        }
    }

    close() {}
}

const recordsName = "records";

/**
 * Keeps records in IndexedDB. They are kept across reloads and after the tab is closed.
 *
 * @implements {Store}
 */
export class IndexedDBStore {
    #name;
    /** @type {Promise<IDBDatabase> | null} */
    #database = null;

    /** @param {string} name The name of the database. Use one database for each account that the page keeps
     *   separate. */
    constructor(name = "hermes") {
        this.#name = name;
    }

    async load() {
        const store = (await this.#open()).transaction(recordsName).objectStore(recordsName);
        const [keys, values] = await Promise.all([done(store.getAllKeys()), done(store.getAll())]);
        return new Map(keys.map((key, index) => [String(key), values[index]]));
    }

    /** @param {[string, any][]} changes */
    async write(changes, isDurable = false) {
        const durability = isDurable ? "strict" : "relaxed";
        const database = await this.#open();
        // TypeScript's library does not declare this option yet.
        const options = /** @type {any} */ ({ durability });
        const transaction = /** @type {any} */ (database).transaction(recordsName, "readwrite", options);
        const store = transaction.objectStore(recordsName);
        for (const [key, value] of changes) {
            if (value === undefined) store.delete(key);
            else store.put(value, key);
        }
        return new Promise((resolve, reject) => {
            transaction.oncomplete = () => resolve(undefined);
            transaction.onabort = () => reject(transaction.error ?? new Error("IndexedDB aborted the write"));
        });
    }

    close() {
        this.#database?.then((database) => database.close()).catch(() => {});
        this.#database = null;
    }

    #open() {
        this.#database ??= new Promise((resolve, reject) => {
            const request = indexedDB.open(this.#name, 1);
            request.onupgradeneeded = () => void request.result.createObjectStore(recordsName);
            request.onerror = () => reject(request.error);
            request.onsuccess = () => {
                const database = request.result;
                const forget = () => {
                    database.close();
                    this.#database = null;
                };
                // If another page deletes the database, or if the browser closes it, the next use opens it again.
                database.onversionchange = forget;
                database.onclose = forget;
                resolve(database);
            };
        });
        this.#database.catch(() => (this.#database = null));
        return this.#database;
    }
}

/** Locks for pages without Web Locks. Browsers offer Web Locks only over https and on the local machine. */
export const databaseLocks = {
    /**
     * Waits for a lock, and holds it until the promise of `body` is fulfilled. A page that makes a new version of the
     * lock's database holds the lock. A browser makes a new version only after all other connections to the database
     * are closed.
     *
     * @param {string} name
     * @param {{ signal: AbortSignal }} options After an abort, `body` is not called any more.
     * @param {() => Promise<any>} body
     */
    async request(name, { signal }, body) {
        if (!globalThis.indexedDB) {
            throw new HermesError(ErrorCode.unsupported, "tabs need https, localhost or IndexedDB");
        }
        /** @type {number | undefined} */
        let version;
        for (let isHeld = false; !isHeld; ) {
            const request = indexedDB.open(`lock/${name}`, version);
            request.onupgradeneeded = () => (isHeld = true);
            try {
                const database = await done(request);
                if (isHeld && !signal.aborted) await body();
                version = database.version + 1;
                database.close();
            } catch (error) {
                // In the meantime, other pages have made later versions.
                if (/** @type {any} */ (error).name !== "VersionError") throw error;
                version = undefined;
            }
        }
    },
};

/**
 * @template T
 * @param {IDBRequest<T>} request
 * @returns {Promise<T>}
 */
function done(request) {
    return new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
}
