// What goes on and waits for a person: a target that workers leave alone, a secret that a server misses, issues that are open. Each
// says what is known of its cause, and leads to the page where it can be mended.

import type { ComponentChildren } from 'preact';
import { get } from '../lib/api.ts';
import { count, plural } from '../lib/format.ts';
import { endpointPlace, issuePlace, poolPlace } from '../lib/links.ts';
import type { Page } from '../lib/lists.ts';
import { useLive } from '../lib/live.ts';
import { useLoad } from '../lib/load.ts';
import { Link } from '../lib/router.tsx';
import type { ClaimRecord, LiveSample, PoolView, Trouble } from '../lib/shapes.ts';
import {
  GOES_ON,
  hasSeveral,
  hintOf,
  hooksAt,
  isNeededBy,
  ledgerHint,
  sentenceOf,
  shownOf,
  targetOf,
  titleOf,
} from '../lib/troubles.ts';
import { FailingHandler } from './failing_handler.tsx';
import { Card, Chip, Moment } from './small.tsx';
import { Alarm, Fault } from './states.tsx';

/** As many as an alarm names. */
const FEW = 5;
/** The most that the API gives at once. */
const POOLS = 1_000;

/** Which pools call a host is asked only while a hook is down. */
function usePools(host: string): readonly PoolView[] {
  const { value } = useLoad(`pools of ${host}`, () =>
    get<Page<PoolView>>('/admin/pools', { limit: String(POOLS) }),
  );
  return (value?.items ?? []).filter((pool) => hooksAt(host, pool).length > 0);
}

/** Of the pool, as the last sample has it; undefined where that does not know. */
function useWaiting(): (pool: string) => string | undefined {
  const { latest } = useLive();
  return (pool) => {
    const waiting = latest?.pools?.find(({ pool_id }) => pool_id === pool)?.waiting;
    return waiting === undefined || waiting === null ? undefined : `${plural(waiting, 'claim')} waiting`;
  };
}

function PoolsOf({ host }: { host: string }) {
  const pools = usePools(host);
  const waitingIn = useWaiting();
  if (pools.length === 0) return null;
  return (
    <>
      {' '}
      Pools that call this host:{' '}
      {pools.slice(0, FEW).map(({ pool_id }, index) => (
        <>
          {index > 0 && ', '}
          <Link to={poolPlace(pool_id)}>{pool_id}</Link>
          {waitingIn(pool_id) && ` (${waitingIn(pool_id)})`}
        </>
      ))}
      {pools.length > FEW && ` and ${plural(pools.length - FEW, 'other pool')}`}.
    </>
  );
}

function LedgerHint({ since }: { since: string }) {
  return <>{ledgerHint(useLive().points, since)}</>;
}

/** What it means, what to do, and where. */
function Remedy({ trouble }: { trouble: Trouble }) {
  const { what, name } = targetOf(trouble);
  switch (what) {
    case 'handler':
      return <FailingHandler handler={name} />;
    case 'function':
      return <>{GOES_ON}</>;
    case 'ledger':
      return <LedgerHint since={trouble.since} />;
    case 'Stripe':
      return <>Checkouts that are to be closed and refunds wait; workers try again by themselves.</>;
    case 'secret':
      return <Link to={endpointPlace(name)}>What to do about it</Link>;
    case 'hook':
      return (
        <>
          {hintOf(trouble.why)} {GOES_ON}
          <PoolsOf host={name} />
        </>
      );
  }
}

function TroubleText({ trouble }: { trouble: Trouble }) {
  return (
    <>
      <strong>{sentenceOf(trouble)}</strong> Since <Moment at={trouble.since} />. <Remedy trouble={trouble} />
    </>
  );
}

const keyOf = ({ kind, subject }: Trouble): string => `${kind} ${subject}`;

/** On the overview. */
export function Troubles({ latest }: { latest: LiveSample | undefined }) {
  if (latest === undefined) return null;
  return (
    <>
      {shownOf(latest).map((trouble) => (
        <Alarm key={keyOf(trouble)} tone="bad">
          <TroubleText trouble={trouble} />
        </Alarm>
      ))}
    </>
  );
}

