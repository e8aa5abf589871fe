// What was spent: today, 7 days, 30 days; by day, model and project; live sessions.

import { get } from './api.js';
import { bar, choices, figure, h, select, svg, table } from './dom.js';
import * as f from './format.js';
import * as go from './route.js';

export const title = 'Spend';

const RANGES = [
  ['today', 'Today'],
  ['7d', '7 days'],
  ['30d', '30 days'],
];

export async function load(route, signal) {
  const home = route.params.get('home');
  const range = go.range(route);
  const report = (kind, since, sort) => get(`api/v1/report/${kind}`, { since, home, sort }, signal);
  const sort = route.params.get('show') === 'tokens' ? 'total' : '';
  const [state, models, projects, ...days] = await Promise.all([
    get('api/v1/state', {}, signal),
    report('models', range, sort),
    report('projects', range, sort),
    ...RANGES.map(([since]) => report('daily', since)),
  ]);
  f.setZone(models.timezone);
  return { state, models, projects, days: Object.fromEntries(RANGES.map(([name], i) => [name, days[i]])) };
}

/** One line for whoever hears the page instead of seeing it. */
export function headline({ days }) {
  const total = days.today.total;
  return `Today: ${[f.cost(total, days.today.currency), `${f.tokens(total)} tokens`].filter(Boolean).join(', ')}`;
}

export function render({ state, models, projects, days }, route) {
  const range = go.range(route);
  const home = route.params.get('home') ?? '';
  const priced = models.total.cost_usd !== undefined;
  const measure = priced && route.params.get('show') !== 'tokens' ? 'cost' : 'tokens';
  const shown = days[range];
  const word = Object.fromEntries(RANGES)[range];
  const measures = [
    ['cost', 'Cost', go.to('spend', route, { show: '' })],
    ['tokens', 'Tokens', go.to('spend', route, { show: 'tokens' })],
  ];
  const homes = Object.keys(state.sources.journal.homes);
  return [
    h('h1', { tabindex: '-1' }, 'Spend'),
    h(
      'div',
      { class: 'filters' },
      choices('Range', RANGES.map(([value, text]) => [value, text, go.to('spend', route, { range: value })]), range),
      priced && choices('Bars show', measures, measure),
      homes.length > 1 && select('Home', 'home', [['', 'all'], ...homes.map((name) => [name, name])], home),
    ),
    h('ul', { class: 'tiles' }, RANGES.map(([name, text]) => tile(text, days[name], name === range))),
    shown.total.requests === 0 && !shown.rows.length
      ? h('p', { class: 'empty' }, `No requests: ${word.toLowerCase()} (${models.timezone}). `, h('code', {}, 'gemgauge doctor'), ' shows where journals are looked for.')
      : null,
    live(state, models.currency),
    chart(range === 'today' ? days['7d'] : shown, measure),
    split('By model', 'Model', models, measure),
    split('By project', 'Project', projects, measure),
    notes(shown, models),
  ];
}

function tile(text, report, chosen) {
  const total = report.total;
  const cost = f.cost(total, report.currency);
  const count = h('span', { class: 'of' }, figure(f.tokens(total), f.why(total)), ' tokens');
  return h(
    'li',
    { class: chosen ? 'tile chosen' : 'tile', 'data-tile': report.since === report.until ? 'today' : text },
    h('h2', {}, text),
    cost === undefined
      ? h('p', { class: 'big' }, figure(f.tokens(total), f.why(total)), h('small', {}, ' tokens'))
      : [h('p', { class: 'big' }, figure(cost, f.whyCost(total))), h('p', {}, count)],
    h('p', { class: 'dim' }, f.plural(total.requests, 'request'), total.billing === 'seat' ? ' · list-price equivalent' : ''),
  );
}

export const sessionLink = (row) => h('a', { href: go.toSession(row.session_id), title: row.session_id }, row.session_id.slice(0, 8));

function live(state, currency) {
  const columns = [
    { name: 'Session', cell: (row) => [sessionLink(row), h('span', { class: 'narrow' }, row.project)] },
    { name: 'Project', class: 'name wide', cell: (row) => row.project },
    { name: 'Open turn', class: 'wraps', cell: openTurn },
    { name: 'Last seen', class: 'wide', cell: (row) => f.clock(row.last_at ?? row.started_at) },
    { name: 'Tokens', class: 'number', cell: (row) => figure(f.tokens(row), f.why(row)) },
  ];
  if (state.sessions.some((row) => row.cost_usd !== undefined)) {
    columns.push({ name: 'Cost', class: 'number', cell: (row) => figure(f.costCell(row, currency)) });
  }
  return h(
    'section',
    { 'aria-labelledby': 'live-title', id: 'sessions-live' },
    h('h2', { id: 'live-title' }, 'Live sessions'),
    state.sessions.length
      ? table({ caption: 'Sessions with an open connection, or of the last 5 minutes', columns, rows: state.sessions, key: (row) => row.session_id })
      : h('p', { class: 'empty' }, 'No session is live: nothing happened within 5 minutes.'),
  );
}

function openTurn({ open_turn: turn }) {
  if (!turn) return h('span', { class: 'dim' }, 'none seen');
  const since = `for ${f.span(Date.now() - Date.parse(turn.started_at))}`;
  const model = turn.model && turn.model !== 'unknown' ? `${turn.model}, ` : '';
  const why = turn.tokens ? 'At least: the turn is still open.' : 'Nothing of this turn is measured yet.';
  return [model, since, ', ', figure(turn.tokens ? `${f.tokens({ bound: 'at_least', ...turn })} tokens` : '— (unmeasured)', why)];
}

const HIGH = 150;

