// The live stream: one connection for the whole console, the last five minutes, and whether we are still connected.

import { useEffect } from 'preact/hooks';
import {
  HISTORY_COLUMNS,
  type History,
  type HistoryRow,
  historyRow,
  type LiveSample,
} from '../../db1/supabase/functions/_shared/console/sample.ts';
import { findSession, session } from './api.ts';
import { createStore, useStore } from './store.ts';

type Column = Exclude<(typeof HISTORY_COLUMNS)[number], 'at' | 'db1_ok' | 'db2_ok'>;

/** A sample as the charts draw it. */
export type Point = Readonly<Record<Column, number | null>> & {
  readonly at: string;
  readonly db1_ok: boolean;
  readonly db2_ok: boolean;
};

export interface Live {
  /** Oldest first. */
  readonly points: readonly Point[];
  readonly latest: LiveSample | undefined;
  readonly connection: 'connecting' | 'live' | 'lost';
}

const KEEP = 300;
/** Samples come each second: after this silence the line is dead, whatever the browser thinks of it. */
const SILENCE_MS = 6_000;
const RECONNECT_MS = 2_000;

const NOTHING: Live = { points: [], latest: undefined, connection: 'connecting' };
const live = createStore<Live>(NOTHING);
export const useLive = (): Live => useStore(live);

const pointOf = (row: HistoryRow): Point =>
  Object.fromEntries(
    HISTORY_COLUMNS.map((column, index) => [column, row[index] ?? null]),
  ) as unknown as Point;

function follow(): () => void {
  let source: EventSource | undefined;
  let silence: number | undefined;
  let again: number | undefined;
  let isOver = false;
  const parse = (event: Event) => JSON.parse((event as MessageEvent<string>).data);
  const hear = (): void => {
    clearTimeout(silence);
    silence = window.setTimeout(lose, SILENCE_MS);
  };
  const lose = (): void => {
    source?.close();
    clearTimeout(silence);
    clearTimeout(again);
    if (live.get().connection === 'live') live.set({ ...live.get(), connection: 'lost' });
    // A session that ended looks the same to an EventSource as a server that is away.
    again = window.setTimeout(() => void findSession().then(open), RECONNECT_MS);
  };
  const open = (): void => {
    if (isOver || session.get() !== 'in') return;
    source = new EventSource('/admin/live');
    source.addEventListener('history', (event) => {
      live.set({ ...live.get(), points: (parse(event) as History).rows.map(pointOf) });
      hear();
    });
    source.addEventListener('sample', (event) => {
      const latest = parse(event) as LiveSample;
      const points = [...live.get().points, pointOf(historyRow(latest))].slice(-KEEP);
      live.set({ points, latest, connection: 'live' });
      hear();
    });
    source.addEventListener('error', lose);
  };
  open();
  return () => {
    isOver = true;
    source?.close();
    clearTimeout(silence);
    clearTimeout(again);
    live.set(NOTHING);
  };
}

/** Keeps the stream open while the part that calls it is shown. */
export function useLiveConnection(): void {
  useEffect(follow, []);
}
