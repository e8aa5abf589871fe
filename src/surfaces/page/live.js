// Hears that the ledger changed. While the tab is hidden nothing is heard: a
// browser has few connections for one service, and nobody looks.

const LONGEST = 30_000;

/** Calls `changed` on each event, and `state` with `live` or `lost`. */
export function listen({ changed, state }) {
  let source, timer;
  let wait = 1000;

  function open() {
    clearTimeout(timer);
    if (source || document.hidden) return;
    source = new EventSource(new URL('api/v1/live', document.baseURI));
    source.addEventListener('ledger', () => {
      wait = 1000;
      state('live');
      changed();
    });
    // Whether refused, ended or broken: we come again, later each time.
    source.addEventListener('error', () => {
      close();
      state('lost');
      timer = setTimeout(open, wait);
      wait = Math.min(wait * 2, LONGEST);
    });
  }

  function close() {
    source?.close();
    source = undefined;
  }

  document.addEventListener('visibilitychange', () => {
    if (document.hidden) close();
    else open();
  });
  addEventListener('pagehide', close);
  addEventListener('pageshow', open);
  open();
}
