// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes

extension HTTPFields {
    /// The fields of an answer that is not a page, such as the answer of `/metrics`; a route may set other values.
    static let ofNoPage: HTTPFields = [
        .contentSecurityPolicy: "default-src 'none'; frame-ancestors 'none'",
        .xContentTypeOptions: "nosniff",
        .referrerPolicy: "no-referrer",
        .frameOptions: "DENY",
        .cacheControl: "no-store",
    ]
}

extension HTTPField.Name {
    // These names are constants and valid, so the fields after `??` are never used.
    static let referrerPolicy = HTTPField.Name("Referrer-Policy") ?? .vary
    static let frameOptions = HTTPField.Name("X-Frame-Options") ?? .vary
    static let crossOriginOpenerPolicy = HTTPField.Name("Cross-Origin-Opener-Policy") ?? .vary
    static let crossOriginResourcePolicy = HTTPField.Name("Cross-Origin-Resource-Policy") ?? .vary
    static let permissionsPolicy = HTTPField.Name("Permissions-Policy") ?? .vary
}
