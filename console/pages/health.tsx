import { get } from '../lib/api.ts';
import { duration } from '../lib/format.ts';
import type { Page } from '../lib/lists.ts';
import { useLoad } from '../lib/load.ts';
import type { HealthCheck } from '../lib/shapes.ts';
import { Card, Chip, Facts, Moment, PageHead } from '../parts/small.tsx';
import { Await } from '../parts/states.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { TroublePart } from '../parts/troubles.tsx';

const text = (value: unknown): string | undefined =>
  value === null || value === undefined ? undefined : String(value);

function Part({ check }: { check: HealthCheck }) {
  const { detail } = check;
  const connections = Object.entries((detail.connections ?? {}) as Record<string, number>);
  return (
    <section class={`part part-${check.status}`}>
      <header>
        <h2>{check.name}</h2>
        <Chip state={check.status} />
      </header>
      <p>{check.summary}</p>
      <Facts
        facts={[
          [
            'Clock difference',
            detail.clock_skew_ms === undefined ? undefined : `${text(detail.clock_skew_ms)} ms`,
          ],
          ...(typeof detail.connections === 'object' && connections.length > 0
            ? ([
                [
                  'Connected',
                  connections.map(([name, number]) => <div key={name}>{`${name} × ${number}`}</div>),
                ],
              ] as const)
            : []),
        ]}
      />
    </section>
  );
}

const JOB_COLUMNS: Column<HealthCheck>[] = [
  { head: 'Job', place: 'title', cell: ({ name }) => <strong>{name}</strong> },
  { head: 'State', place: 'corner', cell: ({ status }) => <Chip state={status} /> },
  { head: 'Schedule', cell: ({ detail }) => <code>{text(detail.schedule)}</code> },
  {
    head: 'Last run',
    cell: ({ detail: { last_start_ms: ms } }) =>
      typeof ms === 'number' ? (
        <>
          <Moment at={new Date(ms).toISOString()} />{' '}
          <span class="muted">{duration((Date.now() - ms) / 1_000)} ago</span>
        </>
      ) : (
        'never'
      ),
  },
  { head: 'Says', place: 'wide', cell: ({ summary, detail }) => text(detail.last_message) ?? summary },
];

export function Health() {
  const loaded = useLoad('health', () => get<Page<HealthCheck>>('/admin/health'));
  return (
    <>
      <PageHead title="Health" about="The parts that Sluice runs on.">
        <button type="button" class="button" disabled={loaded.isBusy} onClick={loaded.reload}>
          Check again
        </button>
      </PageHead>
      <Await loaded={loaded}>
        {({ items }) => {
          const jobs = items.filter(({ kind }) => kind === 'job');
          return (
            <>
              <div class="parts">
                <TroublePart />
                {items
                  .filter(({ kind }) => kind !== 'job')
                  .map((check) => (
                    <Part key={check.name} check={check} />
                  ))}
              </div>
              {jobs.length > 0 && (
                <Card title="Scheduled jobs">
                  <Table
                    caption="Scheduled jobs"
                    rows={jobs}
                    columns={JOB_COLUMNS}
                    keyOf={({ name }) => name}
                  />
                </Card>
              )}
            </>
          );
        }}
      </Await>
    </>
  );
}
