// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import CryptoExtras
import Foundation
import HermesCore
import HermesGateways
import HermesTestKit
import Testing

@testable import HermesServer

@Suite(.inTurns, .timeLimit(.minutes(1))) struct JWTVerifierTests {
    private static let issuer = Result { try TokenIssuer() }

    private let files: TemporaryFiles
    private let issuer: TokenIssuer
    private let now = Timestamp(rawValue: 1_000_000_000)
    private let good = #"{"sub":"anna"}"#

    init() throws {
        files = try TemporaryFiles()
        issuer = try Self.issuer.get()
    }

    private func verifier(
        _ keys: String,
        _ algorithms: Set<AccessSettings.TokenAlgorithm> = Set(AccessSettings.TokenAlgorithm.allCases),
        audience: String? = nil,
        issuer: String? = nil
    ) throws -> JWTVerifier {
        let path = try files.write("keys-\(UUID())", keys)
        return try JWTVerifier(
            .init(keysPath: path, algorithms: algorithms, audience: audience, issuer: issuer)
        )
    }

    private func isRefused(_ token: String, by verifier: JWTVerifier) async -> Bool {
        do {
            _ = try await verifier.verify(token, now: now)
            return false
        } catch {
            return error.code == .invalidToken
        }
    }

    @Test func `a token of each algorithm is taken with a key of that algorithm`() async throws {
        defer { files.remove() }
        let rsa = try verifier(issuer.rsa.publicKey.pemRepresentation)
        let ecdsa = try verifier(issuer.ecdsa.publicKey.pemRepresentation)
        let secret = try verifier(issuer.secret + "\n")
        let set = try verifier(issuer.keySet())
        let tokens = [issuer.hs256(good), try issuer.rs256(good), try issuer.es256(good)]
        for (index, own) in [secret, rsa, ecdsa].enumerated() {
            for (other, token) in tokens.enumerated() {
                #expect(own.isToken(token))
                #expect(await isRefused(token, by: own) == (index != other), "key \(index), token \(other)")
                #expect(await !isRefused(token, by: set))
            }
        }
        let both = try verifier(issuer.rsa.publicKey.pemRepresentation + issuer.ecdsa.publicKey.pemRepresentation)
        #expect(await !isRefused(tokens[1], by: both))
        #expect(await !isRefused(tokens[2], by: both))
    }

    @Test func `a public key is never a secret, and no signature is none`() async throws {
        defer { files.remove() }
        let pem = issuer.rsa.publicKey.pemRepresentation
        let rsa = try verifier(pem)
        for secret in [pem, pem + "\n", pem.replacing("\n", with: ""), "", issuer.secret] {
            #expect(await isRefused(issuer.hs256(good, secret: secret), by: rsa))
        }
        let point = try verifier(issuer.ecdsa.publicKey.pemRepresentation)
        #expect(await isRefused(issuer.hs256(good, secret: issuer.ecdsa.publicKey.pemRepresentation), by: point))
        for keys in [rsa, point, try verifier(issuer.secret)] {
            for algorithm in ["none", "None", "NONE", "", "hs256", "RS512", "HS384", "PS256"] {
                #expect(await isRefused(issuer.none(good, algorithm: algorithm), by: keys))
            }
            #expect(await isRefused(issuer.none(good, algorithm: "HS256"), by: keys))
        }
        // A key inside a token is ignored.
        let own = #"{"alg":"HS256","jwk":{"kty":"oct","k":"AAAA"},"kid":"x"}"#
        #expect(await isRefused(issuer.hs256(good, header: own, secret: "\0\0\0"), by: rsa))
    }

    private static func hex(_ bytes: Data) -> [String] {
        bytes.map { byte in
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }
    }

    @Test func `a public key in a form that is not read is never a secret`() async throws {
        defer { files.remove() }
        for der in [issuer.rsa.publicKey.derRepresentation, issuer.ecdsa.publicKey.derRepresentation] {
            let base64 = der.base64EncodedString(options: .lineLength64Characters)
            let pem = "-----BEGIN PUBLIC KEY-----\n\(base64)\n-----END PUBLIC KEY-----\n"
            let wide = Data([0xFF, 0xFE]) + pem.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
            let texts = [
                base64, base64 + "\n", "\n\"\(base64.replacing("\n", with: ""))\"", TokenIssuer.base64(der),
                "\u{FEFF}" + (try issuer.keySet()), "ssh-rsa \(base64) me@here", "ecdsa-sha2-nistp256 \(base64)",
                "---- BEGIN SSH2 PUBLIC KEY ----\n\(base64)", "https://issuer.example/.well-known/jwks.json",
                "<RSAKeyValue><Modulus>\(base64)</Modulus></RSAKeyValue>",
            ]
            let hex = Self.hex(der)
            let modulus = try issuer.rsa.publicKey.getKeyPrimitives().modulus
            let digits = Self.hex(modulus)
            let point = issuer.ecdsa.publicKey.x963Representation
            let further: [String] = [
                hex.joined(), hex.joined().uppercased(), hex.joined(separator: ":") + "\n", "0x" + hex.joined(),
                "key=" + TokenIssuer.base64(der), "public_key: \(TokenIssuer.base64(der))", "KEY=\(hex.joined())",
                "key: |\n  \(base64.replacing("\n", with: "\n  "))", String(base64.dropLast(9)),
                "'\(TokenIssuer.base64(der))'\n", "Modulus=" + digits.joined().uppercased(),
                "00:" + digits.joined(separator: ":"), "n=" + TokenIssuer.base64(modulus),
                "\"n\": \"\(TokenIssuer.base64(modulus))\"", TokenIssuer.base64(point),
                Data(pem.utf8).base64EncodedString(), "a passphrase: of some words, long enough",
                "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A",
            ]
            let whole: [Data] = [der, der + Data("\n".utf8), wide]
            let written: [Data] = (texts + further).map { Data($0.utf8) }
            for data in whole + written {
                #expect(throws: TokenKeys.Refusal.self, "\(String(decoding: data, as: UTF8.self))") {
                    try TokenKeys(data)
                }
            }
        }
        // These are typical secrets.
        for secret in [
            issuer.secret, String(repeating: "0f", count: 32), Data(repeating: 0x30, count: 48).base64EncodedString(),
            " a-passphrase:of-some-words=long-enough\n", String(repeating: "0f", count: 64),
            Data((0..<60).map { UInt8($0) }).base64EncodedString(), String(repeating: "a", count: 256),
        ] {
            #expect(try TokenKeys(Data(secret.utf8)).keys.count == 1, "\(secret)")
        }
        for first in UInt8.min...UInt8.max {
            let bytes = Data([first, 0x7F]) + Data(repeating: 0xA5, count: 30)
            #expect(try TokenKeys(bytes).keys.count == 1)
        }
    }

    @Test func `a random secret is taken, in whatever form it is written`() async throws {
        defer { files.remove() }
        var random = SplitMix(state: 11)
        for size in [32, 48, 64, 65, 128, 256, 384, 512, 1_024] {
            for round in 0..<40 {
                var bytes = Data((0..<size).map { _ in UInt8.random(in: .min ... .max, using: &random) })
                // These are the first bytes of a modulus, of a point, of a DER SEQUENCE, and of a text in another
                // encoding.
                let beginnings: [[UInt8]] = [
                    [], [0x80], [4], [0x30, UInt8(truncatingIfNeeded: size - 2)], [0xFF, 0xFE],
                ]
                let beginning = beginnings[round % beginnings.count]
                bytes.replaceSubrange(0..<beginning.count, with: beginning)
                bytes[size - 1] |= 1
                let hex = Self.hex(bytes)
                let forms = [
                    hex.joined(), hex.joined().uppercased(), bytes.base64EncodedString(), TokenIssuer.base64(bytes),
                ]
                for form in [bytes] + forms.map({ Data($0.utf8) }) {
                    #expect(try TokenKeys(form).keys.count == 1, "\(size): \(hex.joined())")
                }
            }
        }
    }

    @Test func `only what the settings allow is taken`() async throws {
        defer { files.remove() }
        let set = try issuer.keySet()
        let some = try verifier(set, [.es256])
        #expect(await isRefused(issuer.hs256(good), by: some))
        #expect(await isRefused(try issuer.rs256(good), by: some))
        #expect(await !isRefused(try issuer.es256(good), by: some))
    }

    @Test func `the key of the name is used`() async throws {
        defer { files.remove() }
        let set = try verifier(issuer.keySet())
        #expect(await !isRefused(try issuer.rs256(good, header: #"{"alg":"RS256","kid":"r"}"#), by: set))
        #expect(await isRefused(try issuer.rs256(good, header: #"{"alg":"RS256","kid":"e"}"#), by: set))
        #expect(await isRefused(try issuer.es256(good, header: #"{"alg":"RS256","kid":"r"}"#), by: set))
    }

    @Test func `what a token says about time, audience and issuer holds`() async throws {
        defer { files.remove() }
        let plain = try verifier(issuer.secret)
        let strict = try verifier(issuer.secret, audience: "hermes", issuer: "me")
        for (claims, isPlainGood, isStrictGood) in [
            (#""exp":1000001"#, true, false), (#""exp":1000000"#, false, false), (#""exp":999999.9"#, false, false),
            (#""exp":-1e300"#, false, false), (#""exp":1e300"#, true, false), (#""exp":"soon""#, false, false),
            (#""nbf":1000030"#, true, false), (#""nbf":1000031"#, false, false), (#""nbf":true"#, false, false),
            (#""aud":"hermes","iss":"me""#, true, true), (#""aud":["x","hermes"],"iss":"me""#, true, true),
            (#""aud":[],"iss":"me""#, true, false), (#""aud":"hermes","iss":"you""#, true, false),
            (#""aud":"Hermes","iss":"me""#, true, false), (#""aud":"hermes""#, true, false),
            (#""aud":7,"iss":"me""#, false, false),
        ] {
            let token = issuer.hs256("{\"sub\":\"anna\",\(claims)}")
            #expect(await isRefused(token, by: plain) == !isPlainGood, "\(claims)")
            #expect(await isRefused(token, by: strict) == !isStrictGood, "\(claims)")
        }
        let token = try await plain.verify(issuer.hs256(#"{"sub":"anna","exp":1000060}"#), now: now)
        #expect(token == VerifiedToken(subject: "anna", expiresAt: Timestamp(rawValue: 1_000_060_000)))
    }

    @Test func `claims become topics, and what cannot be understood allows nothing`() async throws {
        defer { files.remove() }
        let keys = try verifier(issuer.secret)
        let payload = #"{"sub":"anna","hermes.publish":["a/+"],"hermes.subscribe":[]}"#
        let token = try await keys.verify(issuer.hs256(payload), now: now)
        #expect(token.claims == TopicClaims(publish: [try #require(TopicFilter("a/+"))], subscribe: []))
        let half = try await keys.verify(issuer.hs256(##"{"sub":"anna","hermes.publish":["#"]}"##), now: now)
        #expect(half.claims?.subscribe == nil)
        for claim in [#""a""#, #"["a+"]"#, #"[1]"#, #"[""]"#, "{}"] {
            #expect(
                await isRefused(issuer.hs256("{\"sub\":\"anna\",\"hermes.subscribe\":\(claim)}"), by: keys),
                "\(claim)"
            )
        }
        let many = (0...TokenPayload.maxFilters).map { "\"\($0)\"" }.joined(separator: ",")
        #expect(await isRefused(issuer.hs256("{\"sub\":\"a\",\"hermes.publish\":[\(many)]}"), by: keys))
        // Nested claims must not be ignored. Otherwise the token would allow everything.
        #expect(await isRefused(issuer.hs256(#"{"sub":"anna","hermes":{"publish":["a/+"]}}"#), by: keys))
    }

    @Test(arguments: ["exp", "nbf", "aud", "iss", "hermes.publish", "hermes.subscribe"])
    func `a claim without a value, or named twice, allows nothing`(claim: String) async throws {
        defer { files.remove() }
        let keys = try verifier(issuer.secret)
        let value = claim.hasPrefix("hermes") ? "[\"a\"]" : ["exp": "9e9", "nbf": "1"][claim] ?? "\"x\""
        let once = issuer.hs256("{\"sub\":\"anna\",\"\(claim)\":\(value)}")
        #expect(!(await isRefused(once, by: keys)), "the value itself is good")
        #expect(await isRefused(issuer.hs256("{\"sub\":\"anna\",\"\(claim)\":null}"), by: keys))
        #expect(
            await isRefused(issuer.hs256("{\"sub\":\"anna\",\"\(claim)\":\(value),\"\(claim)\":\(value)}"), by: keys)
        )
    }

    @Test func `what is no token is refused whatever it holds`() async throws {
        defer { files.remove() }
        let keys = try verifier(issuer.secret)
        let token = issuer.hs256(good)
        let deep = "eyJ" + String(repeating: "W", count: 4000)
        for text in [
            "", ".", "..", "...", "eyJ..", "eyJ.a.b", deep + "..", token + ".", token + "=", token.dropLast(1) + "",
            "." + token, token.replacing(".", with: ".."), token + String(repeating: "A", count: 9000),
            issuer.hs256(good, header: "[]"), issuer.hs256(good, header: #"{"alg":"HS256","crit":["x"]}"#),
            issuer.hs256("[]"), issuer.hs256("{}"), issuer.hs256(#"{"sub":7}"#), issuer.hs256("\u{0}"),
            issuer.hs256(String(repeating: "[", count: 3000)),
        ] {
            #expect(await isRefused(text, by: keys), "\(text.prefix(80))")
        }
        #expect(!keys.isToken("a.b.c"))
        #expect(!keys.isToken("eyJpassword"))
        // A change anywhere makes the token invalid.
        for index in stride(from: 0, to: token.utf8.count, by: 7) {
            var bytes = Array(token.utf8)
            bytes[index] = bytes[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            let changed = String(decoding: bytes, as: UTF8.self)
            if changed != token { #expect(await isRefused(changed, by: keys), "\(index)") }
        }
    }

    @Test func `files without usable keys are refused`() async throws {
        defer { files.remove() }
        for text in [
            "", "short", "{}", "[]", #"{"keys":[]}"#, #"{"keys":[{"kty":"oct","alg":"HS256","k":"AAAA"}]}"#,
            #"{"keys":[{"kty":"RSA","n":"AAAA","e":"AQAB"}]}"#, #"{"keys":[{"kty":"EC","crv":"P-256","x":"AA"}]}"#,
            "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", issuer.rsa.pemRepresentation,
            issuer.ecdsa.pemRepresentation,
        ] {
            #expect(throws: (any Error).self, "\(text.prefix(60))") { try verifier(text) }
        }
    }

    @Test func `a secret in a JWKS is one for HS256, unless the JWKS names another algorithm`() async throws {
        defer { files.remove() }
        let secret = TokenIssuer.base64(Data(issuer.secret.utf8))
        let set = try verifier(#"{"keys":[{"kty":"oct","k":"\#(secret)"}]}"#)
        #expect(await !isRefused(issuer.hs256(good), by: set))
        #expect(throws: (any Error).self) {
            try verifier(#"{"keys":[{"kty":"oct","alg":"HS512","k":"\#(secret)"}]}"#)
        }
    }

    @Test func `keys are read again, and stay if that fails`() async throws {
        defer { files.remove() }
        let path = try files.write("k", issuer.secret)
        let keys = try JWTVerifier(.init(keysPath: path))
        let other = String(repeating: "other", count: 8)
        try files.write("k", other)
        #expect(await !isRefused(issuer.hs256(good), by: keys))
        try keys.reload()
        #expect(await isRefused(issuer.hs256(good), by: keys))
        #expect(await !isRefused(issuer.hs256(good, secret: other), by: keys))
        try files.write("k", "")
        #expect(throws: (any Error).self) { try keys.reload() }
        #expect(await !isRefused(issuer.hs256(good, secret: other), by: keys))
    }

    @Test func `keys of which none has an accepted algorithm do not replace the old ones`() async throws {
        defer { files.remove() }
        let path = try files.write("k", issuer.rsa.publicKey.pemRepresentation)
        let keys = try JWTVerifier(.init(keysPath: path, algorithms: [.rs256]))
        try files.write("k", issuer.secret)
        #expect(throws: TokenKeys.Refusal.self) { try keys.reload() }
        #expect(await !isRefused(try issuer.rs256(good), by: keys))
        #expect(throws: TokenKeys.Refusal.self) { try verifier(issuer.secret, [.rs256, .es256]) }
    }
}
