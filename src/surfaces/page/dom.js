// Builds elements, with every text as text, and brings what is shown up to date
// without taking focus or selection away from whoever reads.

const SVG = 'http://www.w3.org/2000/svg';
let tables = 0;

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === true) node.setAttribute(name, '');
    else if (value !== undefined && value !== null && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  return node;
}

export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** A figure; where there is something to say of it, it says so when pointed at or focused. */
export function figure(text, why) {
  const [number, aside] = text?.split(/(?= \()/) ?? [];
  // In a table on a phone there is no room for what the tip says, too.
  const parts = [number, aside && h('span', { class: 'aside' }, aside)];
  if (!why) return h('span', { class: 'figure' }, parts);
  return h('button', { type: 'button', class: 'figure', 'data-why': why }, parts);
}

/** A choice among links that look like one control. */
export function choices(label, options, chosen) {
  const link = ([value, text, href]) =>
    h('a', { href, 'aria-current': value === chosen ? 'true' : undefined, 'data-key': `${label}:${value}` }, text);
  return h('nav', { class: 'choices', 'aria-label': label }, options.map(link));
}

/** A labelled select; `name` is the filter it sets. */
export function select(label, name, options, chosen) {
  const id = `filter-${name}`;
  const option = ([value, text]) => h('option', { value, selected: value === chosen }, text);
  return h('span', { class: 'field' }, h('label', { for: id }, label), h('select', { id, 'data-filter': name }, options.map(option)));
}

/**
 * A table. Columns: `{ name, cell(row), class, sort: { key, order, href } }`; the
 * first column is the row's header. `total` is a last row of the same columns.
 */
export function table({ caption, columns, rows, total, key }) {
  const id = `caption-${tables++ % 1000}`;
  const head = ({ name, class: kind, sort }) => {
    const order = sort?.order && (sort.order === 'asc' ? 'ascending' : 'descending');
    const arrow = h('span', { 'aria-hidden': 'true' }, sort?.order === 'asc' ? ' ↑' : sort?.order ? ' ↓' : '');
    const text = sort
      ? h('button', { type: 'button', 'data-go': sort.href, 'data-key': `sort:${sort.key}` }, name, arrow)
      : name;
    return h('th', { scope: 'col', class: kind, 'aria-sort': order || undefined }, text);
  };
  const line = (row, place) => {
    const cell = ({ cell, class: kind }, column) =>
      column ? h('td', { class: kind }, cell(row)) : h('th', { scope: 'row', class: kind }, cell(row));
    return h('tr', { 'data-key': key?.(row, place) }, columns.map(cell));
  };
  const body = h('tbody', {}, rows.map(line));
  const foot = total && h('tfoot', {}, line(total, rows.length));
  return h(
    'div',
    { class: 'scroll', role: 'region', tabindex: '0', 'aria-labelledby': id },
    h('table', {}, h('caption', { id }, caption), h('thead', {}, h('tr', {}, columns.map(head))), body, foot),
  );
}

/** A share of the largest as a bar beside its figure, which says the same. */
export function bar(share) {
  const width = `${Math.min(Math.max(share, 0), 1) * 100}%`;
  const back = svg('rect', { class: 'track', width: '100%', height: '100%', rx: 2.5 });
  return svg('svg', { class: 'bar', 'aria-hidden': 'true' }, back, svg('rect', { width, height: '100%', rx: 2.5 }));
}

/** Makes the children of `old` those of `fresh`. */
export function morph(old, fresh) {
  let next = old.firstChild;
  const keyed = new Map([...old.children].filter(keyOf).map((child) => [keyOf(child), child]));
  for (const child of [...fresh.childNodes]) {
    const key = keyOf(child);
    const known = key ? keyed.get(key) : next && !keyOf(next) ? next : undefined;
    if (!known || !alike(known, child)) {
      old.insertBefore(child, next);
      continue;
    }
    if (known === next) next = next.nextSibling;
    else old.insertBefore(known, next);
    update(known, child);
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}

const keyOf = (node) => node.dataset?.key;
const alike = (a, b) => a.nodeName === b.nodeName && a.nodeType === b.nodeType;

function update(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) {
    // Whether details are open, and what is described by the tip, is the reader's.
    if (!fresh.hasAttribute(name) && name !== 'open' && name !== 'aria-describedby') old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  morph(old, fresh);
  if ('value' in old && old !== document.activeElement && old.value !== fresh.value) old.value = fresh.value;
}
