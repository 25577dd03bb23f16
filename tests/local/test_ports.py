from contextlib import closing

import pytest

from dynamoheat.serve import LOOPBACK
from local.endpoint import bind_port
from local.errors import LocalCloudError


def test_a_taken_port_is_refused_with_advice() -> None:
    with closing(bind_port(0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LocalCloudError, match=f"Port {port} of {LOOPBACK} is not free .*PORT="):
            bind_port(port)


def test_a_number_that_is_no_port_is_refused() -> None:
    with pytest.raises(LocalCloudError, match=r"Port 65536 .*0-65535"):
        bind_port(65_536)
