// swift-tools-version: 6.2
// Hermes
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

/// One array for every target of ours: the strictest the language offers today.
/// Warnings become errors where HERMES_STRICT is set (the Makefile and CI set it), never for those who depend on us.
let strict: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .enableUpcomingFeature("InferIsolatedConformances"),
    ] + (Context.environment["HERMES_STRICT"] == nil ? [] : [.treatAllWarnings(as: .error)])

/// Fetched and linked only with the trait "Server", so that an app which uses the client alone pays for none of it.
func server(_ product: String, _ package: String) -> Target.Dependency {
    .product(name: product, package: package, condition: .when(traits: ["Server"]))
}

func nio(_ product: String) -> Target.Dependency { .product(name: product, package: "swift-nio") }

let package = Package(
    name: "hermes",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .visionOS(.v2), .watchOS(.v11)],
    products: [
        .library(name: "Hermes", targets: ["Hermes"]),
        .library(name: "HermesProtocols", targets: ["HermesProtocols"]),
        .library(name: "HermesServer", targets: ["HermesServer"]),
        .executable(name: "hermes", targets: ["HermesCLI"]),
    ],
    traits: [
        .trait(name: "Server", description: "The server, its stores and the command line (leave out in apps)."),
        .default(enabledTraits: ["Server"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
        .package(url: "https://github.com/apple/swift-nio-transport-services", from: "1.28.0"),
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        // Behind the trait "Server".
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(
            url: "https://github.com/apple/swift-configuration",
            from: "1.4.0",
            traits: ["YAML", "CommandLineArguments"]
        ),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.0.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.34.1"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.0"),
        .package(url: "https://github.com/vapor/jwt-kit", from: "5.7.1"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // L0: bytes <-> values, spoken by both ends.
        .target(
            name: "HermesWire",
            dependencies: [
                nio("NIOCore"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ],
            swiftSettings: strict
        ),
        // L1: the domain. Knows no packet, SQL or socket.
        .target(
            name: "HermesCore",
            dependencies: [
                nio("NIOCore"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
                server("Crypto", "swift-crypto"),
                server("CryptoExtras", "swift-crypto"),
            ],
            swiftSettings: strict
        ),
        // L2: the stores.
        .target(
            name: "HermesSQLite",
            dependencies: [
                "HermesCore",
                nio("NIOCore"),
                .product(name: "Logging", package: "swift-log"),
                server("GRDB", "GRDB.swift"),
                server("GRDBSQLite", "GRDB.swift"),
            ],
            swiftSettings: strict
        ),
        // L2: senders to the push services, and of webhooks.
        .target(
            name: "HermesPush",
            dependencies: [
                "HermesCore",
                "HermesWire",
                nio("NIOCore"),
                nio("NIOFoundationCompat"),
                nio("NIOHTTP1"),
                nio("NIOPosix"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "Logging", package: "swift-log"),
                server("AsyncHTTPClient", "async-http-client"),
                server("Crypto", "swift-crypto"),
                server("JWTKit", "jwt-kit"),
            ],
            swiftSettings: strict
        ),
        // L3: one folder per protocol, and Listening.
        .target(
            name: "HermesGateways",
            dependencies: [
                "HermesCore",
                "HermesWire",
                nio("NIOCore"),
                nio("NIOPosix"),
                nio("NIOTLS"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
                server("Configuration", "swift-configuration"),
                server("Crypto", "swift-crypto"),
                server("CryptoExtras", "swift-crypto"),
                server("Metrics", "swift-metrics"),
                server("ServiceLifecycle", "swift-service-lifecycle"),
                server("Yams", "Yams"),
            ],
            swiftSettings: strict
        ),
        // L4: assembly.
        .target(
            name: "HermesServer",
            dependencies: [
                "HermesCore",
                "HermesGateways",
                "HermesPush",
                "HermesSQLite",
                "HermesWire",
                nio("NIOCore"),
                nio("NIOPosix"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "Logging", package: "swift-log"),
                server("Configuration", "swift-configuration"),
                server("CoreMetrics", "swift-metrics"),
                server("Metrics", "swift-metrics"),
                server("Hummingbird", "hummingbird"),
                server("HummingbirdCore", "hummingbird"),
                server("JWTKit", "jwt-kit"),
                nio("NIOHTTP1"),
                server("HTTPTypes", "swift-http-types"),
                server("NIOHTTPTypes", "swift-nio-extras"),
                server("NIOHTTPTypesHTTP1", "swift-nio-extras"),
                server("Crypto", "swift-crypto"),
                server("ServiceLifecycle", "swift-service-lifecycle"),
                server("UnixSignals", "swift-service-lifecycle"),
            ],
            swiftSettings: strict
        ),
        // The SDK: HermesClient, MQTTClient, and the engine of all clients. Imports HermesWire only.
        .target(
            name: "Hermes",
            dependencies: [
                "HermesWire",
                nio("NIOCore"),
                nio("NIOPosix"),
                nio("NIOConcurrencyHelpers"),
                nio("NIOHTTP1"),
                nio("NIOTLS"),
                nio("NIOWebSocket"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(
                    name: "NIOTransportServices",
                    package: "swift-nio-transport-services",
                    condition: .when(platforms: [.macOS, .iOS, .tvOS, .watchOS, .visionOS])
                ),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ],
            swiftSettings: strict
        ),
        // The SDK's clients of the other protocols, on the same engine.
        .target(
            name: "HermesProtocols",
            dependencies: [
                "Hermes",
                "HermesWire",
                nio("NIOCore"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ],
            swiftSettings: strict
        ),
        // What several test targets need: manual clock, conformance suites, a server in this process.
        .target(
            name: "HermesTestKit",
            dependencies: [
                "Hermes",
                "HermesCore",
                "HermesGateways",
                "HermesServer",
                "HermesSQLite",
                "HermesWire",
                nio("NIOCore"),
                nio("NIOEmbedded"),
                nio("NIOHTTP1"),
                nio("NIOPosix"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        // L5: the executable `hermes`.
        .executableTarget(
            name: "HermesCLI",
            dependencies: [
                "Hermes",
                "HermesProtocols",
                "HermesServer",
                "HermesWire",
                nio("NIOCore"),
                nio("NIOHTTP1"),
                nio("NIOPosix"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "Logging", package: "swift-log"),
                server("ArgumentParser", "swift-argument-parser"),
                server("Histogram", "hdrhistogram-swift"),
            ],
            swiftSettings: strict
        ),
        test(
            "HermesWire",
            [nio("NIOCore"), .product(name: "SwiftProtobuf", package: "swift-protobuf")],
            data: ["Vectors"]
        ),
        // Counts allocations in tests; never part of the server.
        .target(name: "AllocationCounter", path: "Tests/AllocationCounter"),
        test("HermesCore", [.target(name: "AllocationCounter"), nio("NIOCore")]),
        test(
            "HermesSQLite",
            [
                .target(name: "HermesCore"), server("GRDB", "GRDB.swift"), server("GRDBSQLite", "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        test(
            "HermesPush",
            [
                .target(name: "HermesCore"), nio("NIOCore"), nio("NIOPosix"), server("Crypto", "swift-crypto"),
                server("CryptoExtras", "swift-crypto"),
            ]
        ),
        test(
            "HermesGateways",
            [
                .target(name: "HermesCore"), .target(name: "HermesWire"),
                nio("NIOCore"), nio("NIOEmbedded"), nio("NIOPosix"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ]
        ),
        test(
            "HermesServer",
            [
                .target(name: "Hermes"), .target(name: "HermesCore"), .target(name: "HermesGateways"),
                .target(name: "HermesProtocols"), .target(name: "HermesPush"), .target(name: "HermesSQLite"),
                .target(name: "HermesWire"),
                nio("NIOCore"), nio("NIOPosix"), nio("NIOHTTP1"), server("CoreMetrics", "swift-metrics"),
                server("HTTPTypes", "swift-http-types"),
                server("Crypto", "swift-crypto"), server("CryptoExtras", "swift-crypto"),
                .product(name: "Logging", package: "swift-log"), .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]
        ),
        test(
            "Hermes",
            [
                .target(name: "HermesProtocols"), .target(name: "HermesWire"), nio("NIOCore"), nio("NIOEmbedded"),
                nio("NIOPosix"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]
        ),
        test(
            "HermesCLI",
            [.target(name: "Hermes"), .target(name: "HermesServer"), nio("NIOCore"), nio("NIOPosix")]
        ),
        // The short example, so that it is known to compile; it is a package of its own as well.
        .executableTarget(
            name: "QuickChat",
            dependencies: ["Hermes", .product(name: "SwiftProtobuf", package: "swift-protobuf")],
            path: "Examples/QuickChat/Sources/QuickChat",
            swiftSettings: strict
        ),
        // The logic of the example app, so that what it shows is known to work; the app is a package of its own.
        .target(
            name: "ChatLogic",
            dependencies: ["Hermes"],
            path: "Examples/Chat/ChatLogic",
            swiftSettings: strict
        ),
        .testTarget(
            name: "ChatLogicTests",
            dependencies: ["ChatLogic", "Hermes", "HermesTestKit"],
            path: "Examples/Chat/Tests",
            swiftSettings: strict
        ),
    ],
    swiftLanguageModes: [.v6]
)

/// A test target mirrors the target it is named after; data such as wire vectors lies in its folder `Vectors`.
func test(_ name: String, _ dependencies: [Target.Dependency], data: [String] = []) -> Target {
    .testTarget(
        name: "\(name)Tests",
        dependencies: [.target(name: name), "HermesTestKit"] + dependencies,
        // Read by path, not bundled: Foundation's bundles are not wanted here.
        exclude: data,
        swiftSettings: strict
    )
}

// For developers alone: a libFuzzer target per decoder, built and run by scripts/fuzz.
if Context.environment["HERMES_DEV"] != nil {
    package.targets.append(
        .target(
            name: "FuzzSupport",
            dependencies: ["HermesWire", nio("NIOCore"), .product(name: "SwiftProtobuf", package: "swift-protobuf")],
            path: "Fuzz/Support",
            swiftSettings: strict
        )
    )
    /// - Parameter dependencies: beside what all need.
    func fuzz(_ name: String, _ dependencies: [Target.Dependency] = []) {
        package.targets.append(
            .executableTarget(
                name: name,
                dependencies: [
                    "FuzzSupport", "HermesWire", nio("NIOCore"),
                    .product(name: "SwiftProtobuf", package: "swift-protobuf"),
                ] + dependencies,
                path: "Fuzz/\(name)",
                swiftSettings: strict
            )
        )
    }
    for name in ["FuzzIMPB", "FuzzLiveRoom", "FuzzQSIOP", "FuzzDelimited", "FuzzMQTT", "FuzzJSON", "FuzzWebSocket"] {
        fuzz(name)
    }
    // Whole connections, with the server behind them.
    package.targets.append(
        .target(
            name: "FuzzServer",
            dependencies: [
                "FuzzSupport", "HermesCore", "HermesGateways", "HermesWire", nio("NIOCore"), nio("NIOPosix"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Fuzz/Server",
            swiftSettings: strict
        )
    )
    for name in [
        "FuzzMQTTSession", "FuzzDelimitedSession", "FuzzIMPBSession", "FuzzLiveRoomSession", "FuzzQSIOPSession",
    ] {
        fuzz(name, ["FuzzServer", "HermesCore", "HermesGateways", nio("NIOPosix")])
    }
    fuzz(
        "FuzzHTTP",
        ["FuzzServer", "HermesCore", "HermesGateways", "HermesServer", .product(name: "Logging", package: "swift-log")]
    )
    // The clients of the SDK before a hostile server.
    fuzz(
        "FuzzClient",
        ["Hermes", "HermesProtocols", nio("NIOConcurrencyHelpers"), nio("NIOPosix"), server("Crypto", "swift-crypto")]
    )
}
