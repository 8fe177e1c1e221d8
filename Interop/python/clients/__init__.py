# Hermes
# SPDX-License-Identifier: Apache-2.0
"""One small client per protocol, on sockets and Google's protobuf library alone."""
