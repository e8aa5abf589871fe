// Asks the API. Amounts of money stay decimal texts: a double would round them.

const EXACT = new Set(['cost_usd', 'cost_local', 'usd_per_million']);

function revive(key, value, context) {
  if (typeof value !== 'number' || !EXACT.has(key)) return value;
  if (context?.source) return context.source;
  // Older browsers do not hand over the text itself.
  const text = String(value);
  return text.includes('e') ? value.toFixed(12) : text;
}

/** A document of the API. `query` has texts; empty ones are left out. */
export async function get(path, query = {}, signal = undefined) {
  const url = new URL(path, document.baseURI);
  for (const [name, value] of Object.entries(query)) {
    if (value) url.searchParams.append(name, value);
  }
  const answer = await fetch(url, { signal, headers: { accept: 'application/json' } });
  const text = await answer.text();
  if (!answer.ok) throw new Error(said(text) ?? `the service answers ${answer.status}`);
  return JSON.parse(text, revive);
}

/** A plain text, whatever the status. */
export async function read(path, signal) {
  const answer = await fetch(new URL(path, document.baseURI), { signal });
  return answer.text();
}

function said(text) {
  try {
    return JSON.parse(text).error.message;
  } catch {
    return undefined;
  }
}
