// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes

extension HTTPFields {
    /// The headers of an answer other than a page, such as `/metrics`; its route may set others.
    static let ofNoPage: HTTPFields = [
        .contentSecurityPolicy: "default-src 'none'; frame-ancestors 'none'",
        .xContentTypeOptions: "nosniff",
        .referrerPolicy: "no-referrer",
        .frameOptions: "DENY",
        .cacheControl: "no-store",
    ]
}

extension HTTPField.Name {
    // Constants of this file, all of them tokens.
    static let referrerPolicy = HTTPField.Name("Referrer-Policy") ?? .vary
    static let frameOptions = HTTPField.Name("X-Frame-Options") ?? .vary
    static let crossOriginOpenerPolicy = HTTPField.Name("Cross-Origin-Opener-Policy") ?? .vary
    static let crossOriginResourcePolicy = HTTPField.Name("Cross-Origin-Resource-Policy") ?? .vary
    static let permissionsPolicy = HTTPField.Name("Permissions-Policy") ?? .vary
}
