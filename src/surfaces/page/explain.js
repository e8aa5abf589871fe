// One session: every turn and request, which sources saw it, why its figure is
// what it is, and how prices make its cost.

import { get } from './api.js';
import { figure, h, table } from './dom.js';
import * as f from './format.js';
import * as go from './route.js';

export const title = 'Session';

const SHOWN = 200;

export async function load(route, signal) {
  const [explained, report] = await Promise.all([
    get(`api/v1/sessions/${encodeURIComponent(route.id)}`, {}, signal),
    // What the service calls its time zone, only a report says.
    get('api/v1/report/daily', { since: 'today' }, signal),
  ]);
  f.setZone(report.timezone);
  return explained;
}

export const headline = ({ session }) => `Session ${session.session_id.slice(0, 8)}: ${f.tokens(session)} tokens`;

export function render(explained, route) {
  const row = explained.session;
  const currency = explained.currency;
  return [
    h('p', { class: 'crumb' }, h('a', { href: go.to('sessions', route) }, 'All sessions')),
    h('h1', { tabindex: '-1' }, 'Session ', h('code', {}, row.session_id)),
    facts(explained, row, currency),
    h('section', { 'aria-labelledby': 'why' }, h('h2', { id: 'why' }, 'Why these figures'), story(explained.story)),
    sources(explained.sources ?? []),
    turns(explained.turns ?? []),
    requests(explained.requests ?? [], currency, route),
    undecodable(explained.undecodable ?? []),
  ];
}

const story = (sentences) => h('ul', { class: 'story' }, (sentences ?? []).map((sentence) => h('li', {}, sentence)));

function facts(explained, row, currency) {
  const cost = f.cost(row, currency);
  const kind = { seat: 'seat: list-price equivalent, not an invoice', unknown: '' }[row.billing] ?? row.billing;
  const pairs = [
    ['Project', row.project],
    ['Home', row.home],
    ['Started', row.started_at && f.moment(row.started_at)],
    ['Last active', row.last_at && `${f.moment(row.last_at)} (${f.zoneName()})`],
    ['Models', (row.models ?? []).join(', ')],
    ['Requests', `${f.thousands(row.requests)}${row.subagent_requests ? `, ${f.thousands(row.subagent_requests)} by subagents` : ''}`],
    ['Tokens', figure(f.tokens(row), f.why(row))],
    cost !== undefined && ['Cost', [figure(cost, f.whyCost(row)), row.cost_usd !== null && ` (${[explained.price_list, kind].filter(Boolean).join(', ')})`]],
    row.source_deleted && ['Journal', 'already deleted; its figures are kept'],
  ].filter((pair) => pair && pair[1]);
  return h('dl', { class: 'facts' }, pairs.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))));
}

const count = (row) => (row.tokens ? f.thousands(row.tokens.total) : '—');

/** The classes as columns; tool input only where there is any. */
const classColumns = (rows, kind = '') =>
  f.CLASSES.filter(([name]) => name !== 'tool_input' || rows.some((row) => row.tokens?.tool_input > 0)).map(([key, name]) => ({
    name,
    class: `number ${kind}`,
    cell: (row) => f.classText(row, key),
  }));

function sources(rows) {
  if (!rows.length) return null;
  const columns = [
    { name: 'Source', cell: (row) => f.plain(row.source) },
    { name: 'Requests', class: 'number', cell: (row) => (row.requests === null ? 'not said' : f.thousands(row.requests)) },
    ...classColumns(rows),
    { name: 'Total', class: 'number', cell: count },
  ];
  return h(
    'section',
    { 'aria-labelledby': 'sources' },
    h('h2', { id: 'sources' }, 'Sources'),
    table({ caption: 'What each source said of this session', columns, rows, key: (row) => row.source }),
  );
}

const CLAIM = { exact: 'complete', at_least: 'at least', unmeasured: 'unmeasured' };

