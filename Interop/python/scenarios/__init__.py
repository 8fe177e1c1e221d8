# Hermes
# SPDX-License-Identifier: Apache-2.0
"""The checks, one module per protocol."""
