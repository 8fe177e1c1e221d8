// swift-tools-version: 6.2
// Hermes
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

let package = Package(
    name: "QuickChat",
    platforms: [.macOS(.v15)],
    dependencies: [
        // Without the trait "Server", an app fetches and links only the client.
        .package(name: "hermes", path: "../..", traits: []),
        // For the app's own protobuf messages in pushes.
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
    ],
    targets: [
        .executableTarget(
            name: "QuickChat",
            dependencies: [
                .product(name: "Hermes", package: "hermes"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ]
        )
    ],
    swiftLanguageModes: [.v6]
)
