// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The waiter for a request's outcome. It is resumed once.
package struct RequestWaiter<Answer: Sendable>: Sendable {
    private let complete: @Sendable (Result<Answer, any Error>) -> Void

    init(_ complete: @escaping @Sendable (Result<Answer, any Error>) -> Void) { self.complete = complete }

    init(_ continuation: CheckedContinuation<Answer, any Error>) {
        complete = { continuation.resume(with: $0) }
    }

    func resume(with result: Result<Answer, any Error>) { complete(result) }
    func resume(throwing error: any Error) { complete(.failure(error)) }
}
