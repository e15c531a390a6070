import { stringifyMarked } from '../../digits.ts';
import type { JsonValue } from '../../json.ts';
import { utf8 } from '../bytes.ts';
import { type HmacPort, sameBytes } from '../hmac.ts';
import type { Provider, ReadEvent } from '../provider.ts';
import {
  type Described,
  decode,
  eventFrom,
  findUnkeepable,
  hashOf,
  isObject,
  isoOfSeconds,
  isSaneName,
  isTooDeep,
  type JsonObject,
  NOTHING,
  nameOf,
  parseMarked,
} from '../read.ts';
import { signsWholeBody } from './whole_body.ts';

/** What Meta says it sends at most in one POST. */
const UPDATES_MAX = 1_000;
const SECONDS = /^[0-9]{1,11}$/;
/** Read in one go. A post of 3 MB takes 70 ms in all, and other requests must not wait for all of it. */
const UPDATES_AT_ONCE = 50;
const CHALLENGE = /^[\x21-\x7e]{1,200}$/;

/** One message, one status or another change; each is an event of its own. */
interface Update {
  readonly described: Described;
  readonly content: JsonValue;
  readonly payload: JsonObject;
}

function updatesOf(entry: JsonValue): Update[] {
  if (!isObject(entry) || !Array.isArray(entry.changes)) return [strange(entry)];
  return entry.changes.flatMap((change) => {
    if (!isObject(change) || !isObject(change.value)) return [strange(change)];
    const { statuses = [], messages = [], metadata } = change.value;
    if (!Array.isArray(statuses) || !Array.isArray(messages)) return [strange(change)];
    const about = { business_account_id: nameOrNull(entry.id), phone_number_id: phoneNumberOf(metadata) };
    const updates = [
      ...statuses.map((status) => statusOf(status, about)),
      ...messages.map((message) => messageOf(message, about, change.field)),
    ];
    return updates.length > 0 ? updates : [changeOf(change, entry)];
  });
}

function statusOf(status: JsonValue, about: JsonObject): Update {
  const id = isObject(status) ? nameOf(status.id) : undefined;
  if (!isObject(status) || id === undefined || !isSaneName(status.status)) return strange(status);
  const described = {
    id: ['status', id, status.status, ...particulars(status)].join(':'),
    type: `status.${status.status}`,
    occurredAt: timeOf(status),
  };
  return { described, content: status, payload: { ...about, status } };
}

/**
 * What tells two statuses of one message apart. A message to a group has a status for each member, and an order has one for each
 * transaction that pays for it. All of them name the message, and two may reach the same status. The type tells a payment or a call
 * from the delivery of the message.
 */
function particulars({ type, recipient_participant_id: member, payment }: JsonObject): string[] {
  const transaction = isObject(payment) && isObject(payment.transaction) ? payment.transaction.id : undefined;
  return [type, member, transaction].filter(isSaneName);
}

/** What another field tells again, such as the history of the app, is an event of its own. */
function messageOf(message: JsonValue, about: JsonObject, field: JsonValue | undefined): Update {
  const id = isObject(message) ? nameOf(message.id) : undefined;
  if (!isObject(message) || id === undefined) return strange(message);
  const type = isSaneName(message.type) ? `message.${message.type}` : 'message';
  const name = field === 'messages' || !isSaneName(field) ? 'message' : `${field}:message`;
  const described = { id: `${name}:${id}`, type, occurredAt: timeOf(message) };
  return { described, content: message, payload: { ...about, message } };
}

/** Template and account news have no id: the account, the time and the text together are one. */
function changeOf(change: JsonObject, { id = null, time = null }: JsonObject): Update {
  const occurredAt = isoOfSeconds(time);
  const payload = { business_account_id: nameOrNull(id), time, change };
  return { described: { id: undefined, type: change.field, occurredAt }, content: payload, payload };
}

/** Kept, but not understood. */
function strange(content: JsonValue): Update {
  return { described: NOTHING, content, payload: {} };
}

function timeOf({ timestamp }: JsonObject): string | null {
  return typeof timestamp === 'string' && SECONDS.test(timestamp)
    ? isoOfSeconds(Number(timestamp))
    : isoOfSeconds(timestamp);
}

function phoneNumberOf(metadata: JsonValue | undefined): string | null {
  return isObject(metadata) ? nameOrNull(metadata.phone_number_id) : null;
}

/** Bounded, because it is repeated in each of up to a thousand payloads. */
function nameOrNull(value: JsonValue | undefined): string | null {
  return nameOf(value) ?? null;
}

async function eventOf(
  { described, content, payload }: Update,
  body: Uint8Array,
  port: HmacPort,
): Promise<ReadEvent> {
  const problem = findUnkeepable(payload) ?? findUnkeepable(content) ?? null;
  const hash = await hashOf(port, isTooDeep(content) ? body : stringifyMarked(content));
  const isChange = described !== NOTHING && described.id === undefined;
  return eventFrom(isChange ? { ...described, id: `change:${hash}` } : described, {
    payload: problem === null ? stringifyMarked(payload) : null,
    hash,
    quarantine: problem,
  });
}

async function eventsOf(updates: readonly Update[], body: Uint8Array, port: HmacPort): Promise<ReadEvent[]> {
  const events: ReadEvent[] = [];
  for (let at = 0; at < updates.length; at += UPDATES_AT_ONCE) {
    if (at > 0) await new Promise((resolve) => setTimeout(resolve));
    const some = updates.slice(at, at + UPDATES_AT_ONCE);
    events.push(...(await Promise.all(some.map((update) => eventOf(update, body, port)))));
  }
  return events;
}

export const whatsapp: Provider = {
  name: 'whatsapp',
  ...signsWholeBody('x-hub-signature-256', 'hex', 'sha256='),
  async read({ body }, { port }) {
    const value = parseMarked(decode(body));
    const updates = isObject(value) && Array.isArray(value.entry) ? value.entry.flatMap(updatesOf) : [];
    if (updates.length > 0 && updates.length <= UPDATES_MAX) return eventsOf(updates, body, port);
    const quarantine = updates.length === 0 ? 'no_updates' : 'too_many_updates';
    return [eventFrom(NOTHING, { payload: null, hash: await hashOf(port, body), quarantine })];
  },
};

/** Meta's handshake: the challenge to answer with, as text/plain; undefined where the request does not know the token. */
export function handshake(query: string, verifyToken: string | undefined): string | undefined {
  const fields = new URLSearchParams(query);
  const [mode, token, challenge] = ['hub.mode', 'hub.verify_token', 'hub.challenge'].map((name) => {
    const values = fields.getAll(name);
    return values.length === 1 ? values[0] : undefined;
  });
  if (!verifyToken || mode !== 'subscribe' || token === undefined || challenge === undefined)
    return undefined;
  return sameBytes(utf8(token), utf8(verifyToken)) && CHALLENGE.test(challenge) ? challenge : undefined;
}
