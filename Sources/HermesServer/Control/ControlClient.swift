// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The client of ``ControlSocket``: sends requests to the server that runs on a data directory, if there is one.
enum ControlClient {
    /// The longest path of a socket, in bytes. The system also needs room for a zero byte.
    static let maxPathBytes = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    /// The longest wait for an answer, in seconds.
    static let answerLimit = 120

    /// - Parameter limit: the longest wait for an answer, in seconds; ignored for requests that may take long.
    /// - Returns: nil if no server listens in the directory.
    /// - Throws: ``ServerFailure`` if a server listens but does not answer.
    static func ask(
        _ request: ControlRequest,
        directory: String,
        limit: Int = answerLimit
    ) async throws(ServerFailure) -> ControlResponse? {
        // The request has a thread of its own, because it blocks, and the answer may need all of Swift's thread pool.
        let result: Result<ControlResponse?, ServerFailure> = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                do throws(ServerFailure) {
                    continuation.resume(returning: .success(try askAndWait(request, directory, limit)))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return try result.get()
    }

    private static func askAndWait(
        _ request: ControlRequest,
        _ directory: String,
        _ limit: Int
    ) throws(ServerFailure) -> ControlResponse? {
        let limit: Int? = request.mayTakeLong ? nil : limit
        let began = ContinuousClock.now
        func isLate() -> Bool { limit.map { ContinuousClock.now - began >= .seconds($0) } ?? false }
        guard let descriptor = connect(to: ControlSocket.path(in: directory), limit) else {
            if isLate() { throw noAnswer(directory, limit) }
            return nil
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try handle.write(contentsOf: JSONEncoder().encode(request) + Data([UInt8(ascii: "\n")]))
            let answer = try handle.readToEnd() ?? Data()
            guard !answer.isEmpty else { throw NoAnswer() }
            return try JSONDecoder().decode(ControlResponse.self, from: answer)
        } catch let error as DecodingError {
            throw ServerFailure(
                .internalError,
                "the answer of the server on \(directory) is not understood; it may have another version (\(error))"
            )
        } catch {
            if isLate() { throw noAnswer(directory, limit) }
            throw ServerFailure(
                .dataInUse,
                "the server on \(directory) did not answer, probably because it is stopping; try again"
            )
        }
    }

    private static func noAnswer(_ directory: String, _ limit: Int?) -> ServerFailure {
        ServerFailure(
            .dataInUse,
            "the server on \(directory) did not answer within \(limit ?? 0) s. It may be overloaded or suspended; its log "
                + "may say why. It may still carry out the request"
        )
    }

    /// The server closed the connection without an answer.
    private struct NoAnswer: Error {}

    /// - Parameter limit: the longest wait for each read and write, in seconds; nil means no limit.
    private static func connect(to path: String, _ limit: Int?) -> Int32? {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count <= maxPathBytes else { return nil }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        #if canImport(Glibc)
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        #else
        let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        guard descriptor >= 0 else { return nil }
        if let limit {
            var time = timeval()
            time.tv_sec = .init(limit)
            for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
                setsockopt(descriptor, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
            }
        }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { sockaddr in
                #if canImport(Glibc)
                Glibc.connect(descriptor, sockaddr, size)
                #elseif canImport(Musl)
                Musl.connect(descriptor, sockaddr, size)
                #else
                Darwin.connect(descriptor, sockaddr, size)
                #endif
            }
        }
        guard result == 0 else {
            close(descriptor)
            return nil
        }
        return descriptor
    }
}

extension ControlRequest {
    /// Whether the server may need longer for the request than for others, because it copies or changes much data.
    fileprivate var mayTakeLong: Bool {
        switch self {
        case .backup, .deleteUser: true
        default: false
        }
    }
}
