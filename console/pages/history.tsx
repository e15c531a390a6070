// Any time of the last 30 days: charts and what happened meanwhile. The address says which time and of what, so it can be sent to
// a colleague.

import { useId, useState } from 'preact/hooks';
import { pathWith } from '../lib/api.ts';
import { count, duration, fullMoment, rate } from '../lib/format.ts';
import { type Memory, type PartPoint, useMemory } from '../lib/history.ts';
import type { Point } from '../lib/live.ts';
import { go, usePlace } from '../lib/router.tsx';
import { useStore } from '../lib/store.ts';
import { fromField, zone } from '../lib/zone.ts';
import type { Tint } from '../parts/chart.tsx';
import { Tabs, TimeField } from '../parts/fields.tsx';
import { Marks } from '../parts/marks.tsx';
import { Card, PageHead } from '../parts/small.tsx';
import { Await, Empty } from '../parts/states.tsx';
import { Tile } from '../parts/tiles.tsx';

const RANGES = [
  ['15m', '15 min'],
  ['1h', '1 h'],
  ['24h', '24 h'],
  ['7d', '7 d'],
  ['30d', '30 d'],
] as const;
const DEFAULT_RANGE = '1h';

interface Asked {
  range?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
  of?: string | undefined;
}

function askedOf(query: URLSearchParams): Asked {
  const [from, to] = [query.get('from'), query.get('to')];
  const of = query.get('of') ?? undefined;
  if (from) return { from, ...(to && { to }), ...(of && { of }) };
  return { range: query.get('range') ?? DEFAULT_RANGE, ...(of && { of }) };
}

const placeOf = (asked: Asked): string => pathWith('/history', { ...asked });

/** Durations are drawn in seconds, and written as people say them. */
type Show = (value: number | null | undefined) => string;
const fine: Show = (sec) =>
  sec !== null && sec !== undefined && sec > 0 && sec < 10 ? `${sec.toFixed(2)} s` : duration(sec);

interface Line {
  title: string;
  column: keyof Point & string;
  show: Show;
  source: 'db1' | 'db2';
  tint: Tint;
}

const LINES: readonly Line[] = [
  { title: 'Claims per second', column: 'claims_per_sec', show: rate, source: 'db1', tint: 'water' },
  { title: 'Queue depth', column: 'queue_depth', show: count, source: 'db1', tint: 'water' },
  { title: 'Oldest message', column: 'oldest_msg_sec', show: duration, source: 'db1', tint: 'water' },
  { title: 'Drained per second', column: 'drain_per_sec', show: rate, source: 'db1', tint: 'water' },
  { title: 'Ledger commits per second', column: 'commits_per_sec', show: rate, source: 'db2', tint: 'stone' },
  {
    title: 'Claim to ticket, half within',
    column: 'ticket_p50_sec',
    show: fine,
    source: 'db2',
    tint: 'stone',
  },
  {
    title: 'Claim to ticket, 99 % within',
    column: 'ticket_p99_sec',
    show: fine,
    source: 'db2',
    tint: 'stone',
  },
  { title: 'Oldest hold', column: 'hold_oldest_sec', show: duration, source: 'db1', tint: 'water' },
  { title: 'Dead letters of claims', column: 'dlq_depth', show: count, source: 'db1', tint: 'alarm' },
  { title: 'Events per second', column: 'webhooks_per_sec', show: rate, source: 'db2', tint: 'stone' },
  { title: 'Webhook backlog', column: 'webhooks_backlog', show: count, source: 'db2', tint: 'stone' },
  { title: 'Oldest event', column: 'webhooks_oldest_sec', show: duration, source: 'db2', tint: 'stone' },
  {
    title: 'Dead letters of webhooks',
    column: 'webhooks_dead_letters',
    show: count,
    source: 'db2',
    tint: 'alarm',
  },
  { title: 'Inbox', column: 'inbox_waiting', show: count, source: 'db1', tint: 'water' },
  { title: 'Calls per second', column: 'calls_per_sec', show: rate, source: 'db2', tint: 'stone' },
];

/** The numbers of parts, by the names that the API gives them. */
const PART_TITLES: Readonly<Record<string, readonly [string, Show, 'db1' | 'db2']>> = {
  available: ['Slots left', count, 'db1'],
  reserved: ['Slots held', count, 'db1'],
  consumed: ['Slots sold', count, 'db1'],
  claims_per_sec: ['Claims per second', rate, 'db1'],
  ticket_p50_sec: ['Claim to ticket, half within', fine, 'db2'],
  ticket_p99_sec: ['Claim to ticket, 99 % within', fine, 'db2'],
  tickets_per_sec: ['Tickets per second', rate, 'db2'],
  messages: ['Messages', count, 'db1'],
  oldest_sec: ['Oldest', duration, 'db1'],
  waiting: ['Events waiting', count, 'db2'],
  dead_letters: ['Dead letters', count, 'db2'],
  per_sec: ['Events per second', rate, 'db2'],
};

