# Hermes
# SPDX-License-Identifier: Apache-2.0
"""The common parts of all interop programs: an environment, a server process, checks."""
