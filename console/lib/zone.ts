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

const MINUTE_MS = 60_000;

/** An instant as a field of type datetime-local spells it, in the zone that is shown. */
export function toField(at: string | number): string {
  const date = new Date(at);
  const offsetMin = zone.get() === 'UTC' ? 0 : date.getTimezoneOffset();
  return new Date(date.getTime() - offsetMin * MINUTE_MS).toISOString().slice(0, 19);
}

/** The instant that such a field means. */
export const fromField = (text: string): Date => new Date(zone.get() === 'UTC' ? `${text}Z` : text);

export function setZone(next: Zone): void {
  zone.set(next);
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // A browser that keeps nothing shows it until the page is left.
  }
}
