"""What several test files on Spark use."""

import pytest
from same_rows import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A process with a Spark session of its own, which runs networks as it is told."""
    server = Server(log=tmp_path_factory.mktemp("server") / "log")
    yield server
    server.close()
