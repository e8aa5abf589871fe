// Where the reader is: a page and its filters, all in the hash, so that a
// reload, a bookmark and the back button find them again.

const RANGES = ['today', '7d', '30d'];
const KEPT = ['range', 'home'];

/** `#/sessions?range=7d`, `#/session=ID`, and `#session=ID` as dashboards link it. */
export function parse(hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const params = new URLSearchParams(query);
  if (path.startsWith('session=')) return { page: 'session', id: decoded(path.slice(8)), params };
  return { page: path === '' ? 'spend' : path, params };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The hash of another page, with what the filters of this one have in common with it. */
export function to(page, route, changes = {}) {
  const params = new URLSearchParams();
  const same = page === route.page;
  for (const [name, value] of route.params) {
    if (same || KEPT.includes(name)) params.set(name, value);
  }
  for (const [name, value] of Object.entries(changes)) {
    if (value) params.set(name, value);
    else params.delete(name);
  }
  const query = params.size ? `?${params}` : '';
  return `#/${page === 'spend' ? '' : page}${query}`;
}

export function toSession(id) {
  return `#/session=${encodeURIComponent(id)}`;
}

export function range(route, more = []) {
  const asked = route.params.get('range');
  return [...RANGES, ...more].includes(asked) ? asked : '7d';
}
