// The least role for each command, where SLUICE_OPERATOR_KEY says who asks. Without that key a command that reaches a database
// runs as its owner: the address of a database opens everything anyway.

import type { LeastRole } from '#core/roles.ts';

/** Who looks the key up: the server, which has ADMIN_ROLES; this command, in a database; or none, where nothing is reached. */
export type Prover = 'server' | 'database' | 'none';

type Rule = readonly [least: LeastRole, prover: Prover];

const LOCAL: Rule = ['anyone', 'none'];
const SEES: Rule = ['viewer', 'database'];
const ACTS: Rule = ['operator', 'database'];
const RULES: Rule = ['admin', 'database'];

/** By the words of the command; an option that asks for more has a line of its own. */
export const COMMAND_ROLES: Readonly<Record<string, Rule>> = {
  'dev up': LOCAL,
  'dev stop': LOCAL,
  'dev start': LOCAL,
  serve: RULES,
  work: RULES,
  migrate: RULES,
  status: ['viewer', 'server'],
  doctor: SEES,
  'operators list': SEES,
  'operators add': RULES,
  'operators rotate': RULES,
  'operators revoke': RULES,
  'hosts list': SEES,
  'hosts allow': RULES,
  'hosts remove': RULES,
  'users export': RULES,
  'users erase': RULES,
  'retention list': SEES,
  'retention set': RULES,
  'pools list': ['viewer', 'server'],
  'pools show': ['viewer', 'server'],
  'pools create': ['operator', 'server'],
  'pools open': ['operator', 'server'],
  'pools close': ['operator', 'server'],
  'pools set': ['operator', 'server'],
  'pools describe': ['operator', 'server'],
  'pools add-slots': ['operator', 'server'],
  'pools move': ACTS,
  'cells list': SEES,
  'cells add': RULES,
  'cells drain': RULES,
  'claims find': ['viewer', 'server'],
  'claims show': ['viewer', 'server'],
  'claims release': ['operator', 'server'],
  'claims void': ['operator', 'server'],
  'orders list': ['viewer', 'server'],
  'orders show': ['viewer', 'server'],
  'refunds list': ['viewer', 'server'],
  'refunds show': ['viewer', 'server'],
  'refunds send': ['operator', 'server'],
  'refunds skip': ['operator', 'server'],
  'dlq list': ['viewer', 'server'],
  'dlq show': ['viewer', 'server'],
  'dlq replay': ['operator', 'server'],
  'dlq discard': ['operator', 'server'],
  'issues list': ['viewer', 'server'],
  'issues show': ['viewer', 'server'],
  'issues replay': ['operator', 'server'],
  'issues resolve': ['operator', 'server'],
  'webhooks endpoints list': SEES,
  'webhooks endpoints add': RULES,
  'webhooks endpoints change': RULES,
  'webhooks endpoints rotate': RULES,
  'webhooks endpoints disable': RULES,
  'webhooks endpoints enable': RULES,
  'webhooks secrets list': SEES,
  'webhooks secrets allow': RULES,
  'webhooks secrets remove': RULES,
  'webhooks handlers list': SEES,
  'webhooks handlers remove': RULES,
  'webhooks list': SEES,
  'webhooks payments list': SEES,
  'webhooks payments name': ACTS,
  'webhooks inbox list': SEES,
  'webhooks inbox replay': ACTS,
  'webhooks inbox discard': ACTS,
  'webhooks backfill': ACTS,
  'webhooks show': SEES,
  'webhooks replay': ACTS,
  'webhooks skip': ACTS,
  'webhooks prune': RULES,
  'webhooks send': LOCAL,
  'webhooks verify': LOCAL,
  'calls sites list': SEES,
  'calls sites add': RULES,
  'calls sites change': RULES,
  'calls sites rotate': RULES,
  'calls sites disable': RULES,
  'calls sites enable': RULES,
  'calls list': SEES,
  'calls show': SEES,
  'calls send': LOCAL,
  'audit heads': SEES,
  'audit check': SEES,
  reconcile: SEES,
  'reconcile --fix': ACTS,
  export: RULES,
  import: RULES,
  demo: ['operator', 'server'],
  bench: LOCAL,
  reset: LOCAL,
  completion: LOCAL,
};

/** The rule for these words and the options that were set. A command without one is not run. */
export function ruleOf(words: readonly string[], set: readonly string[]): Rule {
  const name = words.join(' ');
  const option = set.find((option) => COMMAND_ROLES[`${name} --${option}`] !== undefined);
  const rule = COMMAND_ROLES[option === undefined ? name : `${name} --${option}`];
  if (rule === undefined) throw new Error(`sluice ${name} has no role in COMMAND_ROLES`);
  return rule;
}
