// Who sends the load: wrk, buyers at a fixed pace, and buyers who are followed to their tickets. The programs start when they are
// first needed and serve all rows.

import { fileURLToPath } from 'node:url';
import { cpuUs, endedUs, ownUs } from '../cpu.ts';
import { Forked } from '../forked.ts';
import { OPEN_LOOP_CLIENT } from '../open_loop.ts';

const FOLLOWER = fileURLToPath(new URL('./follower.ts', import.meta.url));

export class Crowd {
  readonly wrk: string;
  #follower: Forked | undefined;
  #sender: Forked | undefined;

  constructor(wrk: string) {
    this.wrk = wrk;
  }

  /** It takes a FollowOrder, `stop` and `report`. */
  get follower(): Forked {
    this.#follower ??= new Forked(FOLLOWER);
    return this.#follower;
  }

  /** It takes an OpenLoopOrder. */
  get sender(): Forked {
    this.#sender ??= new Forked(OPEN_LOOP_CLIENT);
    return this.#sender;
  }

  /** All that this process and its senders have used; wrk has ended when it is counted. */
  spentUs(): number {
    return this.#running().reduce((sum, { pid }) => sum + cpuUs(pid), ownUs() + endedUs());
  }

  async end(): Promise<void> {
    for (const program of this.#running()) {
      program.tell('end');
      await program.end();
    }
  }

  #running(): Forked[] {
    return [this.#follower, this.#sender].filter((program) => program !== undefined);
  }
}
