// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// Translates between QSIOP's frames and the core.
package enum QSIOPTranslation {
    /// The longest access token that is examined, in bytes. The server's tokens have 43 bytes.
    static let maxTokenBytes = 256
    /// The device id of a connection whose report names no device.
    static let defaultDevice = "qsiop"

    /// A refused request, and its answer.
    struct Refusal: Error, Hashable {
        let answer: QSIOPAnswer

        init(_ code: HermesError.Code, _ message: String) { answer = QSIOPAnswer(code, message) }
    }

    // MARK: Requests

    /// Parses a report (op 2): `userid`, `token`, `device`.
    static func report(from frame: QSIOPFrame, requiresToken: Bool) -> Result<QSIOPReport, Refusal> {
        Result { () throws(Refusal) -> QSIOPReport in
            let properties = try properties(of: frame)
            guard let userid = properties["userid"], !userid.isEmpty else {
                throw Refusal(.invalidArgument, "userid is missing")
            }
            // Only digits are allowed, because `Int32` also accepts texts such as "+7", which are not userids.
            guard userid.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
                throw Refusal(.invalidArgument, "userid is a number from 1 to 2147483647")
            }
            // A number that no account can have is refused at the login, like the number of an unknown account.
            let user = Int32(userid).flatMap { UserID(rawValue: $0) }
            let named = properties["device"].flatMap { $0.isEmpty ? nil : $0 } ?? defaultDevice
            guard let device = DeviceID(named) else {
                throw Refusal(
                    .ofValue(named.utf8.count, atMost: DeviceID.maxBytes),
                    "device is at most \(DeviceID.maxBytes) bytes of printable ASCII"
                )
            }
            let token = properties["token"].flatMap { $0.isEmpty ? nil : $0 }
            guard token != nil || !requiresToken else {
                throw Refusal(.notAuthenticated, "token is missing; this server requires one")
            }
            guard (token?.utf8.count ?? 0) <= maxTokenBytes else {
                throw Refusal(.invalidToken, "the token is too long")
            }
            return QSIOPReport(user: user, token: token, device: device)
        }
    }

    /// Parses an acknowledgement (op 5): `id`.
    static func acknowledgedID(from frame: QSIOPFrame) -> Result<String, Refusal> {
        Result { () throws(Refusal) -> String in
            guard let id = try properties(of: frame)["id"], !id.isEmpty else {
                throw Refusal(.invalidArgument, "id is missing")
            }
            return id
        }
    }

    private static func properties(of frame: QSIOPFrame) throws(Refusal) -> QSIOPProperties {
        do {
            return try frame.deviceProperties()
        } catch {
            throw Refusal(.invalidArgument, error.message)
        }
    }

    // MARK: Answers

    /// Returns the frame of an answer.
    static func frame(_ answer: QSIOPAnswer) -> QSIOPFrame {
        QSIOPFrame(.response, ["code": String(answer.code), "msg": cut(answer.message, to: 1024)])
    }

    /// Returns the answer to a request that failed with this error.
    static func answer(for error: HermesError) -> QSIOPAnswer { QSIOPAnswer(error.code, error.message) }

    /// Returns the answer that the device gets before malformed bytes end its connection.
    static func answer(for error: WireError) -> QSIOPAnswer {
        switch error.code {
        case .frameTooLong: QSIOPAnswer(.tooLarge, error.message)
        case .badVersion: QSIOPAnswer(.unsupported, error.message)
        case .badMagic, .badLength, .unknownType, .badBody, .badText, .notEncodable:
            QSIOPAnswer(.invalidArgument, error.message)
        }
    }

    /// Returns the answer that the device gets when the core ends its connection.
    static func answer(for end: AttachmentEnd) -> QSIOPAnswer {
        switch end {
        case .replaced: QSIOPAnswer(.replaced, "the same device reported on another connection")
        case .accountDisabled: QSIOPAnswer(.accountDisabled, CloseReason.disabledText)
        case .accountDeleted: QSIOPAnswer(.accountDisabled, CloseReason.deletedText)
        case .accountRenamed: QSIOPAnswer(.notAuthenticated, "the account has another name")
        case .revoked: QSIOPAnswer(.invalidToken, "the token was revoked")
        case .shuttingDown: QSIOPAnswer(.shuttingDown, CloseReason.stoppingText)
        }
    }

    /// Returns the answer that the device gets when the server closes its connection; nil if it gets none.
    static func answer(for reason: CloseReason) -> QSIOPAnswer? {
        switch reason {
        case .attachment(let end): answer(for: end)
        case .shuttingDown: answer(for: AttachmentEnd.shuttingDown)
        case .malformed(let error): answer(for: error)
        case .notAuthenticated: QSIOPAnswer(.notAuthenticated, "no userid was reported in time")
        case .tokenExpired: QSIOPAnswer(.invalidToken, "the token has expired")
        case .memory: QSIOPAnswer(.overloaded, CloseReason.memoryText)
        case .rateLimited: QSIOPAnswer(.rateLimited, CloseReason.rateText)
        case .goodbye, .finished, .idle, .slowReader, .loginBudget, .loginRefused: nil
        }
    }

    // MARK: Accounts

    /// Checks a report, and opens its device. If there is a token, it must belong to the userid.
    static func logIn(
        _ report: QSIOPReport,
        address: String?,
        by accounts: AccountService
    ) async throws(HermesError) -> Login {
        let device = DeviceDescription(id: report.device, name: "QSIOP", platform: "QSIOP")
        let credential: Credential
        switch (report.token, report.user) {
        case (let token?, _): credential = .tokenOfAnyDevice(token)
        case (nil, let user?): credential = .claim(user)
        case (nil, nil):
            // The failure counts against the address, like a claim to be an account that does not exist.
            credential = try await accounts.limitingFailures(of: address) {
                () async throws(HermesError) -> Credential in
                throw HermesError(.wrongCredentials, "wrong name or password")
            }
        }
        let admission = try await accounts.admit(credential, device: device.id, address: address)
        // This is checked first, so that no device is created for another account.
        guard admission.account.id == report.user else {
            throw HermesError(.wrongCredentials, "the token belongs to another userid")
        }
        return try await accounts.open(device, by: admission)
    }

    /// Cuts a text to at most this many bytes of UTF-8, between two Unicode scalars.
    static func cut(_ text: String, to maxBytes: Int) -> String {
        guard text.utf8.count > maxBytes else { return text }
        var end = text.utf8.index(text.startIndex, offsetBy: max(0, maxBytes))
        while end > text.startIndex, end.samePosition(in: text.unicodeScalars) == nil {
            end = text.utf8.index(before: end)
        }
        return String(text[..<end])
    }
}
