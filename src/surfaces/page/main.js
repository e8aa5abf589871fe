// The page: what is shown where, when it is asked for anew, and what keys and
// clicks do. Every view has `load` (asks the API) and `render` (builds nodes).

import { get } from './api.js';
import { h, morph } from './dom.js';
import * as explain from './explain.js';
import * as f from './format.js';
import * as health from './health.js';
import { listen } from './live.js';
import * as quota from './quota.js';
import * as go from './route.js';
import * as sessions from './sessions.js';
import * as spend from './spend.js';

const VIEWS = { spend, sessions, session: explain, quota, health };

/** Asked anew so often even if nothing is heard: days end, sessions fall silent. */
const REFRESH = 60_000;
/** Countdowns move so often. */
const TICK = 15_000;
/** Between answers and the next questions: so much, or so many times what the answers took. */
const PAUSE = 1000;
const TIMES = 4;

const main = document.getElementById('main');
const said = document.getElementById('said');
const lamp = document.getElementById('live');
const tip = document.getElementById('tip');

let route = go.parse(location.hash);
let shown; // { view, data, headline, hash, page } of what stands in the document
let failed; // why the last questions were not answered
let asking; // AbortController of the questions under way
let due; // timer of the next questions
let heard = false; // whether the ledger changed meanwhile
let answered = 0; // when what is shown was answered, as the page's clock runs
let rested = 0; // when there may be questions again

async function ask() {
  clearTimeout(due);
  due = undefined;
  asking?.abort();
  const mine = (asking = new AbortController());
  const view = VIEWS[route.page];
  const began = performance.now();
  main.setAttribute('aria-busy', 'true');
  try {
    const data = view ? await view.load(route, mine.signal) : undefined;
    if (mine.signal.aborted) return;
    failed = undefined;
    answered = performance.now();
    keep(view, data);
  } catch (error) {
    if (mine.signal.aborted) return;
    failed = error.message;
    render();
  }
  main.setAttribute('aria-busy', 'false');
  asking = undefined;
  const now = performance.now();
  rested = now + Math.max(PAUSE, TIMES * (now - began));
  again(heard ? rested - now : REFRESH);
  heard = false;
}

function again(after) {
  clearTimeout(due);
  due = setTimeout(() => (document.hidden ? again(REFRESH) : ask()), after);
}

/** The ledger changed: ask soon, and never without a pause. */
function changed() {
  if (asking) heard = true;
  else again(Math.max(0, rested - performance.now()));
}

function keep(view, data) {
  const headline = view?.headline(data);
  const before = shown;
  shown = { view, data, headline, hash: location.hash };
  render();
  // Only what changed while it was looked at is said aloud.
  if (before && before.view === view && before.headline !== headline && before.hash === location.hash) {
    said.textContent = headline;
  }
  if (!before || before.page !== pageKey()) arrive(Boolean(before));
  shown.page = pageKey();
}

const pageKey = () => `${route.page}/${route.id ?? ''}`;

function render() {
  const fresh = h('main');
  if (failed) {
    const old = shown?.page === pageKey() ? ` What is shown is of ${f.time(answered + performance.timeOrigin)}.` : '';
    fresh.append(h('p', { class: 'alert', role: 'alert' }, `The service cannot be asked: ${failed}.${old}`));
  }
  if (!VIEWS[route.page]) {
    fresh.append(h('h1', { tabindex: '-1' }, 'There is no such page'), h('p', {}, h('a', { href: '#/' }, 'To the spend')));
  } else if (shown?.view === VIEWS[route.page] && (shown.page ?? pageKey()) === pageKey()) {
    fresh.append(...[shown.view.render(shown.data, route)].flat(Infinity).filter(Boolean));
  } else if (failed) {
    fresh.append(h('h1', { tabindex: '-1' }, VIEWS[route.page].title));
  }
  morph(main, fresh);
  document.title = `${VIEWS[route.page]?.title ?? 'Nothing'} · gemgauge`;
  document.getElementById('zone').textContent = `· times in ${f.zoneName()}`;
  for (const link of document.querySelectorAll('header nav a')) {
    const page = link.dataset.page;
    const here = page === route.page || (page === 'sessions' && route.page === 'session');
    if (here) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
    link.href = go.to(page, route);
  }
}

/** Another page was opened: its heading is where reading goes on. */
function arrive(asked) {
  if (!asked) return;
  scrollTo(0, 0);
  main.querySelector('h1')?.focus({ preventScroll: true });
}

addEventListener('hashchange', () => {
  hideTip();
  route = go.parse(location.hash);
  if (!VIEWS[route.page]) keep(undefined, undefined);
  else ask();
});

document.addEventListener('click', (event) => {
  const skip = event.target.closest('#skip');
  if (skip) {
    event.preventDefault();
    main.focus();
  }
  const button = event.target.closest('[data-go]');
  if (button) location.hash = button.dataset.go;
});

// A filter: what is typed only hides rows, what is chosen asks again.
document.addEventListener('input', (event) => {
  const { filter } = event.target.dataset;
  if (!filter) return;
  const hash = go.to(route.page, route, { [filter]: event.target.value });
  if (event.target.type !== 'search') {
    location.hash = hash;
    return;
  }
  history.replaceState(null, '', hash);
  route = go.parse(hash);
  render();
});

// The tip: why a figure is what it is. It stays while pointed at, and Escape hides it.
let described;

function showTip(of) {
  hideTip();
  described = of;
  tip.textContent = of.dataset.why;
  tip.hidden = false;
  of.setAttribute('aria-describedby', 'tip');
  const box = of.getBoundingClientRect();
  const width = document.documentElement.clientWidth;
  const left = Math.max(8, Math.min(box.left + box.width / 2 - tip.offsetWidth / 2, width - tip.offsetWidth - 8));
  const below = box.bottom + 6;
  const above = box.top - tip.offsetHeight - 6;
  tip.style.left = `${left}px`;
  tip.style.top = `${below + tip.offsetHeight > innerHeight && above > 0 ? above : below}px`;
}

function hideTip() {
  tip.hidden = true;
  described?.removeAttribute('aria-describedby');
  described = undefined;
}

for (const [name, on] of [['pointerover', true], ['focusin', true], ['click', true], ['pointerout', false], ['focusout', false]]) {
  document.addEventListener(name, (event) => {
    const of = event.target.closest?.('[data-why]');
    if (on && of) showTip(of);
    else if (!on && of === described && event.relatedTarget !== tip) hideTip();
  });
}
tip.addEventListener('pointerleave', hideTip);
addEventListener('scroll', hideTip, { passive: true, capture: true });
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') hideTip();
});

function lampSays(state) {
  lamp.dataset.state = state;
  lamp.textContent = state === 'live' ? 'Live' : 'Not live, trying again';
}

document.addEventListener('visibilitychange', () => {
  if (!document.hidden) again(0);
});
setInterval(() => {
  if (!document.hidden && !asking && shown) render();
}, TICK);

f.know(await get('-/page/words.json').catch(() => ({ reasons: {} })));
await ask();
listen({ changed, state: lampSays });