function chart(report, measure) {
  const byDay = new Map(report.rows.map((row) => [row.key, row]));
  const names = f.days(report.since, report.until);
  const values = names.map((name) => (byDay.has(name) ? f.weight(byDay.get(name), measure) : 0));
  const most = Math.max(...values, 0);
  const step = 100 / names.length;
  const every = names.length > 10 ? 7 : 1;
  const text = (row) => (measure === 'cost' ? f.cost(row, report.currency) : `${f.tokens(row)} tokens`);
  const bars = names.map((name, place) => {
    const high = most > 0 ? Math.max((values[place] / most) * (HIGH - 20), values[place] > 0 ? 2 : 0) : 0;
    const row = byDay.get(name);
    const x = `${(place + 0.15) * step}%`;
    const label = (names.length - 1 - place) % every === 0;
    return [
      svg('rect', { x, y: HIGH - high, width: `${step * 0.7}%`, height: high, rx: 3 }, svg('title', {}, `${f.calendarDay(name)}: ${row ? text(row) : 'nothing'}`)),
      values[place] > 0 && values[place] === most && top(place, step, HIGH - high - 6, text(row)),
      label && svg('text', { x: `${Math.min(Math.max((place + 0.5) * step, 4), 96)}%`, y: HIGH + 18 }, f.calendarDay(name)),
    ];
  });
  const busiest = names[values.indexOf(most)];
  const said = most > 0 ? `The most on ${f.calendarDay(busiest)}: ${text(byDay.get(busiest))}.` : 'Nothing was spent.';
  const what = measure === 'cost' ? 'cost' : 'tokens';
  return h(
    'section',
    { 'aria-labelledby': 'days-title' },
    h('h2', { id: 'days-title' }, `By day: ${what}`),
    svg('svg', { class: 'chart', role: 'img', 'aria-label': `Bars of ${what} by day, ${f.calendarDay(report.since)} to ${f.calendarDay(report.until)}. ${said} The table below has the figures.` }, svg('line', { x1: 0, x2: '100%', y1: HIGH + 0.5, y2: HIGH + 0.5 }), bars),
    h('details', { 'data-key': 'days' }, h('summary', {}, 'Days as a table'), figures(`By day, ${report.timezone}`, 'Day', report, (row) => row.key)),
  );
}

/** What stands above the highest bar, inside the drawing wherever that bar is. */
function top(place, step, y, text) {
  const middle = (place + 0.5) * step;
  const [side, x] = middle < 25 ? ['start', place * step] : middle > 75 ? ['end', (place + 1) * step] : ['', middle];
  return svg('text', { class: `top ${side}`, x: `${x}%`, y }, text);
}

function split(heading, name, report, measure) {
  const id = `by-${name.toLowerCase()}`;
  return h(
    'section',
    { 'aria-labelledby': id },
    h('h2', { id }, heading),
    report.rows.length
      ? figures(`${heading}, ${f.calendarDay(report.since)} to ${f.calendarDay(report.until)}`, name, report, (row) => row.key, measure)
      : h('p', { class: 'empty' }, 'Nothing was spent.'),
  );
}

/** Rows as the report's table has them, each with a bar where `measure` says of what. */
function figures(caption, name, report, label, measure) {
  const most = Math.max(...report.rows.map((row) => f.weight(row, measure)), 0);
  const several = new Set(report.rows.map((row) => row.home)).size > 1;
  const columns = [
    { name, class: measure ? 'name bars' : 'name', cell: (row) => (row === report.total ? 'Total' : [label(row), measure && row.tokens && bar(most > 0 ? f.weight(row, measure) / most : 0)]) },
    several && { name: 'Home', class: 'wide', cell: (row) => row.home ?? '' },
    { name: 'Requests', class: 'number wide', cell: (row) => f.thousands(row.requests) },
    ...f.shownClasses(report.total.tokens).map(([key, text]) => ({ name: text, class: 'number wide', cell: (row) => f.classText(row, key) })),
    { name: 'Total', class: 'number', cell: (row) => figure(f.tokens(row), f.why(row)) },
    report.total.cost_usd !== undefined && { name: 'Cost', class: 'number', cell: (row) => figure(f.costCell(row, report.currency), costNote(row)) },
  ].filter(Boolean);
  const key = (row) => (row === report.total ? 'total' : `${row.key}/${row.home ?? ''}`);
  return table({ caption, columns, rows: report.rows, total: report.total, key });
}

/** What there is to say of a cost that its tokens do not say already. */
export const costNote = (row) => (row.cost_bound === 'estimate' || row.unpriced_tokens > 0 || row.billing === 'seat' ? f.whyCost(row) : '');

function notes(report, models) {
  const total = report.total;
  const said = [`Time zone: ${report.timezone}. Sources: ${total.basis?.length ? total.basis.map(f.plain).join(', ') : 'none'}.`];
  if (f.why(total)) said.push(`≥ ${f.why(total)}`);
  if (report.prices) said.push(`Costs at list prices of ${report.prices}${report.currency ? `, ${report.currency}` : ''}.`);
  if (total.cost_bound === 'estimate') said.push('~ An estimate: a source tells no cached tokens apart, so it may be too high or low.');
  if (total.unpriced_tokens > 0) {
    const names = models.rows.filter((row) => row.unpriced_tokens > 0).map((row) => row.key);
    said.push(`Unpriced: ${f.plural(total.unpriced_tokens, 'token')} of ${names.join(', ') || 'some models'}.`);
  }
  if (total.billing === 'seat') said.push('A seat is not billed by the token: costs are a list-price equivalent, not an invoice.');
  if (total.billing === 'mixed') said.push('Homes with a seat are among them: there costs are a list-price equivalent, not an invoice.');
  return h('section', { class: 'notes', 'aria-label': 'Notes' }, h('ul', {}, said.map((note) => h('li', {}, note))));
}
