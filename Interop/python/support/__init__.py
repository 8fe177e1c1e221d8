# Hermes
# SPDX-License-Identifier: Apache-2.0
"""What all interop programs need: an environment, a server process, checks."""
