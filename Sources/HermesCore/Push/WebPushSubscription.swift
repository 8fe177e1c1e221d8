// Hermes
// SPDX-License-Identifier: Apache-2.0

package import Foundation

/// A browser's push subscription (`PushSubscription.toJSON()`), parsed.
package struct WebPushSubscription: Sendable, Hashable {
    /// The https URL to which notifications are posted. It has a normal form (RFC 3986, section 6.2.2), so that each
    /// endpoint has one spelling. The host is a name in lower case, and the usual port is left out. The path and the
    /// query are those of the client, but only characters that require it are percent-encoded.
    package let endpoint: String
    /// The host of the endpoint, in lower case.
    package let host: String
    package let port: Int
    /// The origin of the endpoint, `https://host[:port]`. It is the audience of the signed token (RFC 8292, section 2).
    package let origin: String
    /// The browser's P-256 key: 65 bytes, uncompressed.
    package let publicKey: Data
    /// The shared secret: 16 bytes.
    package let secret: Data

    private static let maxEndpointBytes = 2_048

    private struct JSON: Decodable {
        struct Keys: Decodable {
            let p256dh: String
            let auth: String
        }

        let endpoint: String
        let keys: Keys
    }

    /// Parses a client's subscription. The server will connect to the subscription's endpoint. The endpoint must use
    /// https. It must not name an address, or a host of the server's own network.
    ///
    /// - Throws: `.invalidArgument`, `.tooLarge`.
    package init(parsing text: String) throws(HermesError) {
        guard let json = try? JSONDecoder().decode(JSON.self, from: Data(text.utf8)) else {
            throw HermesError(.invalidArgument, "a Web Push token is the subscription as JSON: endpoint, keys")
        }
        guard let key = Data(base64URL: json.keys.p256dh), key.count == 65, key.first == 4,
            let secret = Data(base64URL: json.keys.auth), secret.count == 16
        else {
            throw HermesError(.invalidArgument, "keys.p256dh has 65 bytes and keys.auth 16, in base64url")
        }
        guard json.endpoint.utf8.count <= Self.maxEndpointBytes else {
            throw HermesError(.tooLarge, "the endpoint is at most \(Self.maxEndpointBytes) bytes")
        }
        guard
            json.endpoint.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            let parts = URLComponents(string: json.endpoint), parts.scheme == "https", parts.user == nil,
            parts.password == nil, parts.fragment == nil, let host = parts.host?.lowercased()
        else {
            throw HermesError(.invalidArgument, "the endpoint must be an https URL without a user name or fragment")
        }
        guard Self.isPublicName(host) else {
            throw HermesError(.invalidArgument, "the endpoint must name a public host")
        }
        guard parts.port.map({ (1...65_535).contains($0) }) ?? true else {
            throw HermesError(.invalidArgument, "the endpoint's port must be 1 … 65535")
        }
        let port = parts.port ?? Self.usualPort
        let origin = "https://\(host)" + (port == Self.usualPort ? "" : ":\(port)")
        let path = parts.percentEncodedPath.isEmpty ? "/" : Self.normal(parts.percentEncodedPath)
        let query = Self.normal(parts.percentEncodedQuery ?? "")
        let endpoint = origin + path + (query.isEmpty ? "" : "?" + query)
        guard endpoint.utf8.count <= Self.maxEndpointBytes else {
            throw HermesError(.tooLarge, "the endpoint is too long when it is percent-encoded")
        }
        self.endpoint = endpoint
        self.host = host
        self.port = port
        self.origin = origin
        publicKey = key
        self.secret = secret
    }

    /// Decodes percent-encoded unreserved characters, and writes the other codes in upper case.
    private static func normal(_ encoded: String) -> String {
        var normal: [UInt8] = []
        var rest = Array(encoded.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%"), rest.count >= 2,
                let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            else {
                normal.append(byte)
                continue
            }
            if PushToken.isIdentifier(code) || code == UInt8(ascii: "~") {
                normal.append(code)
            } else {
                normal += [byte] + String(decoding: rest.prefix(2), as: UTF8.self).uppercased().utf8
            }
            rest = rest.dropFirst(2)
        }
        return String(decoding: normal, as: UTF8.self)
    }

    /// The subscription as JSON, with only the members that the server uses. The text does not depend on how a client
    /// writes the subscription.
    package var text: String {
        // In JSON, no character of base64url or of a percent-encoded URL needs an escape.
        #"{"endpoint":"\#(endpoint)","keys":{"p256dh":"\#(publicKey.base64URL)","auth":"\#(secret.base64URL)"}}"#
    }

    /// The port that push services use. Other ports are allowed only for hosts that the operator names.
    package static let usualPort = 443

    /// Whether a host is a name with a dot, and neither an address nor a local name.
    private static func isPublicName(_ host: String) -> Bool {
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        guard labels.count > 1, host.utf8.count <= 253, let last = labels.last else { return false }
        let areLabels = labels.allSatisfy { label in
            (1...63).contains(label.utf8.count)
                && label.utf8.allSatisfy { byte in
                    byte == UInt8(ascii: "-") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                        || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                }
        }
        // The last label of an address is a decimal or hexadecimal number. The last label of a public name is never a
        // number.
        let isNumber = last.utf8.first.map { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ?? true
        return areLabels && !isNumber
            && !["local", "localhost", "internal", "lan", "home", "arpa"].contains(String(last))
    }
}

extension PushToken {
    /// The host that a Web Push subscription names; empty if the subscription cannot be read; nil if the token belongs
    /// to another service.
    var namedHost: String? { service == .webPush ? (try? WebPushSubscription(parsing: text))?.host ?? "" : nil }
}

extension Data {
    /// Reads base64url, with padding or without.
    package init?(base64URL text: String) {
        var base64 = text.replacing("-", with: "+").replacing("_", with: "/").replacing("=", with: "")
        while base64.utf8.count % 4 != 0 { base64 += "=" }
        self.init(base64Encoded: base64)
    }

    /// The bytes in base64url, without padding.
    package var base64URL: String {
        base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}
