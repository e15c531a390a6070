import type { JsonValue } from '../../json.ts';
import { utf8 } from '../bytes.ts';
import { sameBytes } from '../hmac.ts';
import { type ListItem, readList } from '../list.ts';
import type { Provider } from '../provider.ts';
import {
  type Described,
  decode,
  isObject,
  isoOfSeconds,
  isSaneName,
  type JsonObject,
  NOTHING,
  nameOf,
  parseMarked,
} from '../read.ts';
import { signsWholeBody } from './whole_body.ts';

const SECONDS = /^[0-9]{1,11}$/;
const CHALLENGE = /^[\x21-\x7e]{1,200}$/;

/** One message, one status or another change; each is an event of its own. */
function* updatesOf(body: JsonValue): Generator<ListItem> {
  if (!isObject(body) || !Array.isArray(body.entry)) return;
  for (const entry of body.entry) {
    if (!isObject(entry) || !Array.isArray(entry.changes)) yield strange(entry);
    else for (const change of entry.changes) yield* updatesOfChange(change, entry);
  }
}

function* updatesOfChange(change: JsonValue, entry: JsonObject): Generator<ListItem> {
  if (!isObject(change) || !isObject(change.value)) return yield strange(change);
  const { statuses = [], messages = [], metadata } = change.value;
  if (!Array.isArray(statuses) || !Array.isArray(messages)) return yield strange(change);
  const about = { business_account_id: nameOrNull(entry.id), phone_number_id: phoneNumberOf(metadata) };
  for (const status of statuses) yield statusOf(status, about);
  for (const message of messages) yield messageOf(message, about, change.field);
  if (statuses.length + messages.length === 0) yield changeOf(change, entry);
}

function statusOf(status: JsonValue, about: JsonObject): ListItem {
  const id = isObject(status) ? nameOf(status.id) : undefined;
  if (!isObject(status) || id === undefined || !isSaneName(status.status)) return strange(status);
  const described = {
    id: ['status', id, status.status, ...particulars(status)].join(':'),
    type: `status.${status.status}`,
    occurredAt: timeOf(status),
  };
  return update(described, status, { ...about, status });
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
function messageOf(message: JsonValue, about: JsonObject, field: JsonValue | undefined): ListItem {
  const id = isObject(message) ? nameOf(message.id) : undefined;
  if (!isObject(message) || id === undefined) return strange(message);
  const type = isSaneName(message.type) ? `message.${message.type}` : 'message';
  const name = field === 'messages' || !isSaneName(field) ? 'message' : `${field}:message`;
  const described = { id: `${name}:${id}`, type, occurredAt: timeOf(message) };
  return update(described, message, { ...about, message });
}

/** Template and account news have no id: the account, the time and the text together are one. */
function changeOf(change: JsonObject, { id, time: given }: JsonObject): ListItem {
  const time = typeof given === 'number' ? given : nameOrNull(given);
  const payload = { business_account_id: nameOrNull(id), time, change };
  const told = { type: change.field, occurredAt: isoOfSeconds(time) };
  return { describe: (hash) => ({ id: `change:${hash}`, ...told }), content: payload, payload };
}

/** Kept, but not understood. */
function strange(content: JsonValue): ListItem {
  return update(NOTHING, content, {});
}

function update(described: Described, content: JsonValue, payload: JsonObject): ListItem {
  return { describe: () => described, content, payload };
}

function timeOf({ timestamp }: JsonObject): string | null {
  return typeof timestamp === 'string' && SECONDS.test(timestamp)
    ? isoOfSeconds(Number(timestamp))
    : isoOfSeconds(timestamp);
}

function phoneNumberOf(metadata: JsonValue | undefined): string | null {
  return isObject(metadata) ? nameOrNull(metadata.phone_number_id) : null;
}

/** Bounded, because it is repeated in each of up to a thousand payloads, as is the time. */
function nameOrNull(value: JsonValue | undefined): string | null {
  return nameOf(value) ?? null;
}

export const whatsapp: Provider = {
  name: 'whatsapp',
  ...signsWholeBody('x-hub-signature-256', 'hex', 'sha256='),
  read: async (request, context) => readList(updatesOf(parseMarked(decode(request.body))), request, context),
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
