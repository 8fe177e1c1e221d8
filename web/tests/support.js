// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * The random numbers of the case files. The generator is SplitMix64; the low 53 bits of each output become a fraction.
 * The Swift SDK draws the same numbers from the same seed.
 *
 * @param {number} seed
 */
export function splitMix64(seed) {
    const mask = (1n << 64n) - 1n;
    let state = BigInt(seed);
    return () => {
        state = (state + 0x9e3779b97f4a7c15n) & mask;
        let z = state;
        z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
        z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & mask;
        z ^= z >> 31n;
        return Number(z & ((1n << 53n) - 1n)) / 2 ** 53;
    };
}
