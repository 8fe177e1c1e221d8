// swift-tools-version: 6.2
// Hermes
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

#if canImport(AppleProductTypes)
import AppleProductTypes
#endif

var products: [Product] = [.library(name: "ChatLogic", targets: ["ChatLogic"])]
#if canImport(AppleProductTypes)
products.append(
    .iOSApplication(
        name: "Chat",
        targets: ["ChatApp"],
        bundleIdentifier: "org.example.hermes.chat",
        displayVersion: "1.0",
        bundleVersion: "1",
        supportedDeviceFamilies: [.phone, .pad],
        supportedInterfaceOrientations: [.portrait, .landscapeLeft, .landscapeRight]
    )
)
#endif

let package = Package(
    name: "Chat",
    platforms: [.iOS(.v18), .macOS(.v15)],
    products: products,
    // Without the trait "Server", an app fetches and links only the client.
    dependencies: [.package(name: "hermes", path: "../..", traits: [])],
    targets: [
        .target(
            name: "ChatLogic",
            dependencies: [.product(name: "Hermes", package: "hermes")],
            path: "ChatLogic"
        ),
        .executableTarget(
            name: "ChatApp",
            dependencies: ["ChatLogic", .product(name: "Hermes", package: "hermes")],
            path: "ChatApp"
        ),
    ],
    swiftLanguageModes: [.v6]
)
