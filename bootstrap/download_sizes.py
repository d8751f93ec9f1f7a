"""Run by the environment's Python: {name: address} as JSON on stdin, {name: bytes or null} on stdout.

Asks with pip's own session, so that its proxy, certificates and credentials hold here too. That session is not
a public interface of pip: whoever calls this must be content with an exit status other than 0.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pip._internal.commands.install import InstallCommand


def main() -> None:
    urls: dict[str, str] = json.load(sys.stdin)
    command = InstallCommand("install", "")
    session = command._build_session(command.parse_args(["-"])[0], retries=0, timeout=15)

    def size(url: str) -> int | None:
        parts = urlsplit(url)
        try:
            if parts.scheme == "file":
                return Path(url2pathname(parts.path)).stat().st_size
            # Without this header a server may announce the size of a compressed answer.
            answer = session.head(url, allow_redirects=True, headers={"Accept-Encoding": "identity"})
            answer.raise_for_status()
            return int(answer.headers["Content-Length"])
        except Exception:  # a size that cannot be had is no reason to stop
            return None

    with ThreadPoolExecutor(8) as pool:
        print(json.dumps(dict(zip(urls, pool.map(size, urls.values()), strict=True))))


if __name__ == "__main__":
    main()
