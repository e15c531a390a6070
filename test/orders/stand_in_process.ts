// The stand-in for Stripe in a process of its own, as `npm start` has it, with Stripe's package and the control beside it.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Stripe from 'stripe';
import { startStandIn } from '../../src/stack/stripe.ts';
import { StandInClient } from '../../src/stripe_stand_in/client.ts';

export const STAND_IN_KEY = 'sk_live_stand_in_0123456789';

export interface StandInProcess {
  url: string;
  port: number;
  stripe: Stripe;
  control: StandInClient;
  stop(): Promise<void>;
  /** As SIGKILL does it. */
  kill(): Promise<void>;
}

export interface StandInOrder {
  port?: number;
  /** Of its own where left out. */
  journal?: string;
  webhook?: { url: string; secret: string };
}

export async function startStandInProcess({
  port = 0,
  journal,
  webhook,
}: StandInOrder): Promise<StandInProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-stand-in-'));
  const child = await startStandIn({
    key: STAND_IN_KEY,
    port,
    journal: journal ?? join(folder, 'journal'),
    logFile: join(folder, 'log'),
    ...(webhook && { webhook }),
  });
  const end = async (how: () => unknown): Promise<void> => {
    await how();
    await child.exited;
    rmSync(folder, { recursive: true, force: true });
  };
  return {
    url: child.url,
    port: child.port,
    control: new StandInClient(child.url, STAND_IN_KEY),
    stripe: new Stripe(STAND_IN_KEY, {
      host: '127.0.0.1',
      port: child.port,
      protocol: 'http',
      maxNetworkRetries: 0,
    }),
    stop: () => end(() => child.stop()),
    kill: () => end(() => process.kill(child.pid, 'SIGKILL')),
  };
}
