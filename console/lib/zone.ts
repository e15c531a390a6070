// Whether times are shown in this browser's own zone or in UTC, on every page, and after a reload too.

import { createStore } from './store.ts';

export type Zone = 'local' | 'UTC';
const KEY = 'sluice-zone';

function remembered(): Zone {
  try {
    return localStorage.getItem(KEY) === 'UTC' ? 'UTC' : 'local';
  } catch {
    return 'local';
  }
}

export const zone = createStore<Zone>(remembered());

export function setZone(next: Zone): void {
  zone.set(next);
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // A browser that keeps nothing shows it until the page is left.
  }
}
