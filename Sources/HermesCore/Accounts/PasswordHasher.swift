// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import CryptoExtras
import Foundation

/// Hashes and checks passwords with scrypt, on a few separate threads.
///
/// Each computation takes tens of milliseconds and `128 · r · 2^ln` bytes, so only a few run at once. The number of
/// waiting computations is also bounded, and the owners of the computations take turns (``Turn``).
package final class PasswordHasher: Sendable {
    /// The cost parameters of a hash.
    package struct Parameters: Sendable, Hashable {
        /// The logarithm of scrypt's N: 1 … 20.
        package var ln: Int
        /// The block size: 1 … 32.
        package var r: Int
        /// The parallelism: 1 … 16.
        package var p: Int

        /// The default: 16 MiB and about 40 ms for each hash.
        package static let standard = Parameters(ln: 14, r: 8, p: 1)

        package init(ln: Int, r: Int, p: Int) {
            self.ln = ln
            self.r = r
            self.p = p
        }

        /// Whether a hash with these parameters may be computed. The computation may use at most 256 MiB, even if a
        /// stored hash requires more.
        package var isAllowed: Bool {
            (1...20).contains(ln) && (1...32).contains(r) && (1...16).contains(p) && 128 * r * (1 << ln) <= 256 << 20
        }
    }

    /// The owner of a computation. The owner determines the computation's place in the queue (``LaneQueue``). In each
    /// lane, addresses take turns, and within one address, accounts take turns. So an owner with many computations does
    /// not delay other owners.
    package enum Turn: Sendable, Hashable {
        /// A login to an account from a known address or with a known device. Such a login has priority over logins of
        /// strangers. If the address is nil, the client is already logged in to the account, and the account takes
        /// turns as if it were an address.
        case known(account: String, address: String?)
        /// Any other login, from this address.
        case stranger(address: String)
        /// A new password of an existing account; the account is nil if the operator sets the password. Such a password
        /// has priority over registrations.
        case change(account: String? = nil)
        /// A new account from this address.
        case registration(address: String)
    }

    /// The result of a check.
    package struct Verification: Sendable {
        package let isRight: Bool
        /// A new hash of the password, if the password is right and the stored hash has an older format or other
        /// parameters; otherwise nil.
        package let renewed: PasswordHash?
    }

    private let parameters: Parameters
    /// The threads for logins. New passwords use ``changes`` instead, so that registrations never delay logins.
    private let logins: WorkerThreads
    private let changes: WorkerThreads
    /// The hash that is checked if there is no such account, so that the check takes the same time.
    private let decoy: PasswordHash

    /// Creates a hasher; no thread starts before the first password.
    ///
    /// - Parameters:
    ///   - parameters: the cost of new hashes. Stored hashes keep their own parameters until the next login.
    ///   - maxConcurrent: the number of concurrent computations for logins, at least 1. New passwords use half as many
    ///     additional threads, at least 1.
    ///   - maxWaiting: the number of computations that may wait in each lane. Further computations are refused with
    ///     `.overloaded`.
    ///   - maxWaitingOfOne: the number of computations that may wait for one account or address.
    package init(
        parameters: Parameters = .standard,
        maxConcurrent: Int = ProcessInfo.processInfo.activeProcessorCount,
        maxWaiting: Int = 1000,
        maxWaitingOfOne: Int = 1000
    ) {
        let parameters = parameters.isAllowed ? parameters : .standard
        self.parameters = parameters
        logins = WorkerThreads(
            name: "hermes-password",
            maxThreads: maxConcurrent,
            maxWaiting: maxWaiting,
            maxWaitingOfOne: maxWaitingOfOne
        )
        changes = WorkerThreads(
            name: "hermes-newpass",
            maxThreads: max(1, maxConcurrent / 2),
            maxWaiting: maxWaiting,
            maxWaitingOfOne: maxWaitingOfOne
        )
        let stored = StoredScrypt(parameters: parameters, salt: randomBytes(16), hash: randomBytes(32))
        decoy = PasswordHash(phc: stored.phc)
    }

    /// Hashes a new password with a new salt.
    ///
    /// - Throws: `.overloaded`.
    package func hash(_ password: String, _ turn: Turn = .change()) async throws(HermesError) -> PasswordHash {
        let parameters = parameters
        return try await onWorker(turn) { .success(try Self.hash(password, parameters: parameters)) }
    }

    /// Checks a password against a hash.
    ///
    /// - Parameters:
    ///   - password: the client's password.
    ///   - stored: the account's hash; nil if there is no such account. Then the check takes just as long, and fails.
    ///   - turn: the owner of the check.
    ///   - admit: called when the turn has come, right before the computation. If it returns an error, nothing is
    ///     computed, and the error is thrown.
    /// - Throws: `.overloaded`; `.internalError` if the stored hash cannot be read; the error of `admit`.
    package func verify(
        _ password: String,
        against stored: PasswordHash?,
        _ turn: Turn = .change(),
        admit: @escaping @Sendable () -> HermesError? = { nil }
    ) async throws(HermesError) -> Verification {
        guard let scrypt = StoredScrypt(phc: (stored ?? decoy).phc) else {
            throw HermesError(.internalError, "the stored password hash cannot be read")
        }
        let parameters = parameters
        let canMatch = stored != nil && Self.isAllowed(password)
        return try await onWorker(turn) {
            if let refusal = admit() { return .failure(refusal) }
            let hash = try Self.derive(
                password,
                salt: scrypt.salt,
                parameters: scrypt.parameters,
                count: scrypt.hash.count,
                isDigested: scrypt.isDigested
            )
            let isRight = equalInConstantTime(hash, scrypt.hash) && canMatch
            let isCurrent = scrypt.isDigested && scrypt.parameters == parameters
            let renewed = isRight && !isCurrent ? try Self.hash(password, parameters: parameters) : nil
            return .success(Verification(isRight: isRight, renewed: renewed))
        }
    }

    /// Whether a text can be a password. It must not be empty or contain U+0000, which scrypt's HMAC cannot distinguish
    /// from its own padding.
    package static func isAllowed(_ password: String) -> Bool {
        !password.isEmpty && !password.utf8.contains(0)
    }

    private func onWorker<Value: Sendable>(
        _ turn: Turn,
        _ work: @escaping @Sendable () throws -> Result<Value, HermesError>
    ) async throws(HermesError) -> Value {
        let (workers, isFirst, source, owner) =
            switch turn {
            // An account without an address takes turns as if it were an address. No real address begins with a slash.
            case .known(let account, let address): (logins, true, address ?? "/\(account)", account)
            case .stranger(let address): (logins, false, address, "")
            case .change(let account): (changes, true, account ?? "", "")
            case .registration(let address): (changes, false, address, "")
            }
        let result: Result<Value, HermesError> = await withCheckedContinuation { continuation in
            workers.run(isFirst: isFirst, source: source, owner: owner) {
                do {
                    continuation.resume(returning: try work())
                } catch {
                    let failure = HermesError(.internalError, "the password could not be hashed", cause: error)
                    continuation.resume(returning: .failure(failure))
                }
            } refuse: {
                let failure = HermesError(
                    .overloaded,
                    "too many passwords to hash at once; try again shortly",
                    retryAfter: .seconds(2)
                )
                continuation.resume(returning: .failure(failure))
            }
        }
        return try result.get()
    }

    private static func hash(_ password: String, parameters: Parameters) throws -> PasswordHash {
        let salt = randomBytes(16)
        let hash = try derive(password, salt: salt, parameters: parameters, count: 32, isDigested: true)
        return PasswordHash(phc: StoredScrypt(parameters: parameters, salt: salt, hash: hash).phc)
    }

    private static func derive(
        _ password: String,
        salt: [UInt8],
        parameters: Parameters,
        count: Int,
        isDigested: Bool
    ) throws -> [UInt8] {
        // The library does not accept an empty password. ``verify`` returns false for an empty password, whatever the
        // result is here.
        let bytes = password.isEmpty ? [0] : Array(password.utf8)
        let key = try KDF.Scrypt.deriveKey(
            // HMAC pads short keys with zeros and hashes long keys, so different passwords could become the same key.
            // Digests all have 32 bytes, so different digests stay different keys.
            from: isDigested ? Array(SHA256.hash(data: bytes)) : bytes,
            salt: salt,
            outputByteCount: count,
            rounds: 1 << parameters.ln,
            blockSize: parameters.r,
            parallelism: parameters.p
        )
        return key.withUnsafeBytes { Array($0) }
    }
}

