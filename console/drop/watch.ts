// What the pool looks like now: a stream from the server, and where that does not come through, a look now and then.

import type { PoolStatus } from '../../db1/supabase/functions/_shared/pool.ts';
import type { Api } from './api.ts';
import type { ServerClock } from './clock.ts';
import { delayOf, type Pace, Pause } from './pause.ts';

export type PoolNow = Pick<PoolStatus, 'status' | 'available' | 'capacity' | 'opens_at'>;

/** `event: pool`. All but the time is null while the database does not answer. */
type News = { readonly [Name in keyof PoolNow]: PoolNow[Name] | null } & { readonly now: string };

export interface Watched {
  /** Undefined until something is known. */
  readonly pool: PoolNow | 'unknown' | undefined;
  readonly isConnected: boolean;
}

/** A stream that ended is opened again by the browser; one that was refused is left to us. */
const OPEN_AGAIN: Pace = { firstMs: 1_000, factor: 2, mostMs: 10_000 };
/** A stream that is cut is usually back at once; nobody needs to read about that. */
const QUIET_MS = 1_500;

export class Watch {
  readonly #api: Api;
  readonly #clock: ServerClock;
  readonly #path: string;
  readonly #pool: string;
  readonly #onChange: (watched: Watched) => void;
  readonly #pause = new Pause();
  #watched: Watched = { pool: undefined, isConnected: true };
  #stream: EventSource | undefined;
  #lostTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(pool: string, api: Api, clock: ServerClock, onChange: (watched: Watched) => void) {
    this.#pool = pool;
    this.#path = `/v1/pools/${pool}/live`;
    this.#api = api;
    this.#clock = clock;
    this.#onChange = onChange;
  }

  get opensAt(): number | undefined {
    const { pool } = this.#watched;
    return typeof pool === 'object' && pool.opens_at !== null ? Date.parse(pool.opens_at) : undefined;
  }

  /** A look first: it answers fast, and a stream that is refused does not say why. */
  async start(): Promise<void> {
    for (let tries = 0; ; tries++) {
      const answer = await this.#api.getPool(this.#pool);
      if (answer.kind === 'refused') this.#tell({ pool: 'unknown', isConnected: true });
      else if (answer.kind === 'trouble') this.#tell({ isConnected: false });
      else {
        if (answer.sentAt !== undefined) this.#clock.toldRoughly(answer.sentAt);
        this.#see(answer.value);
        await this.#follow();
      }
      await this.#pause.wait(delayOf(OPEN_AGAIN, tries));
    }
  }

  wake(): void {
    this.#pause.wake();
  }

  /** Until the browser gives the stream up. */
  #follow(): Promise<void> {
    const stream = new EventSource(this.#path);
    this.#stream?.close();
    this.#stream = stream;
    stream.addEventListener('pool', ({ data }: MessageEvent<string>) => {
      const { now, status, available, capacity, opens_at } = JSON.parse(data) as News;
      this.#clock.told(Date.parse(now));
      if (status === null || available === null || capacity === null) this.#tell({ isConnected: false });
      else this.#see({ status, available, capacity, opens_at });
    });
    return new Promise((resolve) => {
      stream.addEventListener('error', () => {
        this.#lostTimer ??= setTimeout(() => this.#tell({ isConnected: false }), QUIET_MS);
        if (stream.readyState === EventSource.CLOSED) resolve();
      });
    });
  }

  #see({ status, available, capacity, opens_at }: PoolNow): void {
    clearTimeout(this.#lostTimer);
    this.#lostTimer = undefined;
    this.#tell({ pool: { status, available, capacity, opens_at }, isConnected: true });
  }

  #tell(change: Partial<Watched>): void {
    this.#watched = { ...this.#watched, ...change };
    this.#onChange(this.#watched);
  }
}
