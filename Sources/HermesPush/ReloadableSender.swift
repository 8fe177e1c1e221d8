// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
package import HermesCore
import Synchronization

/// A sender whose key can be read again while it works. Requests that are under way continue with the old key.
///
/// State: a `Mutex` around the present sender and the contents of its key file.
package final class ReloadableSender: PushSender {
    /// The result of reading the key again.
    package enum Reloaded: Sendable, Hashable {
        /// The file is unchanged: the sender keeps its credentials.
        case unchanged
        case changed
    }

    /// The identity of a key.
    private struct Key: Equatable {
        /// The path with links resolved, because the file's name may contain the key's id.
        let path: String
        let content: Data
    }

    private let file: String
    private let setting: String
    private let make: @Sendable () async throws(PushConfigurationError) -> any PushSender
    private let state: Mutex<(key: Key, sender: any PushSender)>

    /// Creates the first sender.
    ///
    /// - Parameters:
    ///   - file: the key file.
    ///   - setting: the setting that names the file.
    ///   - make: creates a sender from the file's present contents.
    /// - Throws: ``PushConfigurationError``.
    package init(
        file: String,
        setting: String,
        make: @escaping @Sendable () async throws(PushConfigurationError) -> any PushSender
    ) async throws(PushConfigurationError) {
        self.file = file
        self.setting = setting
        self.make = make
        // The key is read before the sender reads it. So a file that changes in between counts as changed at the next
        // reload.
        let key = try Self.key(file, setting)
        state = Mutex((key, try await make()))
    }

    package func send(_ delivery: PushDelivery) async -> PushSendOutcome {
        await state.withLock { $0.sender }.send(delivery)
    }

    /// Reads the key again. If the file is unusable, the old key stays in use. Calls must not overlap.
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
