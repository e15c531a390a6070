import { count, duration, rate } from '../lib/format.ts';
import { useMemory } from '../lib/history.ts';
import { type Point, useLive } from '../lib/live.ts';
import { Link } from '../lib/router.tsx';
import type { PoolLevel } from '../lib/shapes.ts';
import { Flow } from '../parts/flow.tsx';
import { LevelBar } from '../parts/levels.tsx';
import { DashedLines } from '../parts/marks.tsx';
import { Card, PageHead } from '../parts/small.tsx';
import { Await, Empty, Skeleton } from '../parts/states.tsx';
import { Tile } from '../parts/tiles.tsx';
import { OpenIssues } from '../parts/troubles.tsx';

/** What the charts of this page show; all other times are under History. */
const RECENT = { range: '15m' };

const LEDGER_DOWN = 'the ledger does not answer';

function deadLetters(point: Point): number | null {
  const { dlq_depth, webhooks_dead_letters } = point;
  return dlq_depth === null && webhooks_dead_letters === null
    ? null
    : (dlq_depth ?? 0) + (webhooks_dead_letters ?? 0);
}

/** While the ledger is shut nothing runs into it: what the counters still show is the end of what was on its way. */
const drained = (point: Point): number | null => (point.db2_ok ? point.drain_per_sec : null);

function etaText(point: Point | undefined): string {
  if (point === undefined || point.queue_depth === null) return 'not known';
  if (point.queue_depth === 0) return 'the queue is empty';
  if (!point.db2_ok) return `nothing is drained: ${LEDGER_DOWN}`;
  if (point.eta_sec !== null) return `empty in ${duration(point.eta_sec)}`;
  if (!point.drain_per_sec) return 'nothing is drained';
  return point.drain_per_sec < (point.claims_per_sec ?? 0) ? 'the queue grows' : 'keeps pace with the claims';
}

/** `now` is live; the lines are what the databases remember. */
function Charts({ now }: { now: Point | undefined }) {
  const loaded = useMemory(RECENT);
  const orLedgerDown = (about: string): string => (now?.db2_ok === false ? LEDGER_DOWN : about);
  return (
    <Await loaded={loaded}>
      {(memory) => {
        const shared = { points: memory.points, frame: memory, span: 'the last 15 minutes' };
        const intake = { ...shared, source: 'db1', tint: 'water' } as const;
        const ledger = { ...shared, source: 'db2', tint: 'stone' } as const;
        const of = (read: (point: Point) => number | null) => ({ read, now: now && read(now) });
        return (
          <>
            <div class="tiles">
              <Tile
                {...intake}
                title="Claims per second"
                {...of((point) => point.claims_per_sec)}
                show={rate}
              >
                {count(now?.claims_total)} taken in all
              </Tile>
              <Tile {...intake} title="Queue depth" {...of((point) => point.queue_depth)} show={count}>
                {now?.queue_depth ? `oldest waits for ${duration(now.oldest_msg_sec)}` : 'nothing waits'}
              </Tile>
              <Tile {...ledger} title="Drained per second" {...of(drained)} show={rate} tint="water">
                {etaText(now)}
              </Tile>
              <Tile
                {...ledger}
                title="Ledger commits per second"
                {...of((point) => point.commits_per_sec)}
                show={rate}
              >
                {orLedgerDown(`${count(now?.ledger_total)} tickets`)}
              </Tile>
              <Tile
                {...ledger}
                title="Webhook backlog"
                {...of((point) => point.webhooks_backlog)}
                show={count}
              >
                {orLedgerDown(
                  `${rate(now?.webhooks_per_sec)} events/s · ${rate(now?.calls_per_sec)} calls/s`,
                )}
              </Tile>
              <Tile {...intake} title="Dead letters" {...of(deadLetters)} show={count} tint="alarm">
                <Link to="/dead-letters">
                  {count(now?.dlq_depth)} of claims, {count(now?.webhooks_dead_letters)} of webhooks
                </Link>
              </Tile>
            </div>
            <DashedLines marks={memory.marks} />
          </>
        );
      }}
    </Await>
  );
}

function Levels({ pools }: { pools: readonly PoolLevel[] | null }) {
  if (pools === null) return <p class="muted">Not known while the intake does not answer.</p>;
  if (pools.length === 0)
    return (
      <Empty title="No pool yet">
        A pool is a set of slots for sale. <Link to="/pools">Create the first one</Link>, or see a burst of
        5,000 buyers here: run <code>npx sluice demo</code>.
      </Empty>
    );
  return (
    <ul class="levels">
      {pools.map((level) => (
        <li key={level.pool_id}>
          <Link to={`/pools/${encodeURIComponent(level.pool_id)}`}>{level.pool_id}</Link>
          <span class="levels-left">
            <strong>{count(level.available)}</strong> of {count(level.capacity)} left
          </span>
          <LevelBar level={level} />
        </li>
      ))}
    </ul>
  );
}

export function Overview() {
  const { latest, points } = useLive();
  return (
    <>
      <PageHead title="Overview">
        <Link class="button" to="/history?range=1h">
          Longer times
        </Link>
      </PageHead>
      <Flow point={points.at(-1)} sample={latest} />
      {latest?.claims_total === 0 && (
        <Card title="Nothing has happened yet">
          <p>
            To see a burst absorbed and drained on this page, run <code>npx sluice demo</code>: 5,000 buyers
            for 1,000 seats, and a stream of payments.
          </p>
        </Card>
      )}
      <OpenIssues issues={latest?.issues} />
      <Charts now={points.at(-1)} />
      <Card title="Pools">{latest ? <Levels pools={latest.pools} /> : <Skeleton rows={3} />}</Card>
    </>
  );
}
