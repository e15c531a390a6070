// application/x-www-form-urlencoded bodies, as Twilio and Slack send them.

import { JsonError } from '../json.ts';

/** Twilio's and Slack's own have fewer than a hundred. A megabyte of them would keep us sorting before anything is proven. */
const MAX_FIELDS = 1_000;
const AMPERSAND = 0x26;

// ignoreBOM keeps the mark: dropping it would let two bodies pass under one signature.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Each name with its different values, sorted: Twilio signs neither the order nor how often a value is repeated.
 * Throws a JsonError where there are too many.
 */
export function readForm(body: Uint8Array): Map<string, string[]> {
  refuseTooMany(body);
  const values = new Map<string, Set<string>>();
  for (const [name, value] of new URLSearchParams(decoder.decode(body))) {
    const known = values.get(name);
    if (known === undefined) values.set(name, new Set([value]));
    else known.add(value);
  }
  const names = [...values.keys()].sort();
  return new Map(names.map((name) => [name, [...(values.get(name) ?? [])].sort()]));
}

function refuseTooMany(body: Uint8Array): void {
  let fields = 1;
  for (let at = body.indexOf(AMPERSAND); at >= 0; at = body.indexOf(AMPERSAND, at + 1))
    if (++fields > MAX_FIELDS) throw new JsonError('too_many_fields', at);
}

/** A name with one value becomes a text, one with several a list. */
export function formAsObject(form: ReadonlyMap<string, string[]>): { [name: string]: string | string[] } {
  // Not an assignment, which `__proto__` would turn into something else.
  return Object.fromEntries(
    [...form].map(([name, list]) => [name, list.length === 1 ? (list[0] ?? '') : list]),
  );
}
