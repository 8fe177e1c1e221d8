// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Claims of keys, so that no two nodes send the same notifications. While nodes join or leave, two nodes may own the
/// same user (``ClusterMember/owns(_:)``). A lone node claims nothing.
extension PushHandOff {
    /// The keys of a batch that this node may check.
    struct Claims: Sendable {
        let keys: [HandOffKey]
        /// The number of the claim in the record; nil if nothing was claimed.
        let number: UInt64?
    }

    /// Claims keys. The devices of the claimed keys must be read after the call: the results of the last holder are in
    /// the store only when the last holder's claim has been released. Keys that another node has claimed wait.
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
            // The record may have accepted the claim.
            state.withLock { state in for key in keys { state.needsNoMore(key, number) } }
            for key in keys { retry(key, error) }
            return Claims(keys: [], number: nil)
        }
    }

    /// Releases the claims of a batch that has been checked and sent. A key whose results are not recorded stays
    /// claimed until they are recorded (``recordKept()``).
    func release(_ claims: Claims) async {
        guard let number = claims.number else { return }
        state.withLock { state in
            for key in claims.keys {
                if state.unrecorded.contains(key) {
                    state.keptClaims[key] = max(number, state.keptClaims[key] ?? 0)
                } else {
                    state.needsNoMore(key, number)
                }
            }
        }
        await releaseUnneededClaims()
    }

    /// Releases all claims that are not needed. If the record fails, the claims are released with the next recovery.
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
            let due = time.uptime() + Self.recoveryPause
            state.withLock { state in
                state.unneededClaims.merge(unneeded, uniquingKeysWith: max)
                state.recoveriesDue.append(due)
            }
            wakeUp.signal()
        }
    }
}

extension PushHandOff.State {
    /// Notes that a claim is not needed any more. If a newer claim of the key is already noted, nothing changes.
    mutating func needsNoMore(_ key: HandOffKey, _ number: UInt64) {
        unneededClaims[key] = max(number, unneededClaims[key] ?? 0)
    }

    /// Ends the recording of results that were kept (``UnrecordedPushes/end(_:rest:)``). The claims of the recorded
    /// results are not needed any more.
    mutating func recorded(_ kept: [PushResult], rest: [PushResult]) {
        unrecorded.end(kept, rest: rest)
        for result in kept where !unrecorded.contains(result.key) {
            if let number = keptClaims.removeValue(forKey: result.key) { needsNoMore(result.key, number) }
        }
    }
}
