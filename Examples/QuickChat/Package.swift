// swift-tools-version: 6.2
// Hermes
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

let package = Package(
    name: "QuickChat",
    platforms: [.macOS(.v15)],
    // Without the trait "Server": an app fetches and links only the client.
    dependencies: [.package(name: "hermes", path: "../..", traits: [])],
    targets: [.executableTarget(name: "QuickChat", dependencies: [.product(name: "Hermes", package: "hermes")])],
    swiftLanguageModes: [.v6]
)
