// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Claims of keys, so that no two nodes send the same notifications. While nodes join and leave, two of them may both
/// own a user (``ClusterMember/owns(_:)``). A lone node claims nothing.
extension PushHandOff {
    /// The keys of a batch that this node may check.
    struct Claims: Sendable {
        let keys: [HandOffKey]
        /// The number of the claim in the record; nil: this node is alone.
        let number: UInt64?
    }

    /// Claims keys. Their devices must be read after that: the results of the last holder are in the store when its
    /// claim has been released. The keys that another node has claimed wait.
    func claim(_ keys: [HandOffKey]) async -> Claims {
        guard let cluster, !keys.isEmpty else { return Claims(keys: keys, number: nil) }
        let number = state.withLock { state in
            state.lastClaim += 1
            return state.lastClaim
        }
        do throws(HermesError) {
            let claimed = try await cluster.claim(keys, number: number)
            for key in keys where !claimed.contains(key) { wait(key, about: 1) }
            return Claims(keys: keys.filter(claimed.contains), number: number)
        } catch {
            for key in keys { retry(key, error) }
            return Claims(keys: [], number: number)
        }
    }

    /// Releases the claims of a batch that has been checked and sent. A key whose results are not recorded stays
    /// claimed: its next check replaces the claim.
    func release(_ claims: Claims) async {
        guard let number = claims.number else { return }
        state.withLock { state in
            for key in claims.keys where !state.unrecorded.contains(key) { state.unneededClaims[key] = number }
        }
        await releaseUnneededClaims()
    }

    /// Releases all claims that are not needed. If the record fails, they are released later.
    func releaseUnneededClaims() async {
        let unneeded = state.withLock { state in
            defer { state.unneededClaims = [:] }
            return state.unneededClaims
        }
        guard let cluster, !unneeded.isEmpty else { return }
        do throws(HermesError) {
            try await cluster.release(unneeded)
        } catch {
            report(.failed(error))
            state.withLock { $0.unneededClaims.merge(unneeded, uniquingKeysWith: max) }
        }
    }
}
