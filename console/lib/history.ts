// What is remembered of a time: loaded from the server, and followed by what the live stream brings while the time goes on.

import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { Mark } from '../../db1/supabase/functions/_shared/console/marks.ts';
import type { HistoryRow, LiveSample } from '../../db1/supabase/functions/_shared/console/sample.ts';
import type { SampleHistory } from '../../db1/supabase/functions/_shared/console/samples.ts';
import { get, type Query } from './api.ts';
import { type At, secondsOf } from './line.ts';
import { type Point, useLive } from './live.ts';
import { type Loaded, useLoad } from './load.ts';

const asPoints = <Item extends At>(columns: readonly string[], rows: readonly HistoryRow[]): Item[] =>
  rows.map((row) => Object.fromEntries(columns.map((column, index) => [column, row[index] ?? null])) as Item);

/** A row of a part: its numbers by name. */
export type PartPoint = At & Readonly<Record<string, number | null | string>>;

export interface Memory {
  readonly from: number;
  readonly to: number;
  readonly stepSec: number;
  readonly points: readonly Point[];
  readonly marks: readonly Mark[];
  readonly parts: readonly string[];
  readonly part: { readonly columns: readonly string[]; readonly points: readonly PartPoint[] } | null;
  /** Databases that did not answer. */
  readonly away: readonly string[];
}

function memoryOf(history: SampleHistory): Memory {
  const { columns, rows, part, databases } = history;
  return {
    from: Date.parse(history.from) / 1_000,
    to: Date.parse(history.to) / 1_000,
    stepSec: history.step_sec,
    points: asPoints<Point>(columns, rows),
    marks: history.marks,
    parts: history.parts,
    part: part && {
      columns: part.columns.slice(1),
      points: asPoints<PartPoint>(part.columns, part.rows),
    },
    away: databases.filter(({ ok }) => !ok).map(({ name }) => name),
  };
}

/** Marks that began meanwhile come with the next load. */
const LOAD_AGAIN_MS = 30_000;

/** The server gives the same answer for 5 s, so the first loads after an outage may still lack what came back. The next ones wait twice as long each. */
const MISSING_AGAIN_MS = 2_000;

/** Whether the last sample shows that a database answers, by the name that a memory has for it. */
function isUp(name: string, { db1, db2, cells }: LiveSample): boolean {
  if (name === 'DB2') return db2.ok;
  return cells === undefined ? db1.ok : cells.some((cell) => cell.ok && name === `cell ${cell.name}`);
}

/** Loads a memory again until it has the past of every database that answers. */
function useLoadOfMissing({ value, reload }: Loaded<Memory>, latest: LiveSample | undefined): void {
  const isMissing = latest !== undefined && (value?.away ?? []).some((name) => isUp(name, latest));
  const pauseMs = useRef(MISSING_AGAIN_MS);
  useEffect(() => {
    if (!isMissing) pauseMs.current = MISSING_AGAIN_MS;
    if (value === undefined || !isMissing) return undefined;
    const timer = setTimeout(reload, pauseMs.current);
    pauseMs.current = Math.min(2 * pauseMs.current, LOAD_AGAIN_MS);
    return () => clearTimeout(timer);
  }, [isMissing, value, reload]);
}

/** With `range` the time goes on: what the live stream brings is added, and the window moves along. */
export function useMemory(query: Query): Loaded<Memory> {
  const goesOn = query.to === undefined;
  const loaded = useLoad(JSON.stringify(query), async () =>
    memoryOf(await get<SampleHistory>('/admin/samples', query)),
  );
  const { reload } = loaded;
  useEffect(() => {
    if (!goesOn) return undefined;
    const timer = setInterval(() => document.visibilityState === 'visible' && reload(), LOAD_AGAIN_MS);
    return () => clearInterval(timer);
  }, [goesOn, reload]);
  const live = useLive();
  useLoadOfMissing(loaded, live.latest);
  const isWhole = query.of === undefined;
  const value = useMemo(() => {
    const known = loaded.value;
    if (known === undefined || !goesOn || !isWhole) return known;
    const last = known.points.at(-1);
    const fresh = live.points.filter((point) => last === undefined || secondsOf(point) > secondsOf(last) + 1);
    const end = fresh.at(-1);
    if (end === undefined) return known;
    const moved = Math.max(0, secondsOf(end) - known.to);
    const from = query.from === undefined ? known.from + moved : known.from;
    const points = [...known.points, ...fresh].filter((point) => secondsOf(point) >= from);
    return { ...known, from, to: known.to + moved, points };
  }, [loaded.value, live.points, goesOn, isWhole, query.from]);
  return { ...loaded, value };
}
