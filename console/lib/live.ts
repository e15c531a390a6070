// The live stream: one connection for all tabs of the console, what came through it, and whether we are still connected.

import { useEffect } from 'preact/hooks';
import {
  HISTORY_COLUMNS,
  type HistoryRow,
  historyRow,
  type LiveSample,
} from '../../db1/supabase/functions/_shared/console/sample.ts';
import { findSession, session } from './api.ts';
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
  /** What came since the page was opened, at most a quarter of an hour, oldest first; what was before is in the memory. */
  readonly points: readonly Point[];
  readonly latest: LiveSample | undefined;
  readonly connection: 'connecting' | 'live' | 'lost';
}

/** Samples come every two seconds: after this silence the line is dead, whatever the browser thinks of it. */
const SILENCE_MS = 8_000;
/** So that of many tabs one notices first. */
const SPREAD_MS = 1_000;
const RECONNECT_MS = 2_000;
const MOST_POINTS = 450;

const NOTHING: Live = { points: [], latest: undefined, connection: 'connecting' };
const live = createStore<Live>(NOTHING);
export const useLive = (): Live => useStore(live);

/** Whether workers leave this handler alone now, because it fails event after event. */
export function useIsFailing(handler: string | null | undefined): boolean {
  const troubles = useLive().latest?.troubles ?? [];
  return troubles.some(({ kind, subject }) => kind === 'breaker' && subject === `handler ${handler}`);
}

const pointOf = (row: HistoryRow): Point =>
  Object.fromEntries(
    HISTORY_COLUMNS.map((column, index) => [column, row[index] ?? null]),
  ) as unknown as Point;

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
  const onEvent = ({ data }: Heard): void => {
    const latest = JSON.parse(data) as LiveSample;
    const { points, latest: before } = live.get();
    // A tab that comes later is told the newest again, and so are all others.
    if (latest.at !== before?.at)
      live.set({
        points: [...points, pointOf(historyRow(latest))].slice(-MOST_POINTS),
        latest,
        connection: 'live',
      });
    hasHeard = true;
    hear();
  };
  const open = (): void => {
    if (isOver || following !== undefined || session.get() !== 'in') return;
    if (document.visibilityState === 'hidden' && !canShare()) return;
    following = followStream({
      path: '/admin/live',
      events: ['sample'],
      onEvent,
      // Not left to the browser, which would try for ever where the session has ended.
      onLost: () => (following?.isLeading() ? lose() : showLost()),
      onEnd: lose,
      catchUp: () => {
        const { latest } = live.get();
        return latest && { type: 'sample', data: JSON.stringify(latest) };
      },
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
