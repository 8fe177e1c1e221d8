// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The protocols that every store implements, together, for a test.
package typealias Store = APIKeyStore & AccountStore & AdministratorStore & MessageStore & PushTokenStore & SessionStore
    & SocialStore & WebhookStore

/// A function that makes an empty store.
package typealias StoreMaker = @Sendable (StoreSettings) async throws -> any Store

/// A behaviour that every store must have. Test targets run all cases with each store.
package struct ConformanceCase: Sendable, CustomStringConvertible {
    /// A sentence that describes the behaviour.
    package let description: String
    /// Throws ``ConformanceFailure`` if the store behaves differently.
    package let run: @Sendable (_ makeStore: StoreMaker) async throws -> Void

    init(_ description: String, _ run: @escaping @Sendable (_ makeStore: StoreMaker) async throws -> Void) {
        self.description = description
        self.run = run
    }
}

/// Thrown if a store behaves differently from a case; contains the place in the source.
package struct ConformanceFailure: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) { self.description = description }
}

/// Throws if `condition` is false.
package func expect(
    _ condition: Bool,
    _ comment: String = "",
    file: StaticString = #fileID,
    line: Int = #line
) throws {
    guard condition else { throw ConformanceFailure(description: "\(file):\(line): does not hold. \(comment)") }
}

/// Throws if the two values differ.
package func expectEqual<Value: Equatable>(
    _ found: Value,
    _ expected: Value,
    _ comment: String = "",
    file: StaticString = #fileID,
    line: Int = #line
) throws {
    guard found == expected else {
        throw ConformanceFailure(
            description: "\(file):\(line): found \(found), expected \(expected). \(comment)"
        )
    }
}

/// Throws unless `body` throws an error of the core with this code.
package func expectError<Value>(
    _ code: HermesError.Code,
    file: StaticString = #fileID,
    line: Int = #line,
    _ body: () async throws -> Value
) async throws {
    do {
        let value = try await body()
        throw ConformanceFailure(description: "\(file):\(line): expected error \(code.rawValue), found \(value)")
    } catch let error as HermesError {
        try expectEqual(error.code, code, "\(error)", file: file, line: line)
    }
}