/** For a reader who does not see the menu's number. */
export function troublesSaid(latest: LiveSample | undefined): string[] {
  const troubles = latest === undefined ? [] : shownOf(latest);
  const more = troubles.length - FEW;
  return [
    ...troubles.slice(0, FEW).map((trouble) => `${titleOf(trouble)}.`),
    ...(more > 0 ? [`The overview has ${count(more)} more.`] : []),
  ];
}

/** On the page Health: what is open, or that nothing is. A database that is away keeps what it was told to itself. */
export function TroublePart() {
  const { latest } = useLive();
  const troubles = latest === undefined ? [] : shownOf(latest);
  const isKnown = latest?.db1.ok === true && latest.db2.ok;
  const status = troubles.length > 0 ? 'down' : isKnown ? 'ok' : 'not_known';
  return (
    <section class={`part part-${status} ${troubles.length > 0 ? 'part-wide' : ''}`}>
      <header>
        <h2>Hooks, handlers and secrets</h2>
        <Chip state={status} />
      </header>
      {troubles.map((trouble) => (
        <p key={keyOf(trouble)}>
          <TroubleText trouble={trouble} />
        </p>
      ))}
      {troubles.length === 0 && (
        <p>{isKnown ? 'all can be used' : 'not known until both databases answer'}</p>
      )}
    </section>
  );
}

/** To a setting on this page. */
function FieldLink({ field, children }: { field: string; children: ComponentChildren }) {
  const onClick = (event: MouseEvent): void => {
    event.preventDefault();
    const input = document.querySelector<HTMLInputElement>(`[name="${field}"]`);
    input?.scrollIntoView({ block: 'center' });
    input?.focus({ preventScroll: true });
  };
  return (
    <a href={`#${field}`} onClick={onClick}>
      {children}
    </a>
  );
}

function Hedge({ host }: { host: string }) {
  return hasSeveral(host, usePools(host)) ? (
    <>Pools call several addresses at that host, and it may be another one. </>
  ) : null;
}

/** On the page of a pool, of the hooks that it calls: what is wrong, and what to do. */
export function HookTroubles({ pool }: { pool: PoolView }) {
  const troubles = useLive().latest?.troubles ?? [];
  const waiting = useWaiting()(pool.pool_id);
  return (
    <>
      {troubles
        .filter((trouble) => targetOf(trouble).what === 'hook' && isNeededBy(pool, trouble))
        .map((trouble) => (
          <Fault key={keyOf(trouble)} title={sentenceOf(trouble)}>
            {hooksAt(trouble.subject, pool).map(({ field, name, url }) => (
              <p key={field}>
                The {name} of this pool is there: <code class="given">{url}</code>{' '}
                <FieldLink field={field}>Go to this setting</FieldLink>
              </p>
            ))}
            <p>
              <Hedge host={trouble.subject} />
              {hintOf(trouble.why)}
            </p>
            <p>
              {GOES_ON} {waiting && `Now: ${waiting}. `}It has been so since <Moment at={trouble.since} />.
            </p>
          </Fault>
        ))}
    </>
  );
}

const ON_ITS_WAY: ReadonlySet<string> = new Set(['queued', 'validated']);

function NeededBy({ pool, troubles }: { pool: string; troubles: readonly Trouble[] }) {
  const { value } = useLoad(`needs of ${pool}`, () => get<PoolView>(`/admin${poolPlace(pool)}`));
  return (
    <>
      {value &&
        troubles
          .filter((trouble) => isNeededBy(value, trouble))
          .map((trouble) => {
            const isHook = targetOf(trouble).what === 'hook';
            return (
              <Fault key={keyOf(trouble)} title={sentenceOf(trouble)}>
                <p>
                  Claims of this pool wait until workers can use it again, and lose no attempt.{' '}
                  {isHook && <Hedge host={trouble.subject} />}
                  <Link to={isHook ? poolPlace(pool) : '/'}>What to do about it</Link>
                </p>
              </Fault>
            );
          })}
    </>
  );
}

/** On the page of a claim that is on its way: why it waits. */
export function WaitsFor({ claim }: { claim: ClaimRecord }) {
  const { latest } = useLive();
  const troubles = latest === undefined ? [] : shownOf(latest);
  if (troubles.length === 0 || !ON_ITS_WAY.has(claim.state)) return null;
  return <NeededBy pool={claim.pool_id} troubles={troubles} />;
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
