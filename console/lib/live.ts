// The live stream: one connection for all tabs of the console, the last five minutes, and whether we are still connected.

import { useEffect } from 'preact/hooks';
import {
  HISTORY_COLUMNS,
  type History,
  type HistoryRow,
  historyRow,
  type LiveSample,
} from '../../db1/supabase/functions/_shared/console/sample.ts';
import { findSession, session } from './api.ts';
import { recent } from './history.ts';
import { canShare, type Following, followStream, type Heard } from './one_stream.ts';
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

/** Samples come each second: after this silence the line is dead, whatever the browser thinks of it. */
const SILENCE_MS = 6_000;
/** So that of many tabs one notices first. */
const SPREAD_MS = 1_000;
const RECONNECT_MS = 2_000;

const NOTHING: Live = { points: [], latest: undefined, connection: 'connecting' };
const live = createStore<Live>(NOTHING);
export const useLive = (): Live => useStore(live);

const pointOf = (row: HistoryRow): Point =>
  Object.fromEntries(
    HISTORY_COLUMNS.map((column, index) => [column, row[index] ?? null]),
  ) as unknown as Point;

const historyOf = (points: readonly Point[]): History => ({
  columns: HISTORY_COLUMNS,
  rows: points.map((point) => HISTORY_COLUMNS.map((column) => point[column])),
});

function follow(): () => void {
  let following: Following | undefined;
  let silence: number | undefined;
  let again: number | undefined;
  let isOver = false;
  let hasHeard = false;
  const hear = (): void => {
    clearTimeout(silence);
    silence = window.setTimeout(onSilence, SILENCE_MS + Math.random() * SPREAD_MS);
  };
  const showLost = (): void => {
    if (live.get().connection === 'live') live.set({ ...live.get(), connection: 'lost' });
  };
  const lose = (): void => {
    following?.stop();
    following = undefined;
    clearTimeout(silence);
    clearTimeout(again);
    showLost();
    // A session that ended looks the same to an EventSource as a server that is away.
    again = window.setTimeout(() => void findSession().then(open), RECONNECT_MS);
  };
  const onSilence = (): void => {
    // A first answer may take its time; a refusal is told.
    if (following?.isLeading() && hasHeard) {
      lose();
      return;
    }
    // The tab that has the stream sleeps, as hidden tabs do.
    showLost();
    following?.takeOver();
    hear();
  };
  const onEvent = ({ type, data }: Heard): void => {
    if (type === 'history')
      live.set({ ...live.get(), points: recent((JSON.parse(data) as History).rows.map(pointOf)) });
    else {
      const latest = JSON.parse(data) as LiveSample;
      const points = recent([...live.get().points, pointOf(historyRow(latest))]);
      live.set({ points, latest, connection: 'live' });
    }
    hasHeard = true;
    hear();
  };
  const open = (): void => {
    if (isOver || following !== undefined || session.get() !== 'in') return;
    if (document.visibilityState === 'hidden' && !canShare()) return;
    following = followStream({
      path: '/admin/live',
      events: ['history', 'sample'],
      onEvent,
      // Not left to the browser, which would try for ever where the session has ended.
      onLost: () => (following?.isLeading() ? lose() : showLost()),
      onEnd: lose,
      catchUp: () => ({ type: 'history', data: JSON.stringify(historyOf(live.get().points)) }),
    });
    hasHeard = false;
    hear();
  };
  const onVisibility = (): void => {
    if (canShare()) return;
    if (document.visibilityState === 'visible') open();
    else {
      following?.stop();
      following = undefined;
      clearTimeout(silence);
    }
  };
  document.addEventListener('visibilitychange', onVisibility);
  open();
  return () => {
    isOver = true;
    document.removeEventListener('visibilitychange', onVisibility);
    following?.stop();
    clearTimeout(silence);
    clearTimeout(again);
    live.set(NOTHING);
  };
}

/** Keeps the stream open while the part that calls it is shown. */
export function useLiveConnection(): void {
  useEffect(follow, []);
}
