"""What several tests need."""

import os

import pytest


@pytest.fixture(scope="session")
def command():
    """The command hairspring, whose path the tests are told."""
    command = os.environ.get("HAIRSPRING_COMMAND")
    if not command:
        pytest.skip("HAIRSPRING_COMMAND does not name the command hairspring")
    return command
