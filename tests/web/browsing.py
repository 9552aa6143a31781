"""The page in a browser: open it, wait for the network, read its messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from playwright.sync_api import Browser, Page, Route

import iterant

_HARMLESS = ("No available adapters",)
"""The warning of a browser without a GPU."""

LIMIT = 180_000
"""Milliseconds to wait for anything: a busy machine that computes WebGPU in software is slow."""


def _fulfil(reply: dict[str, Any]) -> Callable[[Route], None]:
    return lambda route: route.fulfill(**reply)


class Visit:
    """An open page with its requests and errors: ``visit.settle("mazes"); visit.words``.

    ``script`` runs before the scripts of the page; ``replies`` replace responses of the server.
    """

    def __init__(
        self,
        browser: Browser,
        address: str,
        *,
        script: str = "",
        replies: dict[str, dict[str, Any]] | None = None,
        **options: Any,
    ) -> None:
        self.context = browser.new_context(**options)
        self.context.add_init_script(script)
        for url, reply in (replies or {}).items():
            self.context.route(url, _fulfil(reply))
        self.page: Page = self.context.new_page()
        self.requests: list[str] = []
        self.troubles: list[str] = []
        self.violations: list[str] = []
        """Of the content security policy"""
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("console", self._on_console)
        self.page.goto(address)

    def _on_console(self, message: Any) -> None:
        if "Content Security Policy" in message.text:
            self.violations.append(message.text)
        if message.type in ("error", "warning") and not message.text.startswith(_HARMLESS):
            self.troubles.append(message.text)

    def close(self) -> None:
        self.context.close()

    def ready(self) -> Visit:
        """Wait until the first panel can be used."""
        self.wait("window.iterant?.panels.mazes?.ready")
        return self

    @property
    def computed(self) -> str:
        """The line about the network and how it is computed."""
        return self.page.inner_text("#computed")

    @property
    def trouble(self) -> str:
        """The error that replaces the page."""
        self.page.wait_for_selector("#trouble", state="visible")
        return self.page.inner_text("#trouble")

    @property
    def words(self) -> str:
        """The message of the page."""
        return self.page.inner_text("#words").strip()

    def show(self, task: str) -> None:
        """Open the tab of a task, wait for its network and set the highest speed."""
        self.page.click(f"#tab-{task}")
        self.wait(f"window.iterant.panels['{task}']?.ready")
        self.set_range("[data-bench=speed]", 100)

    def set_range(self, selector: str, value: int) -> None:
        """Move a slider with the events of a mouse."""
        self.page.locator(selector).evaluate(
            "(slider, value) => { slider.value = value;"
            " for (const name of ['input', 'change']) slider.dispatchEvent(new Event(name)); }",
            value,
        )

    def wait(self, condition: str) -> None:
        """Wait until a JavaScript expression is true."""
        self.page.wait_for_function(f"() => {condition}", timeout=LIMIT)

    def panel(self, task: str, expression: str) -> Any:
        """The value of an expression of ``panel`` and ``thinker``."""
        return self.page.evaluate(
            f"async () => {{ const panel = iterant.panels['{task}'];"
            f" const thinker = panel.thinker; return {expression}; }}"
        )

    def settle(self, task: str) -> None:
        """Wait until the network has settled."""
        self.wait(f"iterant.panels['{task}'].thinker.phase === 'settled'")

    def choose(self, task: str, network: str) -> None:
        """Choose another network of the task."""
        self.page.select_option("#networks", network)
        self.wait(f"iterant.panels['{task}'].network === '{network}'")

    def same_as_package(self, task: str) -> None:
        """Check that the page gives the same answer as the package after as many iterations."""
        data, dims = self.panel(task, "[[...thinker.inputs.data], [...thinker.inputs.dims]]")
        inputs = torch.tensor(data, dtype=torch.float32).view(dims)
        with torch.no_grad():
            thoughts = iterant.think(
                iterant.load(task), inputs, steps=self.panel(task, "thinker.step")
            )
            expected = iterant.last(thoughts).prediction
        answer = torch.tensor(self.panel(task, "[...thinker.prediction]"))
        assert torch.equal(answer.view(expected.shape), expected)
