// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

/// The HTTP API's request for a push: `POST /v1/push`.
struct PushEndpoint {
    private let url: String
    private let key: String

    /// - Parameters:
    ///   - server: the address of the HTTP port, for example `http://127.0.0.1:8080`.
    ///   - keyFile: the file with the API key; nil if the key is in `HERMES_API_KEY`.
    /// - Throws: BenchFailure if there is no key.
    init(_ server: String, keyFile: String?) throws {
        url = server + (server.hasSuffix("/") ? "v1/push" : "/v1/push")
        let text: String?
        if let keyFile {
            text = FileManager.default.contents(atPath: keyFile).map { String(decoding: $0, as: UTF8.self) }
        } else {
            text = ProcessInfo.processInfo.environment["HERMES_API_KEY"]
        }
        let key = text?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
        guard key.hasPrefix("hk_") else {
            throw BenchFailure(
                "no API key: give --key-file or HERMES_API_KEY; "
                    + "create a key with \"hermes apikey create NAME --scopes push\"",
                exitCode: ExitCode(77)
            )
        }
        self.key = key
    }

    /// Pushes, and waits until the push is accepted.
    ///
    /// - Parameter body: the request, in JSON.
    func post(_ body: String) async throws {
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers.add(name: "Authorization", value: "Bearer \(key)")
        request.headers.add(name: "Content-Type", value: "application/json")
        request.body = .bytes(ByteBuffer(string: body))
        let response: HTTPClientResponse
        do {
            response = try await HTTPClient.shared.execute(request, timeout: .seconds(30))
        } catch {
            throw BenchFailure(
                "cannot reach \(url): \(error); is the server running, and --http right?",
                exitCode: ExitCode(69)
            )
        }
        let answer = String(buffer: try await response.body.collect(upTo: 4 << 20))
        guard response.status == .accepted else {
            throw BenchFailure("\(url) answered \(response.status.code): \(answer.prefix(500))")
        }
    }
}
