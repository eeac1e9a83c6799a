"""What a browser complains of while a test runs."""

from playwright.sync_api import Page


class Complaints(list[str]):
    """What the page's console and its errors say; a refused resource says so there, too."""

    def watch(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (self.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on(
            "console",
            lambda said: (
                self.append(f"{said.text} {said.location.get('url')}")
                if said.type in ("error", "warning")
                else None
            ),
        )
