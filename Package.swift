// swift-tools-version: 6.2
// Hermes
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

/// Products of other packages that the server and the client need, each with its package.
let shared = [
    "DequeModule": "swift-collections", "HeapModule": "swift-collections", "Logging": "swift-log",
    "NIOConcurrencyHelpers": "swift-nio", "NIOCore": "swift-nio", "NIOEmbedded": "swift-nio",
    "NIOFoundationCompat": "swift-nio", "NIOHTTP1": "swift-nio", "NIOPosix": "swift-nio", "NIOSSL": "swift-nio-ssl",
    "NIOTLS": "swift-nio", "NIOWebSocket": "swift-nio", "SwiftProtobuf": "swift-protobuf",
]
/// Products that are fetched and linked only with the trait "Server". An app that uses only the client does not get
/// them.
let serverOnly = [
    "ArgumentParser": "swift-argument-parser", "AsyncHTTPClient": "async-http-client",
    "Configuration": "swift-configuration", "CoreMetrics": "swift-metrics", "Crypto": "swift-crypto",
    "CryptoExtras": "swift-crypto", "GRDB": "GRDB.swift", "GRDBSQLite": "GRDB.swift", "HTTPTypes": "swift-http-types",
    "Hummingbird": "hummingbird", "HummingbirdCore": "hummingbird", "Metrics": "swift-metrics",
    "NIOHPACK": "swift-nio-http2", "NIOHTTP2": "swift-nio-http2", "NIOHTTPTypes": "swift-nio-extras",
    "NIOHTTPTypesHTTP1": "swift-nio-extras",
    "ServiceLifecycle": "swift-service-lifecycle", "UnixSignals": "swift-service-lifecycle", "Yams": "Yams",
]

/// Returns the target of this package, or the product of another package, with this name.
func dependency(_ name: String) -> Target.Dependency {
    if name == "NIOTransportServices" {
        let apple = TargetDependencyCondition.when(platforms: [.macOS, .iOS, .tvOS, .watchOS, .visionOS])
        return .product(name: name, package: "swift-nio-transport-services", condition: apple)
    }
    if let package = shared[name] { return .product(name: name, package: package) }
    if let package = serverOnly[name] {
        return .product(name: name, package: package, condition: .when(traits: ["Server"]))
    }
    return .target(name: name)
}

/// - Parameter path: the folder of the sources; nil for `Sources/<name>`.
func library(_ name: String, path: String? = nil, _ uses: [String]) -> Target {
    .target(name: name, dependencies: uses.map(dependency), path: path)
}

/// - Parameter path: the folder of the sources; nil for `Sources/<name>`.
func program(_ name: String, path: String? = nil, _ uses: [String]) -> Target {
    .executableTarget(name: name, dependencies: uses.map(dependency), path: path)
}

/// Returns the tests of one target. Tests read data such as wire vectors by path, so they need no bundles of
/// Foundation.
///
/// - Parameter path: the folder of the tests; nil for `Tests/<name>Tests`.
func tests(_ name: String, path: String? = nil, _ uses: [String], data: [String] = []) -> Target {
    let uses = [name, "HermesTestKit"] + uses
    return .testTarget(name: "\(name)Tests", dependencies: uses.map(dependency), path: path, exclude: data)
}

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
        .trait(name: "Pages", description: "The server's web pages and its console (leave out for a server without)."),
        .default(enabledTraits: ["Server", "Pages"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
        .package(url: "https://github.com/apple/swift-nio-transport-services", from: "1.28.0"),
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        // The following packages need the trait "Server".
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0", traits: []),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.0.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.34.1"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: []),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.0"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    // The layers, from the lowest to the highest. docs/architecture.md describes the content of each layer.
    targets: [
        library("HermesWire", ["NIOCore", "SwiftProtobuf"]),
        library("HermesCore", ["Crypto", "CryptoExtras", "DequeModule", "HeapModule", "NIOCore"]),
        library("HermesSQLite", ["HermesCore", "GRDB", "GRDBSQLite", "Logging", "NIOCore"]),
        library(
            "HermesPush",
            [
                "HermesCore", "HermesWire", "AsyncHTTPClient", "Crypto", "CryptoExtras", "DequeModule", "NIOCore",
                "NIOFoundationCompat", "NIOHPACK", "NIOHTTP1", "NIOHTTP2", "NIOPosix", "NIOSSL", "NIOTLS",
            ]
        ),
        library(
            "HermesGateways",
            [
                "HermesCore", "HermesWire", "Configuration", "Crypto", "CryptoExtras", "DequeModule", "Logging",
                "Metrics", "NIOCore", "NIOPosix", "NIOSSL", "NIOTLS", "SwiftProtobuf", "Yams",
            ]
        ),
        // The system's zlib. async-http-client links with it, too.
        .systemLibrary(name: "CZlib", providers: [.apt(["zlib1g-dev"])]),
        library(
            "HermesServer",
            [
                "CZlib", "HermesCore", "HermesGateways", "HermesPush", "HermesSQLite", "HermesWire", "CoreMetrics",
                "Crypto", "CryptoExtras", "HTTPTypes", "Hummingbird", "HummingbirdCore", "Logging", "Metrics",
                "NIOCore", "NIOHTTP1", "NIOHTTPTypes", "NIOHTTPTypesHTTP1", "NIOPosix", "NIOSSL", "ServiceLifecycle",
                "UnixSignals",
            ]
        ),
        // The SDK.
        library(
            "Hermes",
            [
                "HermesWire", "DequeModule", "Logging", "NIOConcurrencyHelpers", "NIOCore", "NIOHTTP1", "NIOPosix",
                "NIOSSL", "NIOTLS", "NIOTransportServices", "NIOWebSocket", "SwiftProtobuf",
            ]
        ),
        library("HermesProtocols", ["Hermes", "HermesWire", "DequeModule", "Logging", "NIOCore", "SwiftProtobuf"]),
        program(
            "HermesCLI",
            [
                "Hermes", "HermesProtocols", "HermesServer", "ArgumentParser", "NIOCore", "NIOHTTP1", "NIOPosix",
                "NIOSSL",
            ]
        ),
        // The tests, and the code that they share.
        library(
            "HermesTestKit",
            [
                "Hermes", "HermesCore", "HermesGateways", "HermesServer", "HermesWire", "Logging", "NIOCore",
                "NIOHTTP1", "NIOPosix",
            ]
        ),
        .target(name: "AllocationCounter", path: "Tests/AllocationCounter"),
        tests("HermesWire", ["NIOCore", "SwiftProtobuf"], data: ["Vectors"]),
        tests("HermesCore", ["AllocationCounter", "HeapModule", "NIOCore"]),
        tests("HermesSQLite", ["HermesCore", "GRDB", "GRDBSQLite", "Logging"]),
        tests("HermesPush", ["HermesCore", "Crypto", "CryptoExtras", "NIOCore", "NIOPosix", "NIOSSL"]),
        tests(
            "HermesGateways",
            ["HermesCore", "HermesWire", "NIOCore", "NIOEmbedded", "NIOPosix", "NIOSSL", "NIOTLS", "SwiftProtobuf"]
        ),
        tests(
            "HermesServer",
            [
                "Hermes", "HermesCore", "HermesGateways", "HermesProtocols", "HermesPush", "HermesSQLite", "HermesWire",
                "CoreMetrics", "Crypto", "CryptoExtras", "HTTPTypes", "Logging", "NIOCore", "NIOHTTP1", "NIOPosix",
                "NIOSSL",
            ]
        ),
        tests("Hermes", ["HermesProtocols", "HermesWire", "NIOCore", "NIOEmbedded", "NIOPosix", "NIOSSL"]),
        tests("HermesCLI", ["Hermes", "HermesServer", "NIOCore", "NIOPosix"]),
        // The short example is also a package. It is listed here so that each build compiles it.
        program("QuickChat", path: "Examples/QuickChat/Sources/QuickChat", ["Hermes", "SwiftProtobuf"]),
        // The logic of the example app, which is a separate package. It is listed here so that its tests run with the
        // others.
        library("ChatLogic", path: "Examples/Chat/ChatLogic", ["Hermes"]),
        tests("ChatLogic", path: "Examples/Chat/Tests", ["Hermes"]),
    ],
    swiftLanguageModes: [.v6]
)

