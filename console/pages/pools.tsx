import { useState } from 'preact/hooks';
import { get } from '../lib/api.ts';
import { count, rate } from '../lib/format.ts';
import { type Page, useSearch } from '../lib/lists.ts';
import { useLive } from '../lib/live.ts';
import { go } from '../lib/router.tsx';
import type { PoolLevel, PoolView } from '../lib/shapes.ts';
import { LevelBar } from '../parts/levels.tsx';
import { List } from '../parts/list.tsx';
import { May } from '../parts/may.tsx';
import { Chip, Given, Moment, NewButton, PageHead } from '../parts/small.tsx';
import { Empty } from '../parts/states.tsx';
import { type Column, linkColumn } from '../parts/table.tsx';
import { NewPool } from './new_pool.tsx';

function columnsFor(levelOf: (pool: PoolView) => PoolLevel, hasCells: boolean): Column<PoolView>[] {
  return [
    linkColumn(
      'Pool',
      ({ pool_id }) => `/pools/${encodeURIComponent(pool_id)}`,
      ({ pool_id }) => <Given value={pool_id} />,
    ),
    ...(hasCells ? [{ head: 'Cell', cell: ({ cell }: PoolView) => cell ?? '' }] : []),
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
  const pages = useSearch('pools', (query) => get<Page<PoolView>>('/admin/pools', query));
  const { latest } = useLive();
  const [isNew, setNew] = useState(false);
  const levels = new Map((latest?.pools ?? []).map((level) => [level.pool_id, level]));
  const columns = columnsFor((pool) => levels.get(pool.pool_id) ?? pool, latest?.cells !== undefined);
  return (
    <>
      <PageHead title="Pools" about="Sets of interchangeable slots for sale.">
        <May do="POST /admin/pools">
          <NewButton onClick={() => setNew(true)}>New pool</NewButton>
        </May>
      </PageHead>
      <List
        caption="Pools"
        whole={{ list: 'pools' }}
        pages={pages}
        columns={columns}
        keyOf={({ pool_id }) => pool_id}
      >
        <Empty title="No pool yet">
          Create one, and its slots are on sale at once or from a time you choose.{' '}
          <code>npx sluice demo</code> makes one and sells it to 5,000 buyers, to look at.
        </Empty>
      </List>
      {isNew && (
        <NewPool
          onClose={() => setNew(false)}
          onCreated={(pool) => go(`/pools/${encodeURIComponent(pool.pool_id)}`)}
        />
      )}
    </>
  );
}
