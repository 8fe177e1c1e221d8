// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import CryptoExtras
import Foundation

/// Hashes and checks passwords with scrypt, on a few threads of its own.
///
/// Each computation takes tens of milliseconds and `128 · r · 2^ln` bytes, so at most a few run at once; what waits is
/// bounded too.
package final class PasswordHasher: Sendable {
    /// What a hash costs.
    package struct Parameters: Sendable, Hashable {
        /// The logarithm of scrypt's N: 1 … 20.
        package var ln: Int
        /// The block size: 1 … 32.
        package var r: Int
        /// The parallelism: 1 … 16.
        package var p: Int

        /// 16 MiB and some 40 ms.
        package static let standard = Parameters(ln: 14, r: 8, p: 1)

        package init(ln: Int, r: Int, p: Int) {
            self.ln = ln
            self.r = r
            self.p = p
        }

        /// Whether a hash with these parameters is computed at all: not beyond 256 MiB, whatever the store says.
        package var isAllowed: Bool {
            (1...20).contains(ln) && (1...32).contains(r) && (1...16).contains(p) && 128 * r * (1 << ln) <= 256 << 20
        }
    }

    private let parameters: Parameters
    private let workers: WorkerThreads
    /// Checked where there is no account, so that the answer takes as long as if there were.
    private let decoy: PasswordHash

    /// Creates a hasher; no thread starts before the first password.
    ///
    /// - Parameters:
    ///   - parameters: for new hashes; old ones keep theirs.
    ///   - maxConcurrent: how many computations run at once, at least 1.
    ///   - maxWaiting: how many more may wait before `.overloaded`.
    package init(
        parameters: Parameters = .standard,
        maxConcurrent: Int = ProcessInfo.processInfo.activeProcessorCount,
        maxWaiting: Int = 1000
    ) {
        let parameters = parameters.isAllowed ? parameters : .standard
        self.parameters = parameters
        workers = WorkerThreads(name: "hermes-password", maxThreads: maxConcurrent, maxWaiting: maxWaiting)
        let stored = StoredScrypt(parameters: parameters, salt: randomBytes(16), hash: randomBytes(32))
        decoy = PasswordHash(phc: stored.phc)
    }

    /// Hashes a new password with a new salt.
    ///
    /// - Throws: `.overloaded`.
    package func hash(_ password: String) async throws(HermesError) -> PasswordHash {
        let parameters = parameters
        let salt = randomBytes(16)
        return try await onWorker {
            let hash = try Self.derive(password, salt: salt, parameters: parameters, count: 32)
            return PasswordHash(phc: StoredScrypt(parameters: parameters, salt: salt, hash: hash).phc)
        }
    }

    /// Whether the password is the one that was hashed.
    ///
    /// - Parameters:
    ///   - password: as the client sent it.
    ///   - stored: the account's hash; nil: there is no such account, which takes as long and is false.
    /// - Throws: `.overloaded`; `.internalError` if the stored hash cannot be read.
    package func verify(_ password: String, against stored: PasswordHash?) async throws(HermesError) -> Bool {
        guard let scrypt = StoredScrypt(phc: (stored ?? decoy).phc) else {
            throw HermesError(.internalError, "the stored password hash cannot be read")
        }
        let isMatch = try await onWorker {
            let hash = try Self.derive(
                password,
                salt: scrypt.salt,
                parameters: scrypt.parameters,
                count: scrypt.hash.count
            )
            return equalInConstantTime(hash, scrypt.hash)
        }
        return isMatch && stored != nil && !password.isEmpty
    }

    private func onWorker<Value: Sendable>(
        _ work: @escaping @Sendable () throws -> Value
    ) async throws(HermesError) -> Value {
        let result: Result<Value, HermesError> = await withCheckedContinuation { continuation in
            let isAccepted = workers.run {
                do {
                    continuation.resume(returning: .success(try work()))
                } catch {
                    let failure = HermesError(.internalError, "the password could not be hashed", cause: error)
                    continuation.resume(returning: .failure(failure))
                }
            }
            if !isAccepted {
                let failure = HermesError(
                    .overloaded,
                    "too many logins at once; try again shortly",
                    retryAfter: .seconds(2)
                )
                continuation.resume(returning: .failure(failure))
            }
        }
        return try result.get()
    }

    private static func derive(
        _ password: String,
        salt: [UInt8],
        parameters: Parameters,
        count: Int
    ) throws -> [UInt8] {
        // The library takes no empty password; ``verify`` answers false for it whatever comes out here.
        let bytes = password.isEmpty ? [0] : Array(password.utf8)
        let key = try KDF.Scrypt.deriveKey(
            from: bytes,
            salt: salt,
            outputByteCount: count,
            rounds: 1 << parameters.ln,
            blockSize: parameters.r,
            parallelism: parameters.p
        )
        return key.withUnsafeBytes { Array($0) }
    }
}

/// The parts of a PHC string of scrypt.
struct StoredScrypt {
    let parameters: PasswordHasher.Parameters
    let salt: [UInt8]
    let hash: [UInt8]

    init(parameters: PasswordHasher.Parameters, salt: [UInt8], hash: [UInt8]) {
        self.parameters = parameters
        self.salt = salt
        self.hash = hash
    }

    /// - Returns: nil for another algorithm, a broken string, or parameters beyond all measure.
    init?(phc: String) {
        let parts = phc.split(separator: "$", omittingEmptySubsequences: false)
        guard parts.count == 5, parts[0].isEmpty, parts[1] == "scrypt" else { return nil }
        var values: [Substring: Int] = [:]
        for pair in parts[2].split(separator: ",") {
            let sides = pair.split(separator: "=", maxSplits: 1)
            guard sides.count == 2, let value = Int(sides[1]), values[sides[0]] == nil else { return nil }
            values[sides[0]] = value
        }
        guard values.count == 3, let ln = values["ln"], let r = values["r"], let p = values["p"] else { return nil }
        let parameters = PasswordHasher.Parameters(ln: ln, r: r, p: p)
        guard parameters.isAllowed, let salt = Self.decode(parts[3]), let hash = Self.decode(parts[4]) else {
            return nil
        }
        guard (8...64).contains(salt.count), (16...64).contains(hash.count) else { return nil }
        self.init(parameters: parameters, salt: salt, hash: hash)
    }

    var phc: String {
        "$scrypt$ln=\(parameters.ln),r=\(parameters.r),p=\(parameters.p)$\(Self.encode(salt))$\(Self.encode(hash))"
    }

    /// Base64 without padding, as the PHC format has it.
    private static func encode(_ bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString().replacing("=", with: "")
    }

    private static func decode(_ text: Substring) -> [UInt8]? {
        guard text.utf8.count <= 128 else { return nil }
        let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        return Data(base64Encoded: text + padding).map { Array($0) }
    }
}
