// What goes on and waits for a person, in words: a target that workers leave alone, or a secret that a server misses.

import { labelOfTarget } from '../../db1/supabase/functions/_shared/bridge/observe.ts';
import { targetsOf } from '../../db1/supabase/functions/_shared/bridge/targets.ts';
import { type At, isAfterHole, secondsOf } from './line.ts';
import type { LiveSample, PoolView, Trouble } from './shapes.ts';

/** Each as the workers' metrics call it: the bridge, and what carries orders. */
const LEDGER: ReadonlySet<string> = new Set(['ledger', 'DB2']);
const HANDLER = /^handler (.+)$/;
const COMMIT_FUNCTION = /^ledger (.+)$/;
const ENDPOINT = /^endpoint (.+)$/;

export interface Target {
  readonly what: 'hook' | 'handler' | 'function' | 'ledger' | 'Stripe' | 'secret';
  /** Of a hook its host, of a secret the endpoint that needs it. */
  readonly name: string;
}

export function targetOf({ kind, subject }: Trouble): Target {
  const named = (pattern: RegExp): string | undefined => pattern.exec(subject)?.[1];
  if (kind === 'secret') return { what: 'secret', name: named(ENDPOINT) ?? subject };
  const handler = named(HANDLER);
  if (handler !== undefined) return { what: 'handler', name: handler };
  const commit = named(COMMIT_FUNCTION);
  if (commit !== undefined) return { what: 'function', name: commit };
  if (LEDGER.has(subject)) return { what: 'ledger', name: subject };
  return { what: subject === 'Stripe' ? 'Stripe' : 'hook', name: subject };
}

const TITLES: Readonly<Record<Target['what'], (name: string) => string>> = {
  hook: (name) => `A hook at ${name} cannot be used`,
  handler: (name) => `The handler ${name} fails event after event`,
  function: (name) => `The commit function ${name} cannot be called`,
  ledger: () => 'Workers do not reach the ledger',
  Stripe: () => 'Workers do not reach Stripe',
  secret: (name) => `Deliveries to the endpoint ${name} are refused`,
};

/** Without its cause, which may change while it goes on. */
export function titleOf(trouble: Trouble): string {
  const { what, name } = targetOf(trouble);
  return TITLES[what](name);
}

/** With what is known of its cause. */
export function sentenceOf(trouble: Trouble): string {
  const cause = trouble.why === null ? '' : `: ${trouble.why.replace(/\.$/, '')}`;
  return `${titleOf(trouble)}${cause}.`;
}

/** The alarm above the page tells of a ledger that is down. */
export const shownOf = ({ troubles, db2 }: LiveSample): readonly Trouble[] =>
  (troubles ?? []).filter((trouble) => db2.ok || targetOf(trouble).what !== 'ledger');

/** What is known to help, by what Node says of a connection that it could not make. */
const HINTS: readonly (readonly [RegExp, string])[] = [
  [
    /certificate|altname|self-signed/i,
    'Its certificate is one that workers do not trust: expired, self-signed or of another name. Renew it at that host.',
  ],
  [/ENOTFOUND|EAI_AGAIN/, 'Its name has no address: correct the address of the hook, or the DNS.'],
  [/ECONNREFUSED/, 'Nothing listens there: start the service, or correct the address of the hook.'],
  [
    /private or special address|local name/,
    'Hooks may call public addresses alone, unless the owner allows the host: npx sluice hosts allow.',
  ],
  [
    /^status \d/,
    'The service answers, and says that it cannot serve: look at its own log. Claims are not refused meanwhile.',
  ],
];
const ANY_HINT = 'Mend the service at that host, or correct the address of the hook.';

/** What to do about a hook. */
export const hintOf = (why: string | null): string =>
  HINTS.find(([pattern]) => pattern.test(why ?? ''))?.[1] ?? ANY_HINT;

/** The longest pause of a worker between two tries: LONGEST_PAUSE_MS of db1/supabase/functions/_shared/breaker.ts. */
export const LONGEST_PAUSE_SEC = 15;

export const GOES_ON = `Claims wait and lose no attempt. Workers try again by themselves, every ${LONGEST_PAUSE_SEC} seconds or sooner, and there is nothing to replay.`;

/** Two of the longest pauses: a try that began during the outage may fail after it, and news of a success comes 2 to 4 s late. */
const TRIED_AGAIN_SEC = 2 * LONGEST_PAUSE_SEC;
const SAMPLE_EVERY_SEC = 2;

type LedgerPoint = At & { readonly db2_ok: boolean };

/** For how long the ledger has answered this server, as far as these show. A time without samples shows nothing. */
function answersForSec(points: readonly LedgerPoint[]): number {
  let since: LedgerPoint | undefined;
  let before: LedgerPoint | undefined;
  for (const point of points) {
    if (!point.db2_ok) since = undefined;
    else if (since === undefined || isAfterHole(before, point, SAMPLE_EVERY_SEC)) since = point;
    before = point;
  }
  return since === undefined || before === undefined ? 0 : secondsOf(before) - secondsOf(since);
}

/** Of workers that since then do not reach a ledger that answers this server. Directly after an outage they only wait for their next try. */
export function ledgerHint(points: readonly LedgerPoint[], since: string): string {
  const meanwhile = points.filter((point) => 1_000 * secondsOf(point) >= Date.parse(since));
  return answersForSec(meanwhile) > TRIED_AGAIN_SEC
    ? `This server has reached the ledger for more than ${TRIED_AGAIN_SEC} seconds, and workers still do not: look at the address and the role that the workers have. ${GOES_ON}`
    : `The ledger answers this server. Workers try it again within ${LONGEST_PAUSE_SEC} seconds. Claims wait and lose no attempt, and there is nothing to replay.`;
}

/** A pool waits for all that its messages need: while one of these is left alone, workers take none of its messages. */
export const isNeededBy = (pool: PoolView, { kind, subject }: Trouble): boolean =>
  kind === 'breaker' && targetsOf(pool).map(labelOfTarget).includes(subject);

const HOOKS = { validation_webhook_url: 'validation hook', commit_webhook_url: 'commit hook' } as const;

export interface HookAt {
  /** The setting of the pool. */
  readonly field: keyof typeof HOOKS;
  /** What people call it. */
  readonly name: string;
  readonly url: string;
}

/** The hooks of a pool at a host: workers tell of a hook by its host alone, because the rest may hold a secret. */
export function hooksAt(host: string, pool: PoolView): HookAt[] {
  return (Object.keys(HOOKS) as HookAt['field'][]).flatMap((field) => {
    const url = pool[field];
    return url !== null && labelOfTarget(url) === host ? [{ field, name: HOOKS[field], url }] : [];
  });
}

/** Workers leave alone one address: where pools call several at that host, it may be any of them. */
export const hasSeveral = (host: string, pools: readonly PoolView[]): boolean =>
  new Set(pools.flatMap((pool) => hooksAt(host, pool)).map(({ url }) => url)).size > 1;
