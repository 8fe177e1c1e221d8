// Hermes
// SPDX-License-Identifier: Apache-2.0

extension ContactEvent: DurableKind {
    package static let storedKind = InboxEvent.StoredKind.contact

    package func store(into bytes: inout [UInt8]) {
        StoredForm.append(UInt64(kind.rawValue), count: 1, to: &bytes)
        StoredForm.append(user, to: &bytes)
        StoredForm.append(nickName, to: &bytes)
        StoredForm.append(message, to: &bytes)
    }

    package init?(stored bytes: inout ArraySlice<UInt8>) {
        guard let kind = StoredForm.take(1, from: &bytes).flatMap({ Kind(rawValue: UInt8(clamping: $0)) }),
            let user = StoredForm.takeUser(from: &bytes),
            let nickName = StoredForm.takeText(from: &bytes),
            let message = StoredForm.takeText(from: &bytes)
        else { return nil }
        self.init(kind: kind, user: user, nickName: nickName, message: message)
    }

    package var actor: UserID? { user }
    package func alert(for user: UserID) -> EventAlert? { nil }
}
