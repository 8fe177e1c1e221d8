// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(SwiftUI)
import ChatLogic
import Hermes
import SwiftUI

struct SignInView: View {
    let model: ChatModel
    @State private var host = "127.0.0.1"
    @State private var name = ""
    @State private var password = ""

    var body: some View {
        Form {
            TextField("Server", text: $host)
            TextField("Name", text: $name)
            SecureField("Password", text: $password)
            Button("Sign in") { model.signIn(server: address, .password(nickName: name, password: password)) }
            Button("Create an account") { model.signIn(server: address, .register(nickName: name, password: password)) }
            if let problem = model.problem { Text(problem).foregroundStyle(.red) }
        }
    }

    private var address: ServerAddress { ServerAddress(host: host, port: 9000) }
}

struct ConversationList: View {
    let model: ChatModel
    @State private var peer = ""

    var body: some View {
        NavigationStack {
            List {
                BannerView(banner: model.state.banner)
                ForEach(model.state.pushes, id: \.id) { push in
                    Label {
                        Text(push.title + "\n" + push.body)
                    } icon: {
                        Image(systemName: "bell")
                    }
                }
                ForEach(model.state.transcripts) { transcript in
                    NavigationLink(value: transcript.conversation) {
                        Text(transcript.title).badge(transcript.unread)
                    }
                }
                HStack {
                    TextField("Talk to", text: $peer)
                    Button("Open") { model.perform { [peer] session in try await session.open(nickName: peer) } }
                }
            }
            .navigationTitle(model.state.nickName)
            .navigationDestination(for: Conversation.self) { ConversationView(model: model, conversation: $0) }
        }
    }
}

struct ConversationView: View {
    let model: ChatModel
    let conversation: Conversation
    @State private var draft = ""

    var body: some View {
        VStack {
            List(model.state[conversation]?.lines ?? []) { line in
                LineView(line: line) { model.perform { session in try await session.retry(line) } }
            }
            HStack {
                TextField("Message", text: $draft)
                Button("Send") {
                    model.perform { [draft] session in try await session.send(draft) }
                    draft = ""
                }
            }
            .padding()
        }
        .navigationTitle(model.state[conversation]?.title ?? "")
        .onAppear { model.perform { session in session.open(conversation) } }
        .onDisappear { model.perform { session in session.open(nil) } }
    }
}

struct LineView: View {
    let line: Transcript.Line
    let retry: () -> Void

    var body: some View {
        HStack {
            Text(line.author.isEmpty ? line.text : "\(line.author): \(line.text)")
            Spacer()
            switch line.mark {
            case .received: EmptyView()
            case .waiting: Image(systemName: "clock")
            case .sent: Image(systemName: "checkmark")
            case .failed(let reason): Button(reason, action: retry).foregroundStyle(.red)
            }
        }
    }
}

struct BannerView: View {
    let banner: ChatState.Banner

    var body: some View {
        switch banner {
        case .none: EmptyView()
        case .connecting: Label("Connecting …", systemImage: "arrow.triangle.2.circlepath")
        case .offline(let reason): Label(reason, systemImage: "wifi.slash")
        case .signedOut(let reason): Label(reason ?? "Signed out", systemImage: "person.slash")
        }
    }
}
#endif
