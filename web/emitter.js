// Hermes
// SPDX-License-Identifier: Apache-2.0

/** Calls handlers by the name of an event. */
export class Emitter {
    /** @type {Map<string, Set<(event: any) => any>>} */
    #handlers = new Map();

    /**
     * Calls the handler at each event of this name.
     *
     * @param {string} name
     * @param {(event: any) => any} handler
     * @returns {() => void} Removes the handler.
     */
    on(name, handler) {
        const handlers = this.#handlers.get(name) ?? new Set();
        this.#handlers.set(name, handlers.add(handler));
        this.handlersChanged(name);
        return () => void handlers.delete(handler);
    }

    /** @param {string} name */
    handlers(name) {
        return [...(this.#handlers.get(name) ?? [])];
    }

    /**
     * Calls all handlers of the event, even if one of them throws. The error is reported in the same way as the
     * browser's unhandled errors.
     *
     * @param {string} name
     * @param {any} event
     */
    emit(name, event) {
        for (const handler of this.handlers(name)) {
            try {
                handler(event);
            } catch (error) {
                queueMicrotask(() => {
                    throw error;
                });
            }
        }
    }

    /** @param {string} _name */
    handlersChanged(_name) {}
}
