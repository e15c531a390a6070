// A body that is a list of events, each of which stands for itself.

import { stringifyMarked } from '../digits.ts';
import type { JsonValue } from '../json.ts';
import type { ReadEvent, SignedRequest, VerifyContext } from './provider.ts';
import {
  type Described,
  eventFrom,
  findUnkeepable,
  hashOf,
  isTooDeep,
  type JsonObject,
  NOTHING,
} from './read.ts';

export interface ListItem {
  /** `hash` is that of the content. */
  describe(hash: string): Described;
  readonly content: JsonValue;
  readonly payload: JsonObject;
}

/** What Meta says it sends at most in one POST. */
const ITEMS_MAX = 1_000;
/** Read in one go. A post of 3 MB takes 70 ms in all, and other requests must not wait for all of it. */
const ITEMS_AT_ONCE = 50;

/** A list of no items, or of too many, is kept as one event. `items` are asked for one by one, and no further than that. */
export async function readList(
  items: Iterable<ListItem>,
  { body }: SignedRequest,
  { port }: VerifyContext,
): Promise<ReadEvent[]> {
  let bodyHash: Promise<string> | undefined;
  const hashOfBody = (): Promise<string> => {
    bodyHash ??= hashOf(port, body);
    return bodyHash;
  };
  const read = async ({ describe, content, payload }: ListItem): Promise<ReadEvent> => {
    const quarantine = findUnkeepable(payload) ?? findUnkeepable(content) ?? null;
    const hash = await (isTooDeep(content) ? hashOfBody() : hashOf(port, stringifyMarked(content)));
    const kept = quarantine === null ? stringifyMarked(payload) : null;
    return eventFrom(describe(hash), { payload: kept, hash, quarantine });
  };
  const list = firstOf(items, ITEMS_MAX + 1);
  if (list.length === 0 || list.length > ITEMS_MAX) {
    const quarantine = list.length === 0 ? 'no_updates' : 'too_many_updates';
    return [eventFrom(NOTHING, { payload: null, hash: await hashOfBody(), quarantine })];
  }
  const events: ReadEvent[] = [];
  for (let at = 0; at < list.length; at += ITEMS_AT_ONCE) {
    if (at > 0) await new Promise((resolve) => setTimeout(resolve));
    events.push(...(await Promise.all(list.slice(at, at + ITEMS_AT_ONCE).map(read))));
  }
  return events;
}

function firstOf<Item>(items: Iterable<Item>, most: number): Item[] {
  const first: Item[] = [];
  for (const item of items) {
    if (first.push(item) >= most) break;
  }
  return first;
}
