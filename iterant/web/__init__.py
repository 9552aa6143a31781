"""The page that thinks in the browser, and its small server.

runtime.py   onnxruntime-web, fetched through npm and checked
page.py      the page as a folder: our files, the networks as ONNX graphs, the runtime
serving.py   the small server behind ``iterant demo``
static/      our files: HTML, CSS and plain JavaScript modules
built/       the page as scripts/build-page leaves it, for wheels (not in the repository)
"""

from iterant.web.page import Page, build_page, find_page
from iterant.web.server import page_server

__all__ = ["Page", "build_page", "find_page", "page_server"]
