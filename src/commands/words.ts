// What can follow each command on the command line: its actions, and the options that each of them takes. For completion;
// tests hold it against the parsers and the help pages.

import { RULE_OPTIONS } from './pool_rules.ts';

/** A tree as deep as the actions are. Options are without their dashes. */
export interface Words {
  readonly options?: readonly string[];
  readonly actions?: Readonly<Record<string, Words>>;
}

const JSON_ONLY: Words = { options: ['json'] };
const NOTHING: Words = {};
const EXPLAINED = ['reason', 'json'];

const RULES = Object.keys(RULE_OPTIONS);
const DEAD_LETTER_FILTER = ['pool', 'reason', 'older-than', 'limit'];
const DEAD_LETTER_CHANGE: Words = {
  options: [...DEAD_LETTER_FILTER, 'dry-run', 'yes', 'reason-text', 'json'],
};
const EVENT_FILTER = ['webhook-id', 'event-id', 'provider', 'status', 'since', 'until', 'limit'];
const EVENT_CHANGE = [...EVENT_FILTER, 'dry-run', 'yes', ...EXPLAINED];
const ENDPOINT_SETTINGS = [
  'secret-name',
  'verify-token-name',
  'public-url',
  'scheme-file',
  'max-attempts',
  'backoff-cap-sec',
  'lease-sec',
  'max-body-bytes',
  'keep-payload-days',
  'mode',
  ...EXPLAINED,
];

export const WORDS: Readonly<Record<string, Words>> = {
  dev: NOTHING,
  serve: NOTHING,
  work: { options: ['workers', 'batch', 'lease', 'once', 'json'] },
  migrate: { options: ['seed'] },
  status: { options: ['watch', 'json'] },
  doctor: JSON_ONLY,
  pools: {
    actions: {
      list: JSON_ONLY,
      show: JSON_ONLY,
      create: { options: ['slots', 'closed', 'request-id', ...RULES, ...EXPLAINED] },
      open: { options: EXPLAINED },
      close: { options: ['yes', ...EXPLAINED] },
      set: { options: [...RULES, ...EXPLAINED] },
      'add-slots': { options: ['request-id', ...EXPLAINED] },
    },
  },
  claims: {
    actions: {
      find: { options: ['user', 'claim', 'request', 'pool', 'state', 'limit', 'after', 'json'] },
      show: JSON_ONLY,
      release: { options: ['yes', ...EXPLAINED] },
    },
  },
  dlq: {
    actions: {
      list: { options: [...DEAD_LETTER_FILTER, 'json'] },
      show: JSON_ONLY,
      replay: DEAD_LETTER_CHANGE,
      discard: DEAD_LETTER_CHANGE,
    },
  },
  webhooks: {
    actions: {
      endpoints: {
        actions: {
          list: JSON_ONLY,
          add: { options: ['provider', ...ENDPOINT_SETTINGS] },
          rotate: { options: ['secret-name', 'only', ...EXPLAINED] },
          change: { options: ENDPOINT_SETTINGS },
          disable: { options: EXPLAINED },
          enable: { options: EXPLAINED },
        },
      },
      handlers: { actions: { list: JSON_ONLY, remove: { options: EXPLAINED } } },
      list: { options: [...EVENT_FILTER, 'json'] },
      show: JSON_ONLY,
      replay: { options: [...EVENT_CHANGE, 'idempotency-key'] },
      skip: { options: EVENT_CHANGE },
      prune: { options: ['days', 'yes', 'json'] },
      send: { options: ['to', 'secret', 'user', 'amount', 'event-id', 'count', 'json'] },
      verify: { options: ['secret', 'body-file', 'header', 'url', 'now', 'scheme', 'json'] },
    },
  },
  calls: {
    actions: {
      sites: {
        actions: {
          list: JSON_ONLY,
          add: { options: ['secret-name', 'unsigned', 'kind', ...EXPLAINED] },
          rotate: { options: ['secret-name', 'only', ...EXPLAINED] },
          disable: { options: EXPLAINED },
          enable: { options: EXPLAINED },
        },
      },
      list: { options: ['site', 'event-id', 'kind', 'before', 'limit', 'json'] },
      show: JSON_ONLY,
      send: { options: ['to', 'site', 'secret', 'kind', 'event-id', 'payload', 'count', 'json'] },
    },
  },
  reconcile: { options: ['fix', 'json'] },
  demo: { options: ['outage', 'buyers', 'seats', 'json'] },
  bench: {
    options: ['quick', 'json'],
    actions: { claims: NOTHING, bridge: NOTHING, webhooks: NOTHING, calls: NOTHING, console: NOTHING },
  },
  reset: NOTHING,
  completion: { actions: { bash: NOTHING, zsh: NOTHING, fish: NOTHING } },
};

export interface Place {
  /** The words that lead there, such as webhooks endpoints add. */
  readonly path: readonly string[];
  /** What can be typed there, dashes and all. */
  readonly offered: readonly string[];
}

/** Every place of the tree, commands first. Options of a command are also those of its actions. */
export function placesOf(words: Readonly<Record<string, Words>>): Place[] {
  const walk = (
    path: readonly string[],
    { options = [], actions = {} }: Words,
    above: readonly string[],
  ): Place[] => {
    const here = [...above, ...options];
    const offered = [...Object.keys(actions), ...here.map((option) => `--${option}`), '--help'];
    return [
      { path, offered },
      ...Object.entries(actions).flatMap(([action, below]) => walk([...path, action], below, here)),
    ];
  };
  return Object.entries(words).flatMap(([command, tree]) => walk([command], tree, []));
}
