// Figures in the words and digits of the command line.

let words = { reasons: {} };
let zone = 'UTC';

export function know(known) {
  words = known;
}

/** The service's time zone, as a report names it. */
export function setZone(name) {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    zone = name;
  } catch {
    zone = 'UTC';
  }
}

export const zoneName = () => zone;

export const thousands = (count) => count.toLocaleString('en-US');

export const plural = (count, word) => `${thousands(count)} ${word}${count === 1 ? '' : 's'}`;

const MARK = { at_least: '≥ ', estimate: '~ ' };

/** `≥ 4,626`, or `— (unmeasured)`. */
export function tokens(row) {
  if (!row.tokens) return '— (unmeasured)';
  return (MARK[row.bound] ?? '') + thousands(row.tokens.total);
}

export const CLASSES = [
  ['uncached_input', 'Fresh'],
  ['cached_input', 'Cached'],
  ['tool_input', 'Tool'],
  ['output', 'Output'],
  ['thoughts', 'Thoughts'],
];

/** The classes to show: tool input only where there is any. */
export function shownClasses(total) {
  return CLASSES.filter(([name]) => name !== 'tool_input' || total?.tool_input > 0);
}

export const classText = (row, name) => (row.tokens ? thousands(row.tokens[name]) : '—');

// Money in whole 10⁻¹² of its currency.
const DECIMALS = 12;
const UNIT = 10n ** 12n;

export function pico(text) {
  const [, sign, whole, fraction = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? [, '', '0'];
  const value = BigInt(whole + fraction.slice(0, DECIMALS).padEnd(DECIMALS, '0'));
  return sign ? -value : value;
}

/** `$1,234.56`; below a dollar four decimals, below those two digits that say something. */
export function money(value, mark = '$', down = false) {
  const size = value < 0n ? -value : value;
  const digits = size.toString().length;
  let shown = size === 0n || size >= UNIT ? 2 : Math.min(Math.max(DECIMALS + 2 - digits, 4), DECIMALS);
  const unit = 10n ** BigInt(DECIMALS - shown);
  const rest = ((value % unit) + unit) % unit;
  let units = (value - rest) / unit;
  if (!down && (rest * 2n > unit || (rest * 2n === unit && units % 2n !== 0n))) units += 1n;
  if (shown === 4 && (units === 10_000n || units === -10_000n)) [units, shown] = [units / 100n, 2];
  const scale = 10n ** BigInt(shown);
  const abs = units < 0n ? -units : units;
  const fraction = (abs % scale).toString().padStart(shown, '0');
  return `${units < 0n ? '-' : ''}${mark}${(abs / scale).toLocaleString('en-US')}.${fraction}`;
}

const SYMBOLS = { USD: '$', EUR: '€', GBP: '£', JPY: '¥', INR: '₹' };

/** `≥ $0.0259`; `—` with why where there is no number; nothing where pricing is off. */
export function cost(row, currency) {
  if (row.cost_usd === undefined) return undefined;
  if (row.cost_usd === null) return row.tokens ? '— (no price)' : '— (unmeasured)';
  const mark = currency ? SYMBOLS[currency] ?? `${currency} ` : '$';
  const value = pico(currency ? row.cost_local : row.cost_usd);
  return (MARK[row.cost_bound] ?? '') + money(value, mark, row.cost_bound === 'at_least');
}

/** The same in a table, where the tokens beside it say that they are unmeasured. */
export const costCell = (row, currency) => cost(row, currency)?.replace(/^—.*/, '—');

/** What to draw a bar by: tokens, or cost in dollars. */
export function weight(row, measure) {
  if (measure === 'tokens') return row.tokens?.total ?? 0;
  return row.cost_usd ? Number(row.cost_usd) : 0;
}

/** Why a figure of tokens is what it is; empty where it is exact. */
export function why(row) {
  if (!row.tokens) return 'Unmeasured: a prompt was seen and no figure for it. Its spend is unknown, not zero.';
  if (row.bound !== 'at_least') return '';
  const reasons = row.reasons ?? [];
  const watcher = reasons.includes('orphan');
  const said = reasons
    // What the watcher cannot know is said once.
    .filter((reason) => reason !== 'orphan' && reason !== 'no_figure' && !(watcher && reason === 'model_unobserved'))
    .map(reason);
  if (watcher) said.unshift(reason('orphan'));
  return `At least: ${said.join('; ') || 'a part of it was not measured'}.`;
}

/** What the state of a home's quota means, where there is more to say than its name. */
export const quotaState = (name) => words.quota_states?.[name] ?? '';

export const reason = (name) => words.reasons[name] ?? plain(name);

/** Why a cost is what it is. */
export function whyCost(row) {
  const said = [];
  if (row.cost_bound === 'estimate') {
    said.push('An estimate: a source tells no cached tokens apart, so it may be too high or low.');
  }
  if (row.unpriced_tokens > 0) said.push(`${plural(row.unpriced_tokens, 'token')} without a price not counted.`);
  if (row.cost_bound === 'at_least') said.push(why(row));
  if (row.billing === 'seat') said.push('A seat is not billed by the token: list-price equivalent, not an invoice.');
  return said.filter(Boolean).join(' ');
}

export const plain = (name) => String(name).replaceAll('_', ' ');

const clocks = new Map();

function formatted(at, options) {
  const key = zone + JSON.stringify(options);
  if (!clocks.has(key)) clocks.set(key, new Intl.DateTimeFormat('en-GB', { timeZone: zone, ...options }));
  return clocks.get(key).format(new Date(at));
}

const DAY = { day: 'numeric', month: 'short' };
const TIME = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' };

export const day = (at) => formatted(at, { ...DAY, year: 'numeric' });
export const time = (at) => formatted(at, { ...TIME, second: '2-digit' });

/** With the second, and always with the day. */
export const moment = (at) => `${day(at)}, ${time(at)}`;

/** `19:05`, with the day where that is another than today. */
export function clock(at) {
  const same = day(at) === day(Date.now());
  return same ? formatted(at, TIME) : formatted(at, { ...DAY, ...TIME });
}

/** `4 h 12 min`, of ms. */
export function span(ms) {
  const minutes = Math.floor(ms / 60_000);
  const [days, hours] = [Math.floor(minutes / 1440), Math.floor(minutes / 60) % 24];
  if (minutes < 1) return 'less than a minute';
  if (minutes < 60) return `${minutes} min`;
  return days ? `${days} d ${hours} h` : `${hours} h ${minutes % 60} min`;
}

/** `30 Nov`, of a calendar day. */
export function calendarDay(text) {
  const options = { timeZone: 'UTC', day: 'numeric', month: 'short' };
  return new Date(`${text}T00:00:00Z`).toLocaleDateString('en-GB', options);
}

/** The calendar days of a range, both ends included. */
export function days(since, until) {
  const list = [];
  for (let at = Date.parse(`${since}T00:00:00Z`); at <= Date.parse(`${until}T00:00:00Z`); at += 86_400_000) {
    list.push(new Date(at).toISOString().slice(0, 10));
  }
  return list;
}
