// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

@Suite struct PasswordTests {
    static let cheap = PasswordHasher.Parameters(ln: 4, r: 8, p: 1)
    /// The password "secret" as older servers stored it: the scrypt hash of the password itself. It was computed
    /// elsewhere.
    static let plainSecret = "$scrypt$ln=4,r=8,p=1$U29kaXVtQ2hsb3JpZGU$Dp7T+ulAfvRsdwTSZfyEyLgGAdqXG3ntD4EvExeZJPU"

    @Test func `verifies what it hashed`() async throws {
        let hasher = PasswordHasher(parameters: Self.cheap)
        let hash = try await hasher.hash("pässword")
        #expect(hash.phc.hasPrefix("$scrypt-sha256$ln=4,r=8,p=1$"))
        let right = try await hasher.verify("pässword", against: hash)
        #expect(right.isRight && right.renewed == nil)
        for wrong in ["password", "", "pässword\u{0}", "pässword "] {
            #expect(try await !hasher.verify(wrong, against: hash).isRight)
        }
        #expect(try await !hasher.verify("pässword", against: nil).isRight)
        #expect(try await hasher.hash("pässword") != hash)
    }

    /// The hash is from RFC 7914, section 12: scrypt("pleaseletmein", "SodiumChloride", N = 16384, r = 8, p = 1), first
    /// 32 bytes.
    @Test func `agrees with the standard`() async throws {
        let hash: [UInt8] = [
            0x70, 0x23, 0xBD, 0xCB, 0x3A, 0xFD, 0x73, 0x48, 0x46, 0x1C, 0x06, 0xCD, 0x81, 0xFD, 0x38, 0xEB,
            0xFD, 0xA8, 0xFB, 0xBA, 0x90, 0x4F, 0x8E, 0x3E, 0xA9, 0xB5, 0x43, 0xF6, 0x54, 0x5D, 0xA1, 0xF2,
        ]
        let stored = StoredScrypt(
            parameters: .standard,
            salt: Array("SodiumChloride".utf8),
            hash: hash,
            isDigested: false
        )
        let hasher = PasswordHasher(parameters: Self.cheap)
        #expect(try await hasher.verify("pleaseletmein", against: PasswordHash(phc: stored.phc)).isRight)
    }

    /// HMAC does not distinguish a key from the same key with zeros appended, or a long key from its hash.
    @Test func `passwords that HMAC does not tell apart differ`() async throws {
        let hasher = PasswordHasher(parameters: Self.cheap)
        let old = PasswordHash(phc: Self.plainSecret)
        let right = try await hasher.verify("secret", against: old)
        #expect(right.isRight)
        #expect(right.renewed?.phc.hasPrefix("$scrypt-sha256$") == true)
        #expect(try await !hasher.verify("secret\u{0}", against: old).isRight)
        let long = String(repeating: "x", count: 100)
        let hash = try await hasher.hash(long)
        for other in [String(repeating: "x", count: 99), long + "x"] {
            #expect(try await !hasher.verify(other, against: hash).isRight)
        }
    }

    @Test func `a stronger cost is taken over at the next login`() async throws {
        let hash = try await PasswordHasher(parameters: Self.cheap).hash("secret")
        let stronger = PasswordHasher(parameters: .init(ln: 5, r: 8, p: 1))
        #expect(try await stronger.verify("wrong", against: hash).renewed == nil)
        let renewed = try #require(await stronger.verify("secret", against: hash).renewed)
        #expect(renewed.phc.contains("$ln=5,"))
        #expect(try await stronger.verify("secret", against: renewed).isRight)
    }

    @Test(arguments: [
        "", "$", "$scrypt$", "$argon2id$v=19$m=1,t=1,p=1$c2FsdHNhbHQ$aGFzaA",
        "$scrypt$ln=4,r=8$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA",
        "$scrypt$ln=30,r=8,p=1$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA",
        "$scrypt$ln=20,r=32,p=1$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA",
        "$scrypt$ln=-1,r=8,p=1$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA",
        "$scrypt$ln=4,r=0,p=1$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA",
        "$scrypt$ln=4,r=8,p=1$!$c2FsdHNhbHRzYWx0c2FsdA", "$scrypt$ln=4,r=8,p=1$c2FsdHNhbHQ$",
        "$scrypt$ln=4,ln=4,r=8,p=1$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA",
    ])
    func `refuses broken hashes`(phc: String) async {
        let hasher = PasswordHasher(parameters: Self.cheap)
        let refusal = await code { _ = try await hasher.verify("x", against: PasswordHash(phc: phc)) }
        #expect(refusal == .internalError)
    }

    @Test func `bounds what waits`() async throws {
        let hasher = PasswordHasher(parameters: .standard, maxConcurrent: 1, maxWaiting: 2)
        let codes = await withTaskGroup(of: HermesError.Code?.self) { group in
            for _ in 0..<20 { group.addTask { await code { _ = try await hasher.hash("secret") } } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes.filter { $0 == .overloaded }.count >= 1)
        #expect(codes.filter { $0 == nil }.count >= 3)
        #expect(codes.allSatisfy { $0 == nil || $0 == .overloaded })
        _ = try await hasher.hash("later")
    }

    @Test func `tokens are long and different`() {
        let tokens = (0..<100).map { _ in AccessToken() }
        #expect(Set(tokens.map(\.text)).count == 100)
        for token in tokens {
            #expect(token.text.utf8.count == 43)
            #expect(token.text.allSatisfy { $0.isLetter || $0.isNumber || $0 == "-" || $0 == "_" })
            #expect(TokenHash(ofToken: token.text) == token.hash)
            #expect(token.hash.bytes.count == 32)
        }
        #expect(TokenHash(ofToken: "") == nil)
        #expect(TokenHash(ofToken: String(repeating: "a", count: 129)) == nil)
    }

    @Test func `secrets stay out of texts`() {
        #expect(!"\(Credential.token("topsecret"))".contains("topsecret"))
        #expect(!"\(Credential.password(nickName: "anna", password: "topsecret"))".contains("topsecret"))
    }
}