function Charts({ memory, span }: { memory: Memory; span: string }) {
  const { points } = memory;
  if (points.length === 0)
    return (
      <Empty title="Nothing was sampled in this time">Servers sample while they run, watched or not.</Empty>
    );
  return (
    <div class="tiles">
      {LINES.map(({ column, ...line }) => (
        <Tile
          key={column}
          {...line}
          frame={memory}
          points={points}
          span={span}
          read={(point) => point[column] as number | null}
        />
      ))}
    </div>
  );
}

const numberOf = (point: PartPoint, column: string): number | null => {
  const value = point[column];
  return typeof value === 'number' ? value : null;
};

function PartCharts({
  memory,
  part,
  span,
}: {
  memory: Memory;
  part: NonNullable<Memory['part']>;
  span: string;
}) {
  return (
    <div class="tiles">
      {part.columns.map((column) => {
        const [title, show, source] = PART_TITLES[column] ?? [column, count, 'db1'];
        return (
          <Tile
            key={column}
            title={title}
            show={show}
            source={source}
            tint={source === 'db1' ? 'water' : 'stone'}
            frame={memory}
            points={part.points}
            span={span}
            read={(point) => numberOf(point, column)}
          />
        );
      })}
    </div>
  );
}

function Of({ parts, asked }: { parts: readonly string[]; asked: Asked }) {
  const id = useId();
  const known = asked.of === undefined || parts.includes(asked.of) ? parts : [asked.of, ...parts];
  return (
    <div class="field">
      <label for={id}>Of</label>
      <select
        id={id}
        value={asked.of ?? ''}
        onChange={({ currentTarget: { value } }) => go(placeOf({ ...asked, of: value || undefined }))}
      >
        <option value="">everything</option>
        {known.map((part) => (
          <option key={part} value={part}>
            {part}
          </option>
        ))}
      </select>
    </div>
  );
}

function OwnTime({ memory, asked }: { memory: Memory | undefined; asked: Asked }) {
  const [error, setError] = useState<string>();
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const [from, to] = ['from', 'to'].map((name) => fromField(String(form.get(name))));
    if (!from || !to || !(from < to)) {
      setError('Before its end.');
      return;
    }
    setError(undefined);
    go(placeOf({ from: from.toISOString(), to: to.toISOString(), of: asked.of }));
  };
  return (
    <form
      class="history-own"
      onSubmit={onSubmit}
      key={`${asked.range} ${asked.from} ${asked.to} ${memory === undefined}`}
    >
      <TimeField name="from" label="From" isRequired at={memory && memory.from * 1_000} error={error} />
      <TimeField name="to" label="To" isRequired at={memory && memory.to * 1_000} />
      <button type="submit" class="button">
        Show
      </button>
    </form>
  );
}

function spanOf({ range, from }: Asked, memory: Memory): string {
  if (from === undefined) return `the last ${RANGES.find(([name]) => name === range)?.[1] ?? range}`;
  const [first, last] = [memory.from, memory.to].map((sec) =>
    fullMoment(new Date(sec * 1_000).toISOString()),
  );
  return `${first} to ${last}`;
}

export function History() {
  useStore(zone);
  const { query } = usePlace();
  const asked = askedOf(query);
  const loaded = useMemory({ ...asked });
  const tabs = RANGES.map(([range, name]) => [placeOf({ range, of: asked.of }), name] as const);
  return (
    <>
      <PageHead
        title="History"
        about="Sampled every two seconds for an hour and every minute for 30 days, watched or not."
      />
      <Tabs label="How far back" tabs={tabs} current={placeOf({ range: asked.range, of: asked.of })} />
      <div class="history-bar">
        <Of parts={loaded.value?.parts ?? []} asked={asked} />
        <OwnTime memory={loaded.value} asked={asked} />
      </div>
      <Await loaded={loaded}>
        {(memory) => (
          <>
            {memory.away.length > 0 && (
              <p class="muted">
                {memory.away.join(', ')} does not answer: what it remembers is missing until it is back.
              </p>
            )}
            {memory.part ? (
              <PartCharts memory={memory} part={memory.part} span={spanOf(asked, memory)} />
            ) : (
              <Charts memory={memory} span={spanOf(asked, memory)} />
            )}
            <Card title="What happened">
              <p class="hint">In the charts each is a dashed line, and an outage is shaded.</p>
              <Marks marks={memory.marks} of={asked.of} />
            </Card>
          </>
        )}
      </Await>
    </>
  );
}
