"""The demo page, which runs networks in the browser, and its server.

page.py      build the page as a folder: our files, networks as ONNX graphs, onnxruntime-web
server.py    the server of ``iterant demo``
static/      our files: HTML, CSS and JavaScript modules
built/       the page as scripts/build-page leaves it for wheels (not in the repository)
"""

from iterant.web.page import Page, build_page, find_page
from iterant.web.server import page_server

__all__ = ["Page", "build_page", "find_page", "page_server"]
