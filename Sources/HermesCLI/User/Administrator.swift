// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import HermesServer

/// Sends a request to the running server of a data directory. If no server runs, carries out the request itself.
struct Administrator {
    private let options: DataOptions

    init(_ options: DataOptions) { self.options = options }

    /// - Throws: `ExitCode`, after the reason was written to standard error.
    func ask(_ request: ControlRequest) async throws -> ControlResponse {
        let arguments = options.data.map { ["--data.directory", $0] } ?? []
        let response: ControlResponse
        do throws(ServerFailure) {
            response = try await HermesServer.administer(
                request,
                arguments: arguments,
                file: options.config,
                note: Report.note
            )
        } catch {
            throw Report.failure(error)
        }
        if case .failed(let code, let message) = response {
            throw Report.failure("\(message) (error \(code))")
        }
        return response
    }
}

/// Dates as text.
enum Day {
    /// - Parameter milliseconds: the time in milliseconds since 1970.
    static func text(_ milliseconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(milliseconds) / 1000).formatted(.iso8601.year().month().day())
    }
}
