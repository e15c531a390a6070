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
  value: string;
  about: ComponentChildren;
  points: readonly Point[];
  read(point: Point): number | null;
  source: 'db1_ok' | 'db2_ok';
  tint?: Tint;
}

function Tile({ title, value, about, points, read, source, tint = 'water' }: TileProps) {
  return (
    <section class="tile">
      <h2>{title}</h2>
      <p class="tile-value">{value}</p>
      <p class="tile-about">{about}</p>
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
  return (
    <div class="tiles">
      <Tile
        title="Claims per second"
        value={rate(now?.claims_per_sec)}
        about={`${count(now?.claims_total)} taken in all`}
        points={points}
        read={(point) => point.claims_per_sec}
        source="db1_ok"
      />
      <Tile
        title="Queue depth"
        value={count(now?.queue_depth)}
        about={now?.queue_depth ? `oldest waits for ${duration(now.oldest_msg_sec)}` : 'nothing waits'}
        points={points}
        read={(point) => point.queue_depth}
        source="db1_ok"
      />
      <Tile
        title="Drained per second"
        value={rate(now && drained(now))}
        about={etaText(now)}
        points={points}
        read={drained}
        source="db2_ok"
      />
      <Tile
        title="Ledger commits per second"
        value={rate(now?.commits_per_sec)}
        about={now?.db2_ok === false ? LEDGER_DOWN : `${count(now?.ledger_total)} tickets`}
        points={points}
        read={(point) => point.commits_per_sec}
        source="db2_ok"
        tint="stone"
      />
      <Tile
        title="Webhook backlog"
        value={count(now?.webhooks_backlog)}
        about={
          now?.db2_ok === false
            ? LEDGER_DOWN
            : `${rate(now?.webhooks_per_sec)} events/s · ${rate(now?.calls_per_sec)} calls/s`
        }
        points={points}
        read={(point) => point.webhooks_backlog}
        source="db2_ok"
        tint="stone"
      />
      <Tile
        title="Dead letters"
        value={count(now && deadLetters(now))}
        about={
          <Link to="/dead-letters">
            {count(now?.dlq_depth)} of claims, {count(now?.webhooks_dead_letters)} of webhooks
          </Link>
        }
        points={points}
        read={deadLetters}
        source="db1_ok"
        tint="alarm"
      />
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
