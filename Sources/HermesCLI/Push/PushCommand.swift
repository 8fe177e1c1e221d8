// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation

/// The command `hermes push`.
struct PushCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "push",
        abstract: "Push to users, a device, a topic, a room or everyone, as a back end does.",
        discussion: """
            Prints the push's id. The API key comes from --key-file or HERMES_API_KEY; create one with "hermes apikey \
            create NAME --scopes push".

            Examples:
              hermes push --to ann --title "Parcel" --body "It is at your door"
              hermes push --to ann --to bob --title "Score 2:1" --collapse match-7 --ttl 10m
              hermes push --to ann --device phone --body "Only here" --data '{"order":7}' --priority high
              hermes push --topic news/de --title "News" --retain
              hermes push --room lobby --body "Back in five minutes"
              hermes push --everyone --title "Maintenance at 22:00" --idempotency-key maintenance-1
            """
    )

    @Option(help: ArgumentHelp("Push to this user, by name or uid; can be given several times.", valueName: "name"))
    var to: [String] = []

    @Option(help: ArgumentHelp("Push only to this device of the user.", valueName: "id"))
    var device: String?

    @Option(help: ArgumentHelp("Push to the subscribers of this topic.", valueName: "topic"))
    var topic: String?

    @Option(help: ArgumentHelp("Push to everybody who is in this room now.", valueName: "room"))
    var room: String?

    @Flag(help: "Push to every account.")
    var everyone = false

    @Option(help: "The push's title.")
    var title: String?

    @Option(help: "The push's text.")
    var body: String?

    @Option(help: ArgumentHelp("The application's own JSON object.", valueName: "json"))
    var data: String?

    @Option(
        help: ArgumentHelp("Replace an earlier push that has the same key and is still in the inbox.", valueName: "key")
    )
    var collapse: String?

    @Option(help: ArgumentHelp("Do not deliver after this time, for example 90s, 10m, 1h or 2d.", valueName: "time"))
    var ttl: String?

    @Option(help: ArgumentHelp("How soon a sleeping device is woken: normal or high.", valueName: "priority"))
    var priority: String?

    @Flag(help: "With --topic: retain the push for later subscribers.")
    var retain = false

    @Flag(help: "With --topic: the payload is hermes.v1.Push as protobuf instead of JSON.")
    var protobuf = false

    @Option(help: ArgumentHelp("Make repetition safe: a push with the same key is sent only once.", valueName: "key"))
    var idempotencyKey: String?

    @Option(help: ArgumentHelp("The server's HTTP port.", valueName: "url"))
    var server = "http://127.0.0.1:8080"

    @OptionGroup var key: APIKeyOptions

    func validate() throws {
        let targets = [!to.isEmpty, topic != nil, room != nil, everyone].filter { $0 }.count
        guard targets > 0 else {
            throw ValidationError("the recipients are missing: give one of --to, --topic, --room and --everyone")
        }
        guard targets == 1 else {
            throw ValidationError(
                "there is more than one kind of recipients: give only one of --to, --topic, --room and --everyone"
            )
        }
        guard title != nil || body != nil || data != nil else {
            throw ValidationError("the push is empty: give --title, --body or --data")
        }
        guard device == nil || to.count == 1 else {
            throw ValidationError("--device needs exactly one --to")
        }
        guard topic != nil || !retain && !protobuf else {
            throw ValidationError("--retain and --protobuf need --topic")
        }
        if let ttl, Self.seconds(ttl) == nil {
            throw ValidationError("--ttl \(ttl): must be a number with s, m, h or d, such as 10m")
        }
        if let data, !Self.isObject(data) { throw ValidationError("--data: not a JSON object, such as {\"order\":7}") }
        if let priority, !["normal", "high"].contains(priority) {
            throw ValidationError("--priority \(priority): must be normal or high")
        }
    }

    func run() async throws {
        do {
            let endpoint = try HTTPEndpoint(server, path: "/v1/push")
            let key = try key.read()
            var headers = [("Authorization", "Bearer \(key)"), ("Content-Type", "application/json")]
            if let idempotencyKey { headers.append(("Idempotency-Key", idempotencyKey)) }
            let answer = try await endpoint.post(Array(try request().utf8), headers: headers)
            let id = try PushAnswer(answer, server: server).id.printable
            try CommandOutput.print(id, after: "the push was accepted; its id is \(id)")
        } catch let failure as ClientFailure {
            StandardError.tell(failure.message)
            throw failure.exitCode
        }
    }

    /// The body of the request.
    private func request() throws -> String {
        let target: String
        if let topic {
            let format = protobuf ? "protobuf" : "json"
            target = "{\"topic\":{\"name\":\(Self.quoted(topic)),\"format\":\"\(format)\",\"retain\":\(retain)}}"
        } else if let room {
            target = "{\"room\":\(Self.quoted(room))}"
        } else if everyone {
            target = "{\"everyone\":true}"
        } else if let device {
            target = "{\"device\":{\"user\":\(Self.quoted(to[0])),\"device_id\":\(Self.quoted(device))}}"
        } else if to.count == 1 {
            target = "{\"user\":\(Self.quoted(to[0]))}"
        } else {
            target = "{\"users\":[\(to.map(Self.quoted).joined(separator: ","))]}"
        }
        var members = ["\"to\":\(target)"]
        if let title { members.append("\"title\":\(Self.quoted(title))") }
        if let body { members.append("\"body\":\(Self.quoted(body))") }
        if let data { members.append("\"data\":\(data)") }
        if let collapse { members.append("\"collapse_key\":\(Self.quoted(collapse))") }
        if let ttl, let seconds = Self.seconds(ttl) { members.append("\"ttl_seconds\":\(seconds)") }
        if let priority { members.append("\"priority\":\(Self.quoted(priority))") }
        return "{" + members.joined(separator: ",") + "}"
    }

    private static func quoted(_ text: String) -> String {
        // The encoder does not fail, because every text has a JSON form.
        (try? JSONEncoder().encode(text)).map { String(decoding: $0, as: UTF8.self) } ?? "\"\""
    }

    private static func isObject(_ text: String) -> Bool {
        (try? JSONSerialization.jsonObject(with: Data(text.utf8))) is [String: Any]
    }

    /// - Returns: the duration in seconds; nil if the text is not a duration.
    static func seconds(_ text: String) -> Int64? {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
        guard let last = text.last, let unit = units[last], let number = Int64(text.dropLast()), number > 0 else {
            return nil
        }
        let (seconds, overflow) = number.multipliedReportingOverflow(by: unit)
        return overflow ? nil : seconds
    }
}

/// The parsed answer of the server.
struct PushAnswer {
    private struct Accepted: Decodable {
        let id: String
        let unknown: [String]?
    }

    private struct Refused: Decodable {
        let title: String
        let detail: String
        let code: Int
    }

    let id: String

    init(_ answer: HTTPEndpoint.Answer, server: String) throws(ClientFailure) {
        let data = Data(answer.body)
        if answer.status == 202, let accepted = try? JSONDecoder().decode(Accepted.self, from: data) {
            id = accepted.id
            if let unknown = accepted.unknown, !unknown.isEmpty {
                StandardError.tell("these accounts do not exist: \(unknown.joined(separator: ", "))")
            }
            return
        }
        guard let refused = try? JSONDecoder().decode(Refused.self, from: data) else {
            throw ClientFailure(
                "\(server) answered \(answer.status), which is not an answer of a Hermes server; check --server"
            )
        }
        throw ClientFailure(
            "\(server): \(refused.detail) (error \(refused.code))",
            exitCode: answer.status == 401 || answer.status == 403 ? ExitCode(77) : .failure
        )
    }
}
