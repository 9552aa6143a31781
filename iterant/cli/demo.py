"""``iterant demo``: the page on which networks think in the browser.

iterant demo
iterant demo --build
iterant demo --net runs/m0 --out page
"""

from __future__ import annotations

import shutil
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from iterant.cli.options import console

if TYPE_CHECKING:
    from iterant.web import Page


def demo(
    *,
    port: Annotated[int, Parameter(help="where to serve it; 0: any that is free")] = 8000,
    host: Annotated[
        str, Parameter(help="this machine only by default; 0.0.0.0 shows it to the network")
    ] = "127.0.0.1",
    browser: Annotated[bool, Parameter(help="open it in a browser")] = True,
    build: Annotated[
        bool, Parameter(negative="", help="build the page first: fetches onnxruntime-web by npm")
    ] = False,
    net: Annotated[
        list[str] | None,
        Parameter(
            consume_multiple=1,
            negative="",
            help="build it with these runs in place of the shipped networks",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        Parameter(help="write the page into this new folder, for any web server, and stop"),
    ] = None,
    runtime: Annotated[
        Path | None, Parameter(help="the archive of onnxruntime-web, where there is no npm")
    ] = None,
) -> None:
    """Show a page on which networks think in the browser: mazes, prefix sums, chess."""
    page = _page(build or bool(net) or runtime is not None, net, out, runtime)
    screen = console()
    if page.stale:
        screen.print("this page was built from older files; build it again: iterant demo --build")
    if out is not None:
        screen.print(f"{page.folder}: {', '.join(page.networks)}; serve it with any web server")
        screen.print(f"for instance: python -m http.server --directory {page.folder}")
        return
    from iterant.web import page_server

    with page_server(page.folder, port, host) as server:
        # What it is bound to, which for port 0 only the system knows.
        address = f"http://{host}:{server.server_address[1]}/"
        screen.print(f"{address} ({', '.join(page.networks)}); leave with Ctrl-C")
        if browser:
            webbrowser.open(address)
        server.serve_forever()


def _page(build: bool, net: list[str] | None, out: Path | None, runtime: Path | None) -> Page:
    """The page to show: built now where that was asked for, else the one that is there."""
    from iterant.io.files import check_new_folder
    from iterant.web import build_page, find_page
    from iterant.web.page import cached_page, open_page

    if not build:
        page = find_page()
        if out is None:
            return page
        return open_page(
            Path(shutil.copytree(page.folder, check_new_folder(out), dirs_exist_ok=True))
        )
    if out is not None:
        return build_page(out, networks=net, runtime=runtime, tell=_tell)
    target = cached_page()
    # Built beside the old one, which is there until the new one is whole.
    fresh = target.with_name(f"{target.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    build_page(fresh, networks=net, runtime=runtime, tell=_tell)
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
    return open_page(target)


def _tell(words: str) -> None:
    """Building takes a minute: say what it is about."""
    console().print(words, soft_wrap=True)
