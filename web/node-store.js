// Hermes
// SPDX-License-Identifier: Apache-2.0

import { createHash } from "node:crypto";
import { open, readFile, rename } from "node:fs/promises";

/** @typedef {import("./stores.js").Store} Store */

/** A file is rewritten if its number of lines exceeds twice the number of its records by more than this number. */
const slack = 1000;

/**
 * Keeps records in one file, for Node. Each change is one line, `checksum JSON`. A process that is killed during a
 * write loses only that write. Damaged lines are skipped. Only the owner can read the file, because it contains the
 * token.
 *
 * @implements {Store}
 */
export class FileStore {
    /** The number of lines that were skipped because they were damaged. */
    damaged = 0;
    #path;
    /** @type {Map<string, any>} */
    #records = new Map();
    #lines = 0;
    /** @type {import("node:fs/promises").FileHandle | null} */
    #file = null;
    /** @type {Promise<any>} The chain of all writes so far. */
    #last = Promise.resolve();

    /** @param {string} path The file; its folder must exist. */
    constructor(path) {
        this.#path = path;
    }

    async load() {
        /** @type {string} */
        const text = await readFile(this.#path, "utf8").catch((error) => {
            if (error.code === "ENOENT") return "";
            throw error;
        });
        this.#records.clear();
        this.#lines = 0;
        for (const line of text.split("\n")) {
            if (!line) continue;
            this.#lines += 1;
            const json = line.slice(17);
            if (line.slice(0, 16) === checksum(json)) this.#change(JSON.parse(json));
            else this.damaged += 1;
        }
        // A killed process may have left an incomplete last line. The next line must not be appended to it.
        if (text && !text.endsWith("\n")) await this.#queue(() => this.#rewrite());
        return new Map(this.#records);
    }

    /** @param {[string, any][]} changes */
    write(changes, isDurable = false) {
        return this.#queue(async () => {
            /** @type {[string, any][]} */
            const before = changes.map(([key]) => [key, this.#records.get(key)]);
            this.#change(changes);
            try {
                await this.#append(changes, isDurable);
            } catch (error) {
                // A later write must not contain these changes.
                this.#change(before);
                throw error;
            }
        });
    }

    /**
     * @param {[string, any][]} changes
     * @param {boolean} isDurable
     */
    async #append(changes, isDurable) {
        if (this.#lines > slack + 2 * this.#records.size) return this.#rewrite();
        const lines = this.#lines + 1;
        // If this write fails, it may leave an incomplete line. Then the next write rewrites the file.
        this.#lines = Infinity;
        this.#file ??= await open(this.#path, "a", 0o600);
        await this.#file.appendFile(lineOf(changes));
        if (isDurable) await this.#file.datasync();
        this.#lines = lines;
    }

    close() {
        this.#queue(async () => {
            const file = this.#file;
            this.#file = null;
            await file?.close();
        }).catch(() => {});
    }

    /** @param {[string, any][]} changes */
    #change(changes) {
        for (const [key, value] of changes) {
            if (value === undefined || value === null) this.#records.delete(key);
            else this.#records.set(key, value);
        }
    }

    async #rewrite() {
        const path = `${this.#path}.new`;
        const file = await open(path, "w", 0o600);
        try {
            await file.writeFile(this.#records.size ? lineOf([...this.#records]) : "");
            await file.datasync();
        } finally {
            await file.close();
        }
        await this.#file?.close();
        this.#file = null;
        await rename(path, this.#path);
        this.#lines = 1;
    }

    /**
     * @template T
     * @param {() => Promise<T>} task
     * @returns {Promise<T>}
     */
    #queue(task) {
        const result = this.#last.then(task);
        this.#last = result.catch(() => {});
        return result;
    }
}

/** @param {[string, any][]} changes */
function lineOf(changes) {
    const json = JSON.stringify(changes.map(([key, value]) => [key, value === undefined ? null : value]));
    return `${checksum(json)} ${json}\n`;
}

/** @param {string} json */
const checksum = (json) => createHash("sha256").update(json).digest("hex").slice(0, 16);
