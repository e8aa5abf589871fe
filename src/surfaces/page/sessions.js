// All sessions of a range: sorted by the service, searched here.

import { get } from './api.js';
import { choices, figure, h, select, table } from './dom.js';
import * as f from './format.js';
import * as go from './route.js';
import { costNote, sessionLink } from './spend.js';

export const title = 'Sessions';

const RANGES = [
  ['today', 'Today'],
  ['7d', '7 days'],
  ['30d', '30 days'],
  ['all', 'All'],
];
const SORTS = ['time', 'requests', 'total', 'cost'];

/** So many are asked for, and so many of them shown. */
const LIMIT = 1000;
const SHOWN = 200;

const sorting = (route) => {
  const asked = route.params.get('sort');
  return { sort: SORTS.includes(asked) ? asked : 'time', order: route.params.get('order') === 'asc' ? 'asc' : 'desc' };
};

export async function load(route, signal) {
  const query = { since: go.range(route, ['all']), home: route.params.get('home'), limit: String(LIMIT), ...sorting(route) };
  const [report, state] = await Promise.all([
    get('api/v1/report/sessions', query, signal),
    get('api/v1/state', {}, signal),
  ]);
  f.setZone(report.timezone);
  return { report, state };
}

export const headline = ({ report }) => `${f.plural(report.rows.length, 'session')}, ${f.tokens(report.total)} tokens`;

/** On a phone the day alone, where that is another than today. */
function when(at) {
  const [day, time] = f.clock(at).split(',');
  return [day, time && h('span', { class: 'wide' }, `,${time}`)];
}

const matches = (row, words) => {
  const text = [row.session_id, row.project, row.home, ...(row.models ?? [])].join(' ').toLowerCase();
  return words.every((word) => text.includes(word));
};

export function render({ report, state }, route) {
  const range = go.range(route, ['all']);
  const search = route.params.get('q') ?? '';
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = report.rows.filter((row) => matches(row, words));
  const homes = Object.keys(state.sources.journal.homes);
  const lives = new Set(state.sessions.map((row) => row.session_id));
  const { sort, order } = sorting(route);
  const by = (key) => {
    const now = key === sort ? order : undefined;
    return { key, order: now, href: go.to('sessions', route, { sort: key, order: now === 'desc' ? 'asc' : 'desc' }) };
  };
  const priced = report.total.cost_usd !== undefined;
  const link = (row) => [
    sessionLink(row),
    lives.has(row.session_id) && h('span', { class: 'badge' }, 'live'),
    h('span', { class: 'narrow' }, row.project),
  ];
  const columns = [
    { name: 'Session', cell: link },
    { name: 'Project', class: 'name wide', cell: (row) => row.project },
    homes.length > 1 && { name: 'Home', class: 'wide', cell: (row) => row.home },
    { name: 'Last active', class: 'wraps', sort: by('time'), cell: (row) => when(row.last_at ?? row.started_at) },
    { name: 'Models', class: 'name wide', cell: (row) => (row.models ?? []).join(', ') },
    { name: 'Requests', class: 'number wide', sort: by('requests'), cell: (row) => f.thousands(row.requests) },
    { name: 'Tokens', class: 'number', sort: by('total'), cell: (row) => figure(f.tokens(row), f.why(row)) },
    priced && { name: 'Cost', class: 'number', sort: by('cost'), cell: (row) => figure(f.costCell(row, report.currency), costNote(row)) },
  ].filter(Boolean);
  const shown = found.slice(0, SHOWN);
  const cut = [
    shown.length < found.length && `The first ${shown.length} of ${f.thousands(found.length)} are shown.`,
    report.rest && `${f.plural(report.rest.rows, 'more session')} of this range not searched: choose a shorter one.`,
  ].filter(Boolean);
  return [
    h('h1', { tabindex: '-1' }, 'Sessions'),
    h(
      'div',
      { class: 'filters' },
      choices('Range', RANGES.map(([value, text]) => [value, text, go.to('sessions', route, { range: value })]), range),
      homes.length > 1 && select('Home', 'home', [['', 'all'], ...homes.map((name) => [name, name])], route.params.get('home') ?? ''),
      h(
        'span',
        { class: 'field' },
        h('label', { for: 'filter-q' }, 'Search'),
        h('input', { id: 'filter-q', type: 'search', value: search, 'data-filter': 'q', autocomplete: 'off', spellcheck: 'false', placeholder: 'id, project, model' }),
      ),
    ),
    h('p', { class: 'dim', role: 'status' }, `${f.plural(found.length, 'session')}. ${cut.join(' ')}`),
    found.length
      ? table({ caption: `Sessions, times in ${report.timezone}`, columns, rows: shown, key: (row) => row.session_id })
      : h('p', { class: 'empty' }, words.length ? 'No session matches.' : `No session in this range (${report.timezone}).`),
    report.total.billing === 'seat' && h('p', { class: 'notes' }, 'A seat is not billed by the token: costs are a list-price equivalent, not an invoice.'),
  ];
}
