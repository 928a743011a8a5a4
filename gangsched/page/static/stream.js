// Follows the server's events, and says when they stop.

import { byId, say, setClock } from "./text.js";

const SILENT_MS = 40000; // longest silence before reconnecting; the server sends something at least every 15 seconds

export function follow(take) {
  let silence;
  const events = new EventSource("/events");

  function hear() {
    clearTimeout(silence);
    silence = setTimeout(() => {
      events.close();
      tell("gangsched has sent nothing for a while: this page may be out of date. Reconnecting …");
      follow(take);
    }, SILENT_MS);
  }

  events.onmessage = (event) => {
    hear();
    tell("");
    take(JSON.parse(event.data));
  };
  events.addEventListener("alive", (event) => {
    hear();
    setClock(Number(event.data));
  });
  events.onerror = () => {
    const ended = events.readyState === EventSource.CLOSED;
    if (ended) clearTimeout(silence);
    tell(
      ended
        ? "gangsched no longer answers: open its page again."
        : "gangsched does not answer: this page may be out of date. Reconnecting …",
    );
  };
  hear();
}

function tell(text) {
  say(byId("connection"), text);
}