/// The targets below are only for developers of Hermes.
let development = Context.environment["HERMES_DEV"]

// `hermes-bench` is added only here, so that no other product contains a benchmark. scripts/bench builds it.
if let development, development != "fuzz" {
    package.products.append(.executable(name: "hermes-bench", targets: ["HermesBench"]))
    package.targets += [
        program(
            "HermesBench",
            path: "Benchmarks/HermesBench",
            [
                "Hermes", "HermesCore", "HermesProtocols", "HermesServer", "HermesSQLite", "HermesWire",
                "ArgumentParser", "AsyncHTTPClient", "GRDBSQLite", "Logging", "NIOCore", "NIOHTTP1", "NIOPosix",
            ]
        ),
        tests("HermesBench", path: "Benchmarks/Tests", ["HermesSQLite", "HermesWire", "ArgumentParser", "NIOCore"]),
    ]
}

// The fuzzers of decoders, of whole connections to a server, and of the SDK's clients. When scripts/fuzz builds them,
// they are programs that link with libFuzzer. In other builds they are libraries, which are only compiled.
if let development {
    func fuzzer(_ name: String, _ uses: [String] = []) -> Target {
        let uses = ["FuzzSupport", "HermesWire", "NIOCore", "SwiftProtobuf"] + uses
        let path = "Fuzz/\(name)"
        return development == "fuzz" ? program(name, path: path, uses) : library(name, path: path, uses)
    }
    let server = ["FuzzServer", "HermesCore", "HermesGateways"]
    package.targets += [
        library("FuzzSupport", path: "Fuzz/Support", ["HermesWire", "NIOCore", "SwiftProtobuf"]),
        library(
            "FuzzServer",
            path: "Fuzz/Server",
            ["FuzzSupport", "HermesCore", "HermesGateways", "HermesWire", "Logging", "NIOCore", "NIOPosix"]
        ),
        fuzzer("FuzzHTTP", server + ["HermesServer", "Logging"]),
        fuzzer("FuzzClient", ["Hermes", "HermesProtocols", "Crypto", "NIOConcurrencyHelpers", "NIOPosix"]),
        fuzzer("FuzzJSON"), fuzzer("FuzzWebSocket"),
    ]
    for name in ["FuzzIMPB", "FuzzLiveRoom", "FuzzQSIOP", "FuzzDelimited", "FuzzMQTT"] {
        package.targets += [fuzzer(name), fuzzer("\(name)Session", server + ["NIOPosix"])]
    }
}

/// The strictest settings that the language offers. Warnings become errors if HERMES_STRICT is set, as in the Makefile
/// and in CI. Warnings never become errors in packages that depend on Hermes.
let strict: [SwiftSetting] =
    [
        "ExistentialAny", "InternalImportsByDefault", "MemberImportVisibility", "NonisolatedNonsendingByDefault",
        "InferIsolatedConformances",
    ].map { .enableUpcomingFeature($0) }
    + (Context.environment["HERMES_STRICT"] == nil ? [] : [.treatAllWarnings(as: .error)])
for target in package.targets where !["AllocationCounter", "CZlib"].contains(target.name) {
    target.swiftSettings = strict
}
