// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Another program. It inherits only what it is given: the tests' files and sockets are closed when it starts.
///
/// Foundation's `Process` is not used: on Linux it first looks at each open descriptor of this process, and crashes when
/// tests open and close some meanwhile.
package struct ChildProcess {
    private let id: pid_t

    /// - Parameters:
    ///   - path: the program.
    ///   - input: a descriptor; `/dev/null` if there is none.
    ///   - output: the same.
    package init(_ path: String, _ arguments: [String], input: Int32? = nil, output: Int32? = nil) throws {
        #if canImport(Darwin)
        var actions: posix_spawn_file_actions_t?
        #else
        var actions = posix_spawn_file_actions_t()
        #endif
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (own, theirs) in [(input, STDIN_FILENO), (output, STDOUT_FILENO), (nil, STDERR_FILENO)] {
            if let own {
                posix_spawn_file_actions_adddup2(&actions, own, theirs)
            } else {
                posix_spawn_file_actions_addopen(&actions, theirs, "/dev/null", O_RDWR, 0)
            }
        }
        var words = ([path] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var id: pid_t = 0
        let error = posix_spawn(&id, path, &actions, nil, &words, environ)
        guard error == 0 else { throw Failed(program: path, reason: String(cString: strerror(error))) }
        self.id = id
    }

    /// Runs a program to its end.
    ///
    /// - Throws: if it cannot be started, or ends with another code than 0.
    package static func run(_ path: String, _ arguments: [String]) throws {
        let status = try ChildProcess(path, arguments).waitUntilExit()
        guard status == 0 else { throw Failed(program: path, reason: "\(arguments) ended with \(status)") }
    }

    package func terminate() { kill(id, SIGTERM) }

    /// Waits for the end, once.
    ///
    /// - Returns: what `waitpid` calls the status; 0 if the program ended well.
    @discardableResult package func waitUntilExit() -> Int32 {
        var status: Int32 = 0
        while waitpid(id, &status, 0) < 0 && errno == EINTR {}
        return status
    }

    package struct Failed: Error {
        let program: String
        let reason: String
    }
}