function turns(list) {
  const one = (turn) => {
    const name = turn.number === null ? 'A headless run' : `Turn ${turn.number}`;
    const until = turn.ended_at ? ` to ${f.time(turn.ended_at)}` : '';
    const facts = [turn.model !== 'unknown' && turn.model, f.plain(turn.stop_reason ?? turn.ending), f.plural(turn.requests, 'request'), turn.provisional ? 'provisional' : 'final'];
    return h(
      'article',
      { class: 'turn', 'data-key': turn.started_at },
      h('h3', {}, `${name}, ${f.moment(turn.started_at)}${until}`),
      h('p', {}, figure(`${f.tokens(turn)}${turn.tokens ? ' tokens' : ''}`, f.why(turn)), h('span', { class: 'badge' }, CLAIM[turn.bound] ?? turn.bound), h('span', { class: 'dim' }, facts.filter(Boolean).join(' · '))),
      story(turn.story),
    );
  };
  return h(
    'section',
    { 'aria-labelledby': 'turns' },
    h('h2', { id: 'turns' }, 'Turns'),
    list.length ? list.map(one) : h('p', { class: 'empty' }, 'Nobody saw turns of this session: journals show requests only.'),
  );
}

function priced(request) {
  if (!request.price) return request.unpriced ? `No price: ${f.plain(request.unpriced)}.` : '';
  const { price } = request;
  const sums = price.classes.map((part) => `${f.plain(part.class)} ${f.thousands(part.tokens)} × $${part.usd_per_million}/M = $${part.cost_usd}`);
  const named = price.alias ? `${price.alias} as ${price.model}` : price.model;
  return `${sums.join('; ')}. Price of ${named}, ${price.price_list}, ${price.tier} tier${price.applied ? '' : ', not applied'}.`;
}

function requests(all, currency, route) {
  if (!all.length) return null;
  const whole = route.params.get('requests') === 'all';
  const rows = whole ? all : all.slice(0, SHOWN);
  const columns = [
    { name: 'At', cell: (row) => h('time', { datetime: row.at }, f.time(row.at)) },
    { name: 'Model', class: 'name', cell: (row) => `${row.model}${row.model_inferred ? ' (inferred)' : ''}` },
    { name: 'Role', class: 'wide', cell: (row) => f.plain(row.role) },
    ...classColumns(all, 'wide'),
    { name: 'Total', class: 'number', cell: count },
    all.some((row) => row.cost_usd !== undefined) && { name: 'Cost', class: 'number', cell: (row) => figure(f.costCell(row, currency), priced(row)) },
  ].filter(Boolean);
  return h(
    'section',
    { 'aria-labelledby': 'requests' },
    h('h2', { id: 'requests' }, 'Requests'),
    table({ caption: `${f.plural(all.length, 'request')}; each cost says how prices make it`, columns, rows, key: (row) => row.id }),
    rows.length < all.length &&
      h('p', {}, h('button', { type: 'button', class: 'plain', 'data-go': `${go.toSession(route.id)}?requests=all` }, `Show all ${f.thousands(all.length)} requests`)),
  );
}

function undecodable(lines) {
  if (!lines.length) return null;
  const columns = [
    { name: 'Journal', class: 'name', cell: (line) => `${line.project_dir}/chats/${line.file}` },
    { name: 'At byte', class: 'number', cell: (line) => f.thousands(line.offset) },
    { name: 'Length', class: 'number', cell: (line) => f.thousands(line.len) },
    { name: 'Why', cell: (line) => f.plain(line.reason) },
    { name: 'Settled', cell: (line) => (line.settled ? 'yes: read elsewhere' : 'no') },
  ];
  return h(
    'section',
    { 'aria-labelledby': 'undecodable' },
    h('h2', { id: 'undecodable' }, 'Lines that could not be decoded'),
    table({ caption: 'Lines of its journals that say nothing', columns, rows: lines, key: (line) => `${line.file}:${line.offset}` }),
  );
}
