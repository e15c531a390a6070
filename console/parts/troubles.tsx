// What goes on and waits for a person: a target that workers leave alone, a secret that a server misses, issues that are open. Each
// says what is known of its cause, and leads to the page where it can be mended.

import { get } from '../lib/api.ts';
import { count, plural } from '../lib/format.ts';
import { endpointPlace, issuePlace, poolPlace } from '../lib/links.ts';
import type { Page } from '../lib/lists.ts';
import { useLive } from '../lib/live.ts';
import { useLoad } from '../lib/load.ts';
import { Link } from '../lib/router.tsx';
import type { LiveSample, PoolView, Trouble } from '../lib/shapes.ts';
import { FailingHandler } from './failing_handler.tsx';
import { Card, Moment } from './small.tsx';
import { Alarm, Fault } from './states.tsx';

/** Each as the workers' metrics call it: the bridge, and what carries orders. */
const LEDGER: ReadonlySet<string> = new Set(['ledger', 'DB2']);
const HANDLER = /^handler (.+)$/;
const COMMIT_FUNCTION = /^ledger (.+)$/;
const ENDPOINT = /^endpoint (.+)$/;

/** As many as an alarm names. */
const FEW = 5;
/** The most that the API gives at once. */
const POOLS = 1_000;

/** Workers tell of a hook by its host alone, and leave alone one address of it: pools with another address there go on. */
const hostOf = (url: string | null): string | undefined =>
  url !== null && URL.canParse(url) ? new URL(url).host : undefined;

const hooksOf = (pool: PoolView): (string | undefined)[] => [
  hostOf(pool.validation_webhook_url),
  hostOf(pool.commit_webhook_url),
];

const because = (why: string | null): string => (why === null ? '' : `: ${why}`);

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

const hintOf = (why: string | null): string =>
  HINTS.find(([pattern]) => pattern.test(why ?? ''))?.[1] ?? ANY_HINT;

const GOES_ON =
  'Claims wait and lose no attempt. Workers try again by themselves, every 15 seconds or sooner, and there is nothing to replay.';

/** Which pools call the host is asked only while a hook is down. */
function PoolsOf({ host }: { host: string }) {
  const { value } = useLoad(`pools of ${host}`, () =>
    get<Page<PoolView>>('/admin/pools', { limit: String(POOLS) }),
  );
  const pools = (value?.items ?? []).filter((pool) => hooksOf(pool).includes(host));
  if (pools.length === 0) return null;
  return (
    <>
      {' '}
      Pools that call this host:{' '}
      {pools.slice(0, FEW).map(({ pool_id }, index) => (
        <>
          {index > 0 && ', '}
          <Link to={poolPlace(pool_id)}>{pool_id}</Link>
        </>
      ))}
      {pools.length > FEW && ` and ${plural(pools.length - FEW, 'other pool')}`}.
    </>
  );
}

function LeftAlone({ trouble: { subject, why } }: { trouble: Trouble }) {
  const handler = HANDLER.exec(subject)?.[1];
  const commit = COMMIT_FUNCTION.exec(subject)?.[1];
  if (handler !== undefined)
    return (
      <>
        <strong>The handler {handler} fails event after event.</strong>{' '}
        <FailingHandler handler={handler} />
      </>
    );
  if (commit !== undefined)
    return (
      <>
        <strong>
          The commit function {commit} cannot be called{because(why)}.
        </strong>{' '}
        {GOES_ON}
      </>
    );
  if (LEDGER.has(subject))
    return (
      <>
        <strong>Workers do not reach the ledger{because(why)}.</strong> This server does: look at the address
        and the role that the workers have. {GOES_ON}
      </>
    );
  if (subject === 'Stripe')
    return (
      <>
        <strong>Workers do not reach Stripe.</strong> Checkouts that are to be closed and refunds wait;
        workers try again by themselves.
      </>
    );
  return (
    <>
      <strong>
        A hook at {subject} cannot be used{because(why)}.
      </strong>{' '}
      {GOES_ON}
      <PoolsOf host={subject} />
    </>
  );
}

function MissingSecret({ trouble: { subject, why } }: { trouble: Trouble }) {
  const name = ENDPOINT.exec(subject)?.[1];
  return (
    <>
      <strong>
        Deliveries to the {subject} are refused{because(why)}
      </strong>
      {why === null && '.'} {name !== undefined && <Link to={endpointPlace(name)}>What to do about it</Link>}
    </>
  );
}

/** The alarm above the page tells of a ledger that is down. */
export const shownOf = ({ troubles, db2 }: LiveSample): readonly Trouble[] =>
  (troubles ?? []).filter(({ kind, subject }) => kind === 'secret' || db2.ok || !LEDGER.has(subject));

export function Troubles({ latest }: { latest: LiveSample | undefined }) {
  if (latest === undefined) return null;
  return (
    <>
      {shownOf(latest).map((trouble) => (
        <Alarm key={`${trouble.kind} ${trouble.subject}`} tone="bad">
          {trouble.kind === 'secret' ? <MissingSecret trouble={trouble} /> : <LeftAlone trouble={trouble} />}
        </Alarm>
      ))}
    </>
  );
}

/** On the page of a pool, of the hooks that it calls: what is wrong, and what to do. */
export function HookTroubles({ pool }: { pool: PoolView }) {
  const troubles = useLive().latest?.troubles ?? [];
  const hosts = hooksOf(pool);
  return (
    <>
      {troubles
        .filter(({ kind, subject }) => kind === 'breaker' && hosts.includes(subject))
        .map(({ subject, why, since }) => (
          <Fault key={subject} title={`A hook at ${subject} cannot be used${because(why)}.`}>
            <p>It may be the address that this pool calls, or another one at that host. {hintOf(why)}</p>
            <p>
              {GOES_ON} It has been so since <Moment at={since} />.
            </p>
          </Fault>
        ))}
    </>
  );
}

/** What `lane` is, by the kind of an issue. */
const LANES: Readonly<Record<string, string>> = {
  claim: 'pool',
  delivery: 'endpoint',
  event: 'handler',
  question: 'tenant',
};

/** As the last sample has them. The page of an issue says why. */
export function OpenIssues({ issues }: { issues: LiveSample['issues'] | undefined }) {
  if (!issues || issues.open === 0) return null;
  return (
    <Card title="Open issues">
      <ul class="marks">
        {issues.newest.map(({ id, kind, lane, type, failures, seen_ms }) => (
          <li key={id}>
            <Moment at={new Date(seen_ms).toISOString()} />
            <span class="chip chip-bad">{count(failures)}</span>
            <span class="marks-text">
              <Link to={issuePlace(id)}>{type}</Link>{' '}
              <span class="muted">{lane === null ? kind : `${LANES[kind] ?? kind} ${lane}`}</span>
            </span>
          </li>
        ))}
      </ul>
      {issues.open > issues.newest.length && (
        <p>
          <Link to="/issues?state=open">All {plural(issues.open, 'open issue')}</Link>
        </p>
      )}
    </Card>
  );
}
