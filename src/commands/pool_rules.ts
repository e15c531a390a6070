// The rules and details of a pool as options of the command line, made of the schemas that the server checks them with.

import { POOL_DETAILS_BODY } from '#core/console/pool_details.ts';
import { POOL_CHANGE_BODY } from '#core/console/pools.ts';
import type { IntegerSchema, Schema } from '#core/schema.ts';
import { short, UsageError } from './grammar.ts';

export type Rules = Record<string, string | number | boolean | null>;

const NO_RULE = 'none';
const YES: ReadonlySet<string> = new Set(['yes', 'true']);
const NO: ReadonlySet<string> = new Set(['no', 'false']);

// Slots, the request id and the reason are not rules, and open and close are actions of their own.
const {
  add_slots: _,
  labels: __,
  reason: ___,
  is_active: ____,
  request_id: _____,
  ...RULES
} = POOL_CHANGE_BODY.properties;

const MEANINGS: Readonly<Record<keyof typeof RULES, string>> = {
  opens_at:
    'no claim before this time with its zone, such as 2026-03-01T18:00:00Z or 2026-03-01T19:00:00+01:00',
  closes_at: 'no claim from this time on, in the same form',
  max_per_user: 'slots a user may hold',
  hold_sec: 'a claim that is not a ticket expires after this many seconds',
  require_auth: 'yes: claims need a signed-in user',
  allow_guests: 'yes: with --require-auth, anonymous sign-ins are enough',
  max_per_address: 'slots that the buyers of one network address may hold together',
  challenge_difficulty: 'claims need a proof of work of about half this many hashes, such as 100000',
  commit_rate_per_sec: 'at most this many tickets a second: the throttle',
  batch_size: 'for your own readers of the queue; sluice work has its --batch',
  visibility_timeout_sec: 'lease of its messages, unless sluice work has a longer --lease',
  max_retries: 'a message with this many attempts is a dead letter: N means N - 1 tries, at least 2',
  validation_webhook_url: 'workers ask it before each commit',
  commit_rpc_name: 'function of the ledger that commits',
  commit_webhook_url: 'commits instead of the ledger',
  confirm_by: 'auto, or payment: a claim becomes a ticket once its price is paid within --hold-sec',
  price: 'of one slot, in minor units such as cents',
  currency: 'of the price, such as eur',
  payment_tenant: 'whose payments count: the tenant of a webhook endpoint',
  payment_livemode: 'no: only payments in test mode count',
  max_quantity: 'slots that one request may claim together, up to 10',
  expire_grace_sec: 'seconds that an expired hold waits for Stripe to close the session',
  refund_by: 'who sends refunds: sluice, or operator',
};

const { reason: ______, ...DETAILS } = POOL_DETAILS_BODY.properties;

const DETAIL_MEANINGS: Readonly<Record<keyof typeof DETAILS, string>> = {
  title: 'what it is called',
  starts_at: 'when it is, such as 2026-03-01T18:00:00Z or 2026-03-01T19:00:00+01:00',
  time_zone: 'in which that is told to people, such as Europe/Berlin',
  place: 'where it is',
  picture_url: 'an https address of a picture',
  text: 'a few words about it; empty lines part paragraphs',
};

/** A rule that is one of a few words. */
const CHOICE = /^\^\(([a-z|]+)\)\$$/;

const optionOf = (rule: string): string => rule.replaceAll('_', '-');
const isTime = (rule: string): boolean => rule.endsWith('_at');

type Hyphened<Name extends string> = Name extends `${infer A}_${infer B}` ? `${A}-${Hyphened<B>}` : Name;
type OptionsOf<Name extends string> = Readonly<Record<Hyphened<Name>, { value: string; about: string }>>;

function optionsOf<Name extends string>(
  schemas: Readonly<Record<Name, Schema>>,
  meanings: Readonly<Record<Name, string>>,
): OptionsOf<Name> {
  const options = Object.entries<string>(meanings).map(([rule, about]) => [
    optionOf(rule),
    { value: placeholder(rule, schemas[rule as Name]), about },
  ]);
  return Object.fromEntries(options) as OptionsOf<Name>;
}

export const RULE_OPTIONS = optionsOf(RULES, MEANINGS);
export const DETAIL_OPTIONS = optionsOf(DETAILS, DETAIL_MEANINGS);

function placeholder(rule: string, schema: Schema): string {
  if (isTime(rule)) return 'TIME';
  const choice = choiceOf(schema);
  if (choice !== undefined) return choice.join('|');
  const type = [schema.type].flat()[0];
  return type === 'integer' ? 'N' : type === 'boolean' ? 'yes|no' : 'TEXT';
}

export function readRules(values: Record<string, unknown>): Rules {
  return read(RULES, values);
}

export function readDetails(values: Record<string, unknown>): Rules {
  return read(DETAILS, values);
}

/** Types, ranges, words and times are checked here; the server judges the rest. */
function read(schemas: Readonly<Record<string, Schema>>, values: Record<string, unknown>): Rules {
  const rules: Rules = {};
  for (const [rule, schema] of Object.entries(schemas)) {
    const text = values[optionOf(rule)];
    if (typeof text === 'string') rules[rule] = readValue(rule, text, schema);
  }
  return rules;
}

function readValue(rule: string, text: string, schema: Schema): Rules[string] {
  const option = `--${optionOf(rule)}`;
  const types: readonly string[] = [schema.type].flat();
  if (text === NO_RULE) {
    if (types.includes('null')) return null;
    throw new UsageError(`${option} cannot be "${NO_RULE}": every pool has this rule`);
  }
  if (types.includes('integer')) return readInteger(option, text, schema as IntegerSchema);
  if (types.includes('boolean')) {
    if (YES.has(text)) return true;
    if (NO.has(text)) return false;
    throw new UsageError(`${option} is "${short(text)}"; say yes or no`);
  }
  if (isTime(rule) && !isMoment(text, schema))
    throw new UsageError(
      `${option} is "${short(text)}"; say a time with its zone, such as 2026-03-01T18:00:00Z or 2026-03-01T19:00:00+01:00`,
    );
  const choice = choiceOf(schema);
  if (choice !== undefined && !choice.includes(text))
    throw new UsageError(`${option} is "${short(text)}"; it is one of ${choice.join(', ')}`);
  return text;
}

function readInteger(option: string, text: string, schema: IntegerSchema): number {
  const { minimum = 0, maximum = Number.MAX_SAFE_INTEGER } = schema;
  const value = /^\d{1,16}$/.test(text) ? Number(text) : -1;
  if (value >= minimum && value <= maximum) return value;
  const most = maximum === Number.MAX_SAFE_INTEGER ? '' : ` to ${maximum}`;
  throw new UsageError(`${option} is "${short(text)}"; it must be a whole number from ${minimum}${most}`);
}

function choiceOf(schema: Schema): string[] | undefined {
  const { pattern = '' } = schema as { pattern?: string };
  return CHOICE.exec(pattern)?.[1]?.split('|');
}

function isMoment(text: string, schema: Schema): boolean {
  const { pattern = '' } = schema as { pattern?: string };
  return new RegExp(pattern).test(text) && !Number.isNaN(Date.parse(text));
}