/// The parts of a PHC string for scrypt.
struct StoredScrypt {
    let parameters: PasswordHasher.Parameters
    let salt: [UInt8]
    let hash: [UInt8]
    /// Whether the password's SHA-256 was hashed; false in hashes that older servers made.
    let isDigested: Bool

    /// The name of the algorithm in hashes that older servers made from the password itself.
    private static let plain = "scrypt"
    private static let digested = "scrypt-sha256"

    init(parameters: PasswordHasher.Parameters, salt: [UInt8], hash: [UInt8], isDigested: Bool = true) {
        self.isDigested = isDigested
        self.parameters = parameters
        self.salt = salt
        self.hash = hash
    }

    /// - Returns: nil for another algorithm, a malformed string, or excessive parameters.
    init?(phc: String) {
        let parts = phc.split(separator: "$", omittingEmptySubsequences: false)
        guard parts.count == 5, parts[0].isEmpty, [Self.plain, Self.digested].contains(String(parts[1])) else {
            return nil
        }
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
        self.init(parameters: parameters, salt: salt, hash: hash, isDigested: parts[1] == Self.digested)
    }

    var phc: String {
        let costs = "ln=\(parameters.ln),r=\(parameters.r),p=\(parameters.p)"
        return "$\(isDigested ? Self.digested : Self.plain)$\(costs)$\(Self.encode(salt))$\(Self.encode(hash))"
    }

    /// Base64 without padding, as in the PHC format.
    private static func encode(_ bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString().replacing("=", with: "")
    }

    private static func decode(_ text: Substring) -> [UInt8]? {
        guard text.utf8.count <= 128 else { return nil }
        let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        return Data(base64Encoded: text + padding).map { Array($0) }
    }
}
