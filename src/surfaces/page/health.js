// How the service itself is doing, and what no source can see.

import { get, read } from './api.js';
import { h, table } from './dom.js';
import * as f from './format.js';

export const title = 'Health';

export async function load(route, signal) {
  const [state, readiness, report] = await Promise.all([
    get('api/v1/state', {}, signal),
    get('-/page/words.json', {}, signal).then(() => readiness_(signal)),
    get('api/v1/report/daily', { since: 'today' }, signal),
  ]);
  f.setZone(report.timezone);
  return { state, readiness };
}

export const headline = ({ readiness }) => readiness[0];

export function render({ state, readiness }) {
  return [];
}
