// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesWire

/// The payload of a JSON Web Token. It is decoded only after the token's signature has been verified. `docs/access.md`
/// lists the claims.
struct TokenPayload: Decodable, Sendable {
    let subject: String
    /// The claim `exp` in seconds since 1970. The claim `nbf` has the same unit.
    let expiresAt: Double?
    let notBefore: Double?
    let audience: [String]
    let issuer: String?
    let publish: [String]?
    let subscribe: [String]?

    /// The largest number of filters in a claim.
    static let maxFilters = 200
    /// The tolerance for the issuer's clock, in seconds.
    private static let leeway = 30.0

    private enum CodingKeys: String, CodingKey {
        case subject = "sub"
        case expiresAt = "exp"
        case notBefore = "nbf"
        case audience = "aud"
        case issuer = "iss"
        case publish = "hermes.publish"
        case subscribe = "hermes.subscribe"
        /// A claim that Hermes does not define. An issuer that nests the claims above in this claim means to restrict
        /// the token, so the token is refused.
        case nested = "hermes"
    }

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        subject = try values.decode(String.self, forKey: .subject)
        // A claim that is present must have a value: an issuer that writes `null` for a limit did not mean "no limit".
        func claim<Value: Decodable>(_ key: CodingKeys) throws -> Value? {
            values.contains(key) ? try values.decode(Value.self, forKey: key) : nil
        }
        expiresAt = try claim(.expiresAt)
        notBefore = try claim(.notBefore)
        if let one = try? claim(.audience) as String? {
            audience = [one]
        } else {
            audience = try claim(.audience) ?? []
        }
        issuer = try claim(.issuer)
        guard !values.contains(.nested) else {
            throw DecodingError.dataCorruptedError(
                forKey: .nested,
                in: values,
                debugDescription: "the claims are hermes.publish and hermes.subscribe"
            )
        }
        publish = try claim(.publish)
        subscribe = try claim(.subscribe)
    }

    /// Reads the payload of a token. Returns nil if the JSON is not a valid payload, or if it names a claim twice.
    init?(json: Data) {
        guard (try? JSONParser.parse([UInt8](json))) != nil,
            let payload = try? JSONDecoder().decode(TokenPayload.self, from: json)
        else { return nil }
        self = payload
    }

    /// Returns the reason why this server must refuse the token at this time; nil if there is none.
    func problem(audience wanted: String?, issuer wantedIssuer: String?, now: Timestamp) -> String? {
        let now = Double(now.rawValue) / 1000
        if let expiresAt, !(expiresAt > now) { return "it has expired" }
        if let notBefore, !(notBefore <= now + Self.leeway) { return "it is not valid yet" }
        if let wanted, !audience.contains(where: { $0.utf8.elementsEqual(wanted.utf8) }) {
            return "it is for another audience"
        }
        if let wantedIssuer, !(issuer?.utf8.elementsEqual(wantedIssuer.utf8) ?? false) {
            return "it is from another issuer"
        }
        return nil
    }

    /// Returns the topics that the token allows.
    ///
    /// - Returns: nil if a claim about topics is not valid; the token is then invalid. `.some(nil)` if the token has no
    ///   claims about topics.
    func claims() -> TopicClaims?? {
        if publish == nil, subscribe == nil { return .some(nil) }
        guard let publish = Self.filters(publish), let subscribe = Self.filters(subscribe) else { return nil }
        return TopicClaims(publish: publish, subscribe: subscribe)
    }

    private static func filters(_ texts: [String]?) -> [TopicFilter]?? {
        guard let texts else { return .some(nil) }
        let filters = texts.compactMap { TopicFilter($0) }
        guard filters.count == texts.count, filters.count <= maxFilters else { return nil }
        return filters
    }

    /// The time when the token expires; nil if it does not expire.
    var expiry: Timestamp? {
        guard let expiresAt, expiresAt.isFinite else { return nil }
        return Timestamp(rawValue: Int64(min(max(expiresAt, 0), 1e15) * 1000))
    }
}
