# Hermes
# SPDX-License-Identifier: Apache-2.0
"""One small client per protocol. The clients use only sockets and Google's protobuf library."""
