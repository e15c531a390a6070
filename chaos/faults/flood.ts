// A caller who floods other doors: events without a signature, at an endpoint and at made-up ones, and claims of made-up pools.

import { setTimeout as pause } from 'node:timers/promises';
import { ask } from '../clients/ask.ts';
import { HOSTILE_ENDPOINT } from '../clients/hostile.ts';
import type { Traffic } from '../clients/traffic.ts';
import { NEIGHBOUR_PART } from '../schedule.ts';
import type { FaultKind } from './kind.ts';

/** Bounded: the flood is sent by the process that measures, on the cores of those on trial. */
const PER_SEC = 90;
const MOST = 1_000;
const BODY = JSON.stringify({ unsigned: 'x'.repeat(8_000) });

export const flood: FaultKind = {
  touches: () => 'claim',
  partsOf: () => [NEIGHBOUR_PART],
  async begin({ traffic }, { atMs }) {
    const over = new AbortController();
    const sent = pour(traffic, `${atMs}`, over.signal);
    return async () => {
      over.abort();
      await sent;
    };
  },
};

async function pour(traffic: Traffic, name: string, signal: AbortSignal): Promise<void> {
  const startMs = performance.now();
  const all: Promise<void>[] = [];
  for (let sent = 0; sent < MOST && !signal.aborted; sent++) {
    const earlyMs = startMs + (sent * 1_000) / PER_SEC - performance.now();
    if (earlyMs > 0) await pause(earlyMs);
    all.push(visit(traffic, `${name}-${sent}`, sent));
  }
  await Promise.all(all);
}

async function visit(traffic: Traffic, name: string, turn: number): Promise<void> {
  const { ports, hostileAgent: agent } = traffic;
  const claim = JSON.stringify({ user_id: name, request_id: name });
  const doors = [
    { door: 'made-up pool', path: `/v1/pools/hostile-made-up-${name}/claims`, body: claim },
    { door: 'unsigned event', path: `/webhooks/${HOSTILE_ENDPOINT}`, body: BODY },
    { door: 'made-up endpoint', path: `/webhooks/made-up-${name}`, body: BODY },
  ];
  const { door, path, body } = doors[turn % doors.length] as (typeof doors)[number];
  const port = ports[turn % ports.length] ?? 0;
  const answer = await ask({ port, path, method: 'POST', body, agent });
  const code = answer?.json?.error?.code ?? '';
  traffic.count(`flood, ${door}: ${answer === undefined ? 'no answer' : `${answer.status} ${code}`.trim()}`);
}
