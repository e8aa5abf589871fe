// How the service itself is doing, and what no source can see.

import { get, read } from './api.js';
import { h, table } from './dom.js';
import * as f from './format.js';

export const title = 'Health';

export async function load(route, signal) {
  const [state, ready, report] = await Promise.all([
    get('api/v1/state', {}, signal),
    read('-/ready', signal),
    get('api/v1/report/daily', { since: 'today' }, signal),
  ]);
  f.setZone(report.timezone);
  return { state, ready: ready.trim().split('\n') };
}

export const headline = ({ ready }) => ready[0];

export function render({ state, ready }) {
  const { journal, ...others } = state.sources;
  return [
    h('h1', { tabindex: '-1' }, 'Health'),
    h('ul', { class: 'story', 'aria-label': 'Readiness' }, ready.map((line) => h('li', {}, badge(line), ` ${rest(line)}`))),
    homes(journal.homes),
    h(
      'section',
      { 'aria-labelledby': 'sources' },
      h('h2', { id: 'sources' }, 'Sources'),
      facts('Journals', watcher(journal)),
      Object.entries(others).map(([name, source]) => facts(f.plain(name), plainly(source))),
    ),
    h(
      'section',
      { 'aria-labelledby': 'blind' },
      h('h2', { id: 'blind' }, 'Blind spots'),
      h('p', {}, 'Requests that Gemini CLI bills and no journal holds. They are why a figure from journals alone is at least (≥) what was spent:'),
      h('ul', { class: 'words' }, (state.blind_spots ?? []).map((name) => h('li', {}, f.plain(name)))),
    ),
  ];
}

const WORD = /^(ready|not ready|degraded)(?:: )?/;

function badge(line) {
  const [, word] = WORD.exec(line) ?? [, 'note'];
  return h('span', { class: word === 'ready' ? 'badge good' : 'badge bad' }, word);
}

const rest = (line) => line.replace(WORD, '') || 'The first import is done and the ledger can be read.';

function homes(all) {
  const rows = Object.entries(all).map(([name, home]) => ({ name, ...home }));
  const columns = [
    { name: 'Home', class: 'name', cell: (row) => row.name },
    { name: 'First import', cell: (row) => (row.imported ? 'done' : 'under way') },
    { name: 'State', cell: (row) => row.degraded ?? 'sound' },
  ];
  return h(
    'section',
    { 'aria-labelledby': 'homes' },
    h('h2', { id: 'homes' }, 'Homes'),
    rows.length ? table({ caption: 'Homes whose journals are read', columns, rows, key: (row) => row.name }) : h('p', { class: 'empty' }, 'No home has been looked at yet.'),
  );
}

const watcher = (journal) => [
  ['Watcher', journal.up ? 'works' : 'does not work'],
  ['Last evidence', journal.last_event_at ? f.clock(journal.last_event_at) : 'none since the start'],
  ['Not read yet', f.plural(journal.lag_bytes ?? 0, 'byte')],
  ['File events', journal.watch_fallback ? 'cannot be had: it looks at intervals' : 'are used'],
];

/** A source that nobody has written words for yet. */
const plainly = (source) =>
  Object.entries(source)
    .filter(([, said]) => typeof said !== 'object')
    .map(([name, said]) => [f.plain(name), name.endsWith('_at') ? f.clock(said) : f.plain(said)]);

const facts = (name, list) => [
  h('h3', {}, name),
  h('dl', { class: 'facts' }, list.map(([term, value]) => h('div', {}, h('dt', {}, term), h('dd', {}, value)))),
];
