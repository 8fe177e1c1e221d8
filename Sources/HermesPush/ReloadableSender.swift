// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
package import HermesCore
import Synchronization

/// A sender whose key can be read again while it works: what is being sent goes on with the old one.
///
/// State: a `Mutex` around the sender in use and what its key file held.
package final class ReloadableSender: PushSender {
    /// What reading the key again came to.
    package enum Reloaded: Sendable, Hashable {
        /// The file holds what it held: the sender goes on as it is, with the credentials it has.
        case unchanged
        case changed
    }

    /// What tells one key from another.
    private struct Key: Equatable {
        /// Where links lead: the name may be a part of it.
        let path: String
        let content: Data
    }

    private let file: String
    private let setting: String
    private let make: @Sendable () async throws(PushConfigurationError) -> any PushSender
    private let state: Mutex<(key: Key, sender: any PushSender)>

    /// Makes the first sender.
    ///
    /// - Parameters:
    ///   - file: where the key is.
    ///   - setting: what is configured with it.
    ///   - make: makes a sender by what the file holds now.
    /// - Throws: ``PushConfigurationError``.
    package init(
        file: String,
        setting: String,
        make: @escaping @Sendable () async throws(PushConfigurationError) -> any PushSender
    ) async throws(PushConfigurationError) {
        self.file = file
        self.setting = setting
        self.make = make
        // Before the sender reads it: a file that changes in between is taken for a new one next time.
        let key = try Self.key(file, setting)
        state = Mutex((key, try await make()))
    }

    package func send(_ deliveries: [PushDelivery]) async -> [PushSendOutcome] {
        await state.withLock { $0.sender }.send(deliveries)
    }

    /// Reads the key again; one that cannot be used leaves the old one in use. Not to be called twice at once.
    ///
    /// - Throws: ``PushConfigurationError``.
    package func reload() async throws(PushConfigurationError) -> Reloaded {
        let key = try Self.key(file, setting)
        guard state.withLock({ $0.key != key }) else { return .unchanged }
        let sender = try await make()
        state.withLock { $0 = (key, sender) }
        return .changed
    }

    private static func key(_ file: String, _ setting: String) throws(PushConfigurationError) -> Key {
        Key(
            path: URL(fileURLWithPath: file).resolvingSymlinksInPath().path,
            content: try KeyFile.read(file, setting: setting)
        )
    }
}
