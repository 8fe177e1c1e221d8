// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Applies `transform` to all elements, at most `limit` at once; the results are in the order of the elements.
func concurrentMap<Element: Sendable, Value: Sendable>(
    _ elements: [Element],
    limit: Int,
    _ transform: @escaping @Sendable (Element) async -> Value
) async -> [Value] {
    await withTaskGroup(of: (Int, Value).self) { group in
        var results: [Value?] = Array(repeating: nil, count: elements.count)
        var next = 0
        func start() {
            guard next < elements.count else { return }
            let index = next
            next += 1
            group.addTask { (index, await transform(elements[index])) }
        }
        for _ in 0..<min(max(1, limit), elements.count) { start() }
        while let (index, value) = await group.next() {
            results[index] = value
            start()
        }
        return results.compactMap { $0 }
    }
}
