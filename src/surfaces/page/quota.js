// What is left of each limit, when it resets, how long it lasts at this pace.

import { get } from './api.js';
import { bar, figure, h, table } from './dom.js';
import * as f from './format.js';
import * as go from './route.js';

export const title = 'Quota';

export async function load(route, signal) {
  const [quota, report] = await Promise.all([
    get('api/v1/quota', {}, signal),
    get('api/v1/report/daily', { since: 'today' }, signal),
  ]);
  f.setZone(report.timezone);
  return quota;
}

export function headline({ limits }) {
  const said = limits.filter((limit) => limit.remaining_fraction !== null && !limit.reset_due);
  return said.map((limit) => `${limit.model} ${percent(limit.remaining_fraction)} left`).join(', ') || 'No quota is reported';
}

export function render(quota, route) {
  const homes = Object.entries(quota.homes);
  return [
    h('h1', { tabindex: '-1' }, 'Quota'),
    homes.length ? homes.map(([name, home]) => one(name, home, quota)) : h('p', { class: 'empty' }, 'The ledger knows no home yet.'),
    refusals(quota, route),
    asleep(quota),
    h('section', { class: 'notes', 'aria-label': 'Notes' }, h('p', {}, quota.risk.split('`').map((part, place) => (place % 2 ? h('code', {}, part) : part)))),
  ];
}

function one(name, home, quota) {
  const limits = quota.limits.filter((limit) => limit.homes.includes(name));
  const asked = home.observed_at ? `asked ${ago(home.observed_at)}` : '';
  const meaning = [f.quotaState(home.state), asked].filter((part) => part && part !== f.plain(home.state));
  const account = home.account && `Account ${home.account}, cloud project ${home.cloud_project ?? 'not known'}.`;
  return h(
    'section',
    { 'aria-label': `Home ${name}`, 'data-key': name },
    h('h2', {}, name),
    h('p', {}, h('span', { class: home.state === 'ok' ? 'badge good' : 'badge' }, f.plain(home.state)), ` ${meaning.join('; ')}`),
    home.detail && h('p', { class: 'dim' }, home.detail),
    account && h('p', { class: 'dim' }, account),
    limits.length
      ? table({ caption: `Limits of ${name}`, columns: COLUMNS, rows: limits, key: (limit) => limit.account + limit.cloud_project + limit.model + limit.token_type })
      : h('p', { class: 'empty' }, home.observed_at ? 'No quota is reported: neither 0 % nor 100 %.' : 'Nothing is known of its limits.'),
  );
}

/** Rounded down; what is left at all is not 0. */
export function percent(fraction) {
  const share = fraction * 100;
  if (share > 0 && share < 1) return '<1 %';
  // 0.29 * 100 is a hair below 29.
  return `${Math.floor(Number(share.toFixed(7)))} %`;
}

const ago = (at) => {
  const ms = Date.now() - Date.parse(at);
  return ms < 60_000 ? 'just now' : `${f.span(ms)} ago`;
};

const COLUMNS = [
  { name: 'Limit', class: 'name bars', cell: (limit) => [limit.label, limit.remaining_fraction !== null && !limit.reset_due && bar(limit.remaining_fraction)] },
  { name: 'Left', class: 'number', cell: left },
  { name: 'Resets', class: 'wraps', cell: resets },
  { name: 'Runway', class: 'wraps', cell: runway },
];

function left(limit) {
  const stale = limit.stale ? ' (stale)' : '';
  if (limit.remaining_fraction === null) {
    return figure(`— (not reported)${stale}`, 'Google reports no number for it: neither 0 % nor 100 %.');
  }
  if (limit.reset_due) return figure(`was ${percent(limit.remaining_fraction)}${stale}`, 'Its reset has passed and nobody has asked since.');
  const amount = limit.remaining_amount !== null && limit.limit !== null && `${f.thousands(limit.remaining_amount)} left of ${f.thousands(limit.limit)} (derived).`;
  return figure(percent(limit.remaining_fraction) + stale, amount || '');
}

function resets(limit) {
  if (!limit.resets_at) return 'not stated';
  const until = Date.parse(limit.resets_at) - Date.now();
  const when = h('time', { datetime: limit.resets_at }, f.clock(limit.resets_at));
  return until < 0 ? ['was due ', f.span(-until), ' ago'] : ['in ', f.span(until), h('span', { class: 'wide' }, ', ', when)];
}

function runway(limit) {
  if (limit.refused_at) {
    const until = `refused at ${f.clock(limit.refused_at)} until ${f.clock(limit.refused_until)}`;
    return limit.contradicted ? `CONTRADICTED: ${until}, though ${percent(limit.remaining_fraction)} were left at ${f.clock(limit.observed_at)}` : until;
  }
  const { forecast, empty_at: empty, before_reset: before, percent_per_hour: pace } = limit.runway;
  const word = { empty: 'nothing is left until it resets', too_early: 'too early for a forecast', steady: 'not falling' };
  if (forecast !== 'falling') return word[forecast] ?? '—';
  if (before === false) return figure('lasts until it resets at this pace', `${pace} % an hour`);
  const text = `empty in ${f.span(Date.parse(empty) - Date.now())} at this pace`;
  return figure(before ? `${text.toUpperCase()}, before it resets` : text, `${pace} % an hour`);
}

function refusals(quota) {
  if (!quota.refusals.length) return null;
  const columns = [
    { name: 'At', cell: (row) => f.clock(row.at) },
    { name: 'Until', cell: (row) => f.clock(row.until) },
    { name: 'Home', cell: (row) => row.home },
    { name: 'Model', class: 'name', cell: (row) => (row.model === 'unknown' ? 'not named' : row.model) },
    { name: 'Why', cell: (row) => f.plain(row.metric ?? row.stated_reason ?? row.reason) },
    { name: 'Session', cell: (row) => h('a', { href: go.toSession(row.session_id) }, row.session_id.slice(0, 8)) },
  ];
  return h('section', { 'aria-labelledby': 'refusals' }, h('h2', { id: 'refusals' }, 'Refused requests'), table({ caption: 'Refusals for exhausted quota that still hold', columns, rows: quota.refusals }));
}

function asleep(quota) {
  if (!quota.asleep.length) return null;
  const line = (row) =>
    h('li', {}, h('strong', {}, `Asleep until ${f.clock(row.until)}`), ': session ', h('a', { href: go.toSession(row.session_id) }, row.session_id.slice(0, 8)), ` of ${row.home} waits a refusal of ${row.model} out in silence.`);
  return h('section', { 'aria-labelledby': 'asleep' }, h('h2', { id: 'asleep' }, 'Asleep'), h('ul', {}, quota.asleep.map(line)));
}
