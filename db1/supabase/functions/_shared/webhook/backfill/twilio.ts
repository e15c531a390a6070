// Twilio keeps calls and messages, and not what it sent about them. A call that has ended and a message become the callback
// that told so, with the fields of it that the record has: the same id, so the same effect, once.

import { digitsIn } from '../../digits.ts';
import { utf8 } from '../bytes.ts';
import { isObject, type JsonObject } from '../read.ts';
import { type Ask, SourceError } from './ask.ts';
import type { Fetched, Source, Stretch } from './source.ts';

const PAGE_RECORDS = 200;
/** User and password. The secret of another service must not go to Twilio because its name was mistaken. */
const KEY = /^((?:AC|SK)[0-9a-f]{32}):[\x21-\x7e]+$/i;
const ACCOUNT = /^AC[0-9a-f]{32}$/i;
const DAY_MS = 24 * 60 * 60 * 1_000;
/** A status that another will follow by itself is left to its callback. */
const ENDED_CALL = /^(completed|busy|no-answer|canceled|failed)$/;
const TOLD_MESSAGE = /^(sent|delivered|undelivered|failed|read|canceled|received)$/;

interface Kind {
  readonly path: string;
  readonly records: string;
  /** The filter on the day of the record. */
  readonly dayField: string;
  /** How much earlier the day may be than the time of the last change. */
  readonly leadDays: number;
  readonly told: RegExp;
  timeOf(record: JsonObject): unknown;
  fieldsOf(record: JsonObject): Record<string, unknown>;
}

const CALLS: Kind = {
  path: 'Calls.json',
  records: 'calls',
  dayField: 'EndTime',
  leadDays: 0,
  told: ENDED_CALL,
  timeOf: ({ end_time }) => end_time,
  fieldsOf: (call) => ({
    CallSid: call.sid,
    CallStatus: call.status,
    CallDuration: call.duration,
    CallbackSource: 'call-progress-events',
    CallerName: call.caller_name,
    Direction: call.direction,
    ForwardedFrom: call.forwarded_from,
    ParentCallSid: call.parent_call_sid,
    Timestamp: call.end_time,
  }),
};

const MESSAGES: Kind = {
  path: 'Messages.json',
  records: 'messages',
  dayField: 'DateSent',
  // A message is delivered, or given up, within three days of its sending.
  leadDays: 3,
  told: TOLD_MESSAGE,
  timeOf: ({ date_updated, date_sent, date_created }) => date_updated ?? date_sent ?? date_created,
  fieldsOf: (message) => ({
    MessageSid: message.sid,
    SmsSid: message.sid,
    SmsStatus: message.status,
    MessagingServiceSid: message.messaging_service_sid,
    // What came in is told as the message itself, what went out as its status.
    ...(message.status === 'received'
      ? { Body: message.body, NumMedia: message.num_media, NumSegments: message.num_segments }
      : { MessageStatus: message.status, ErrorCode: message.error_code }),
  }),
};

async function* list(ask: Ask, stretch: Stretch, accounts: readonly string[]): AsyncGenerator<Fetched[]> {
  for (const account of accounts)
    for (const kind of [CALLS, MESSAGES])
      for await (const records of listPages(ask, kind, account, stretch))
        yield records
          .filter((record) => isTold(kind, record, stretch))
          .map((record) => fetched(kind, record));
}

/** Twilio filters by days in UTC; the stretch itself is looked at here. */
async function* listPages(
  ask: Ask,
  { path, records, dayField, leadDays }: Kind,
  account: string,
  { since, until }: Stretch,
): AsyncGenerator<JsonObject[]> {
  const query = new URLSearchParams({
    [`${dayField}>`]: dayOf(since.getTime() - leadDays * DAY_MS),
    [`${dayField}<`]: dayOf(until.getTime() + DAY_MS),
    PageSize: String(PAGE_RECORDS),
  });
  let next: unknown = `/2010-04-01/Accounts/${account}/${path}?${query}`;
  while (typeof next === 'string' && next !== '') {
    const page: JsonObject = await ask(next);
    const found = page[records];
    if (!Array.isArray(found))
      throw new SourceError(`Twilio answers ${path} without a list`, 'is it the API of Twilio?');
    yield found.filter(isObject);
    next = page.next_page_uri;
  }
}

const dayOf = (timeMs: number): string => new Date(timeMs).toISOString().slice(0, 10);

function isTold(kind: Kind, record: JsonObject, { since, until }: Stretch): boolean {
  const time = Date.parse(String(kind.timeOf(record)));
  return kind.told.test(String(record.status)) && time >= since.getTime() && time < until.getTime();
}

function fetched(kind: Kind, record: JsonObject): Fetched {
  const fields = {
    AccountSid: record.account_sid,
    ApiVersion: record.api_version,
    From: record.from,
    To: record.to,
    ...kind.fieldsOf(record),
  };
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    const text = typeof value === 'string' ? (digitsIn(value) ?? value) : value;
    if (text !== null && text !== undefined) form.set(name, String(text));
  }
  return { method: 'POST', url: '', headers: {}, body: utf8(form.toString()) };
}

export const twilio: Source = {
  title: 'Twilio',
  keyName: 'TWILIO_API_KEY',
  urlVariable: 'TWILIO_API_URL',
  url: 'https://api.twilio.com',
  rights: 'the rights to read calls and messages',
  access(key, { name, accounts }, keyName) {
    const [, user] = KEY.exec(key) ?? [];
    if (user === undefined)
      throw new SourceError(
        `${keyName} is not a key of Twilio`,
        'its value is SK…:secret, or the account and its token: AC…:token',
      );
    const asked = accounts.length === 0 && ACCOUNT.test(user) ? [user] : accounts;
    if (asked.length === 0 || !asked.every((account) => ACCOUNT.test(account)))
      throw new SourceError(
        `the endpoint ${name} does not say whose calls and messages they are`,
        `name the account: sluice webhooks endpoints change ${name} --account AC…`,
      );
    return { headers: { authorization: `Basic ${btoa(key)}` }, accounts: asked };
  },
  list,
};
