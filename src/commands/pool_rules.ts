// The rules of a pool as options of the command line, made of the schema that the server checks them with.

import { POOL_CHANGE_BODY } from '#core/console/pools.ts';
import type { Schema } from '#core/schema.ts';
import { UsageError } from './usage_error.ts';

export type Rules = Record<string, string | number | boolean | null>;

const NO_RULE = 'none';
const YES: ReadonlySet<string> = new Set(['yes', 'true']);
const NO: ReadonlySet<string> = new Set(['no', 'false']);

// Slots, the request id and the reason are no rules, and open and close are actions of their own.
const { add_slots: _, reason: __, is_active: ___, request_id: ____, ...RULES } = POOL_CHANGE_BODY.properties;

const MEANINGS: Readonly<Record<keyof typeof RULES, string>> = {
  opens_at: 'no claim before, such as 2026-03-01T18:00:00Z',
  closes_at: 'no claim from then on',
  max_per_user: 'slots a user may hold',
  hold_sec: 'a claim ends by itself after so long, unless it is a ticket',
  require_auth: 'yes: claims need a signed-in user',
  commit_rate_per_sec: 'at most so many tickets a second: the throttle',
  batch_size: 'for readers of your own: sluice work has its --batch',
  visibility_timeout_sec: 'lease of its messages, unless sluice work has a longer --lease',
  max_retries: 'at this many deliveries a message is a dead letter: N means N - 1 tries, 2 is the least',
  validation_webhook_url: 'asked before each commit',
  commit_rpc_name: 'function of the ledger that commits',
  commit_webhook_url: 'commits instead of the ledger',
};

const optionOf = (rule: string): string => rule.replaceAll('_', '-');

export const RULE_OPTIONS = Object.fromEntries(
  Object.keys(RULES).map((rule) => [optionOf(rule), { type: 'string' }]),
) as Record<string, { type: 'string' }>;

export function rulesHelp(): string {
  const lines = Object.entries(MEANINGS).map(([rule, meaning]) => {
    const option = `--${optionOf(rule)} ${placeholder(RULES[rule as keyof typeof RULES])}`;
    return option.length <= 23
      ? `  ${option.padEnd(24)}${meaning}`
      : `  ${option}\n${' '.repeat(26)}${meaning}`;
  });
  return lines.join('\n');
}

function placeholder(schema: Schema): string {
  const type = [schema.type].flat()[0];
  return type === 'integer' ? 'N' : type === 'boolean' ? 'yes|no' : 'TEXT';
}

/** Only the types are checked here; the server says what it thinks of the values. */
export function readRules(values: Record<string, unknown>): Rules {
  const rules: Rules = {};
  for (const [rule, schema] of Object.entries<Schema>(RULES)) {
    const text = values[optionOf(rule)];
    if (typeof text === 'string') rules[rule] = readValue(`--${optionOf(rule)}`, text, schema);
  }
  return rules;
}

function readValue(option: string, text: string, schema: Schema): Rules[string] {
  const types: readonly string[] = [schema.type].flat();
  if (text === NO_RULE) {
    if (types.includes('null')) return null;
    throw new UsageError(`${option} cannot be "${NO_RULE}"`);
  }
  if (types.includes('integer')) {
    if (/^\d{1,10}$/.test(text)) return Number(text);
    throw new UsageError(`${option} is "${text}"; it must be a number`);
  }
  if (types.includes('boolean')) {
    if (YES.has(text)) return true;
    if (NO.has(text)) return false;
    throw new UsageError(`${option} is "${text}"; say yes or no`);
  }
  return text;
}
