"""What several tests need."""

import os
import warnings

import pytest


@pytest.fixture(scope="session")
def command():
    """The command hairspring, whose path the tests are told."""
    command = os.environ.get("HAIRSPRING_COMMAND")
    if not command:
        pytest.skip("HAIRSPRING_COMMAND does not name the command hairspring")
    return command


@pytest.fixture
def no_other_warning():
    """A warning that a test does not expect is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
