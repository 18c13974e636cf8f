// Tell the server that this page is open, and when it closes: it may end with its last page.

const EVERY = 60000; // ms

const page = Array.from(crypto.getRandomValues(new Uint32Array(3)), (n) => n.toString(36)).join("-");

function tell(isOpen) {
  const body = new Blob([JSON.stringify({ page, is_open: isOpen })], { type: "application/json" });
  navigator.sendBeacon("api/v1/pages", body); // which is sent even if the page is gone by then
}

tell(true);
setInterval(() => tell(true), EVERY);
addEventListener("pageshow", (event) => event.persisted && tell(true));
addEventListener("pagehide", () => tell(false));
