// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(SwiftUI)
import ChatLogic
import Hermes
import SwiftUI

@main
struct ChatApp: App {
    @State private var model = ChatModel()
    @Environment(\.scenePhase) private var phase

    var body: some Scene {
        WindowGroup {
            if model.isSignedIn {
                ConversationList(model: model)
            } else {
                SignInView(model: model)
            }
        }
        .onChange(of: phase) { _, phase in
            DeviceConditions.shared.appState = phase == .active ? .foreground : .background
        }
    }
}

/// Connects the logic to SwiftUI. It makes no decisions.
@MainActor @Observable
final class ChatModel {
    private(set) var state = ChatState()
    private(set) var isSignedIn = false
    var problem: String?
    private var session: ChatSession?

    func signIn(server: ServerAddress, _ credential: Credential) {
        // A failed session still has its store open.
        session = nil
        Task {
            do {
                let configuration = try Self.configuration(server, for: credential)
                let session = try ChatSession(configuration) { [weak self] in self?.state = $0 }
                self.session = session
                try await session.run(credential) { [weak self] _ in self?.isSignedIn = true }
            } catch let error as HermesClientError {
                problem = error.message
            } catch {
                problem = "\(error)"
            }
            isSignedIn = false
        }
    }

    /// Runs an action and shows its error.
    func perform(_ action: @escaping @MainActor (ChatSession) async throws -> Void) {
        guard let session else { return }
        Task {
            do { try await action(session) } catch {
                problem = (error as? HermesClientError)?.message ?? "\(error)"
            }
        }
    }

    private static func configuration(
        _ server: ServerAddress,
        for credential: Credential
    ) throws -> HermesClient.Configuration {
        let folder = URL.applicationSupportDirectory
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // The id is chosen once, because the server keeps a place in the inbox for each device.
        let device = UserDefaults.standard.string(forKey: "device") ?? UUID().uuidString
        UserDefaults.standard.set(device, forKey: "device")
        var configuration = HermesClient.Configuration(
            server: server,
            device: DeviceDescription(id: device, platform: "iOS")
        )
        // Each account has its own store. The app shows the store's content before the login.
        let name =
            switch credential {
            case .register(let nickName, _, _), .password(let nickName, _): nickName.lowercased()
            case .token: "token"
            }
        let file = "chat-\(Data(name.utf8).base64EncodedString().replacing("/", with: "-")).log"
        configuration.store = try FileLocalStore(path: folder.appending(path: file).path)
        configuration.heartbeat = .adaptive
        return configuration
    }
}
#endif
