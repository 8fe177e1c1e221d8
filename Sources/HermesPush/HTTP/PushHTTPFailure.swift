// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The reason why a request to a push service or to a webhook's receiver has no answer.
enum PushHTTPFailure: Error, Hashable, CustomStringConvertible {
    case badURL
    /// The client was shut down.
    case closed
    /// The connection accepts no further requests.
    case leaving
    case noHTTP2
    case noSettings
    case noAnswer
    case connectionClosed
    case badAnswer(String)

    var description: String {
        switch self {
        case .badURL: "the URL has no host"
        case .closed: "the server is stopping"
        case .leaving: "the service closes the connection"
        case .noHTTP2: "the service does not speak HTTP/2"
        case .noSettings: "the service did not begin HTTP/2 in time"
        case .noAnswer: "the service did not answer in time"
        case .connectionClosed: "the service closed the connection"
        case .badAnswer(let reason): "the answer is not valid: \(reason)"
        }
    }
}
