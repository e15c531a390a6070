import type { ComponentChildren } from 'preact';
import { count, duration, rate } from '../lib/format.ts';
import { type Point, useLive } from '../lib/live.ts';
import { Link } from '../lib/router.tsx';
import type { PoolLevel } from '../lib/shapes.ts';
import { Chart, type Tint } from '../parts/chart.tsx';
import { Flow } from '../parts/flow.tsx';
import { LevelBar } from '../parts/levels.tsx';
import { Card, PageHead } from '../parts/small.tsx';
import { Empty, Skeleton } from '../parts/states.tsx';

interface TileProps {
  title: string;
  points: readonly Point[];
  read(point: Point): number | null;
  /** How the number is written. */
  show(value: number | null | undefined): string;
  source: 'db1_ok' | 'db2_ok';
  tint: Tint;
  /** A word about the number. */
  children: ComponentChildren;
}

function Tile({ title, points, read, show, source, tint, children }: TileProps) {
  const now = points.at(-1);
  const value = show(now && read(now));
  return (
    <section class="tile">
      <h2>{title}</h2>
      <p class="tile-value">{value}</p>
      <p class="tile-about">{children}</p>
      <Chart
        label={`${title}: ${value}, last five minutes`}
        points={points}
        read={read}
        source={source}
        tint={tint}
      />
    </section>
  );
}

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

function Charts({ points }: { points: readonly Point[] }) {
  const now = points.at(-1);
  const intake = { points, source: 'db1_ok', tint: 'water' } as const;
  const ledger = { points, source: 'db2_ok', tint: 'stone' } as const;
  const orLedgerDown = (about: string): string => (now?.db2_ok === false ? LEDGER_DOWN : about);
  return (
    <div class="tiles">
      <Tile {...intake} title="Claims per second" read={(point) => point.claims_per_sec} show={rate}>
        {count(now?.claims_total)} taken in all
      </Tile>
      <Tile {...intake} title="Queue depth" read={(point) => point.queue_depth} show={count}>
        {now?.queue_depth ? `oldest waits for ${duration(now.oldest_msg_sec)}` : 'nothing waits'}
      </Tile>
      <Tile {...ledger} title="Drained per second" read={drained} show={rate} tint="water">
        {etaText(now)}
      </Tile>
      <Tile {...ledger} title="Ledger commits per second" read={(point) => point.commits_per_sec} show={rate}>
        {orLedgerDown(`${count(now?.ledger_total)} tickets`)}
      </Tile>
      <Tile {...ledger} title="Webhook backlog" read={(point) => point.webhooks_backlog} show={count}>
        {orLedgerDown(`${rate(now?.webhooks_per_sec)} events/s · ${rate(now?.calls_per_sec)} calls/s`)}
      </Tile>
      <Tile {...intake} title="Dead letters" read={deadLetters} show={count} tint="alarm">
        <Link to="/dead-letters">
          {count(now?.dlq_depth)} of claims, {count(now?.webhooks_dead_letters)} of webhooks
        </Link>
      </Tile>
    </div>
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
      <PageHead title="Overview" />
      <Flow point={points.at(-1)} sample={latest} />
      {latest?.claims_total === 0 && (
        <Card title="Nothing has happened yet">
          <p>
            To see a burst absorbed and drained on this page, run <code>npx sluice demo</code>: 5,000 buyers
            for 1,000 seats, and a stream of payments.
          </p>
        </Card>
      )}
      <Charts points={points} />
      <Card title="Pools">{latest ? <Levels pools={latest.pools} /> : <Skeleton rows={3} />}</Card>
    </>
  );
}
