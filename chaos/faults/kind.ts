// What every kind of fault is.

import type { Traffic } from '../clients/traffic.ts';
import type { Random } from '../random.ts';
import type { Planned } from '../schedule.ts';
import type { World } from '../world.ts';

/**
 * What clients notice of it: recovery is the next acknowledgement of this kind. `commit` is a claim carried to its end,
 * `checkout` a buyer who is sent to Stripe's page.
 */
export type Touches = 'claim' | 'event' | 'call' | 'commit' | 'checkout';

/** The system on trial, and the clients' way to it: a hostile caller is a client too, and what it was told is kept. */
export type Scene = World & { traffic: Traffic };

export type FaultKind = {
  touches(target: string): Touches;
  /** The parts that it uses up while it lasts: no other fault to them happens meanwhile. */
  partsOf(target: string, world: World): string[];
  /** Makes it happen; returns how to heal it, or undefined where it heals by itself and has done so. */
  begin(scene: Scene, plan: Planned, random: Random): Promise<(() => void | Promise<void>) | undefined>;
};
