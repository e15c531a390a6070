import { useState } from 'preact/hooks';
import { get } from '../lib/api.ts';
import { count, rate } from '../lib/format.ts';
import { useLive } from '../lib/live.ts';
import { type Page, usePages } from '../lib/load.ts';
import { go, Link } from '../lib/router.tsx';
import type { PoolLevel, PoolView } from '../lib/shapes.ts';
import { Icon } from '../parts/icons.tsx';
import { LevelBar } from '../parts/levels.tsx';
import { Chip, Given, Moment, PageHead } from '../parts/small.tsx';
import { Await, Empty } from '../parts/states.tsx';
import { type Column, More, Table } from '../parts/table.tsx';
import { NewPool } from './new_pool.tsx';

function columnsFor(levelOf: (pool: PoolView) => PoolLevel): Column<PoolView>[] {
  return [
    {
      head: 'Pool',
      place: 'title',
      cell: ({ pool_id }) => (
        <Link class="row-link" to={`/pools/${encodeURIComponent(pool_id)}`}>
          <Given value={pool_id} />
        </Link>
      ),
    },
    { head: 'State', place: 'corner', cell: ({ status }) => <Chip state={status} /> },
    { head: 'Remaining', place: 'wide', cell: (pool) => <LevelBar level={levelOf(pool)} /> },
    { head: 'Left', isNumber: true, cell: (pool) => count(levelOf(pool).available) },
    { head: 'Capacity', isNumber: true, cell: (pool) => count(levelOf(pool).capacity) },
    { head: 'Per user', isNumber: true, cell: ({ max_per_user }) => max_per_user ?? 'any' },
    {
      head: 'Throttle',
      isNumber: true,
      cell: ({ commit_rate_per_sec }) =>
        commit_rate_per_sec === null ? 'none' : `${rate(commit_rate_per_sec)}/s`,
    },
    { head: 'Opens', cell: ({ opens_at }) => (opens_at ? <Moment at={opens_at} /> : 'always') },
  ];
}

export function Pools() {
  const pages = usePages('pools', (after) => get<Page<PoolView>>('/admin/pools', { after }));
  const { latest } = useLive();
  const [isNew, setNew] = useState(false);
  const levels = new Map((latest?.pools ?? []).map((level) => [level.pool_id, level]));
  const columns = columnsFor((pool) => levels.get(pool.pool_id) ?? pool);
  return (
    <>
      <PageHead title="Pools" about="Sets of interchangeable slots for sale.">
        <button type="button" class="button button-main" onClick={() => setNew(true)}>
          <Icon name="plus" /> New pool
        </button>
      </PageHead>
      <Await loaded={pages}>
        {(pools) =>
          pools.length === 0 ? (
            <Empty title="No pool yet">
              Create one, and its slots are on sale at once or from a time you choose.{' '}
              <code>npx sluice demo</code> makes one and sells it to 5,000 buyers, to look at.
            </Empty>
          ) : (
            <>
              <Table caption="Pools" rows={pools} columns={columns} keyOf={(pool) => pool.pool_id} />
              <More pages={pages} />
            </>
          )
        }
      </Await>
      {isNew && (
        <NewPool
          onClose={() => setNew(false)}
          onCreated={(pool) => go(`/pools/${encodeURIComponent(pool.pool_id)}`)}
        />
      )}
    </>
  );
}
