// What the pool looks like now: a stream from the server, and where that does not come through, a look now and then.

import type { PoolStatus } from '../../db1/supabase/functions/_shared/pool.ts';
import { type Following, followStream, type Heard } from '../lib/one_stream.ts';
import type { Api } from './api.ts';
import type { ServerClock } from './clock.ts';
import { delayOf, type Pace, Pause } from './pause.ts';

type Told = Pick<PoolStatus, 'status' | 'available' | 'capacity' | 'opens_at'>;
/** What a look tells, and the stream after it does not: it changes when an operator changes it. */
type Rules = Pick<
  PoolStatus,
  'require_auth' | 'max_quantity' | 'max_per_user' | 'confirm_by' | 'price' | 'currency' | 'details'
>;
export type PoolNow = Told & Rules;

/** `event: pool`. All but the time is null while the database does not answer. */
type News = { readonly [Name in keyof Told]: Told[Name] | null } & { readonly now: string };

export interface Watched {
  /** Undefined until something is known. */
  readonly pool: PoolNow | 'unknown' | undefined;
  readonly isConnected: boolean;
}

/** A stream that ended is opened again by the browser; one that was refused is left to us. */
const OPEN_AGAIN: Pace = { firstMs: 1_000, factor: 2, mostMs: 10_000 };
/** A stream that is cut is usually back at once: the page says nothing for so long. */
const QUIET_MS = 1_500;
/** How often a hidden tab asks, for its title. It holds no stream: a browser has six connections for all its tabs. */
const LOOK_HIDDEN_MS = 60_000;

export class Watch {
  readonly #api: Api;
  readonly #clock: ServerClock;
  readonly #path: string;
  readonly #pool: string;
  readonly #onChange: (watched: Watched) => void;
  readonly #pause = new Pause();
  #watched: Watched = { pool: undefined, isConnected: true };
  /** As the last look told them. */
  #rules: Rules | undefined;
  #isHidden = false;
  #leave: (() => void) | undefined;
  #lostTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(pool: string, api: Api, clock: ServerClock, onChange: (watched: Watched) => void) {
    this.#pool = pool;
    this.#path = `/v1/pools/${encodeURIComponent(pool)}/live`;
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
        this.#rules = answer.value;
        this.#see(answer.value, answer.value);
        if (!this.#isHidden) await this.#follow();
      }
      await this.#pause.wait(this.#isHidden ? LOOK_HIDDEN_MS : delayOf(OPEN_AGAIN, tries));
    }
  }

  wake(): void {
    this.#isHidden = false;
    this.#pause.wake();
  }

  /** The page is hidden. */
  rest(): void {
    this.#isHidden = true;
    this.#leave?.();
  }

  /** Until the browser gives the stream up, or the page is hidden. */
  #follow(): Promise<void> {
    return new Promise((resolve) => {
      let following: Following | undefined;
      const leave = () => {
        this.#leave = undefined;
        this.#calm();
        following?.stop();
        resolve();
      };
      this.#leave = leave;
      following = followStream({
        path: this.#path,
        events: ['pool'],
        onEvent: ({ data }) => this.#hear(JSON.parse(data) as News),
        onLost: () => {
          this.#lostTimer ??= setTimeout(() => this.#tell({ isConnected: false }), QUIET_MS);
        },
        onEnd: leave,
        catchUp: () => this.#catchUp(),
      });
    });
  }

  #hear({ now, status, available, capacity, opens_at }: News): void {
    this.#clock.told(Date.parse(now));
    if (status === null || available === null || capacity === null) this.#tell({ isConnected: false });
    else if (this.#rules !== undefined) this.#see({ status, available, capacity, opens_at }, this.#rules);
  }

  /** For a tab that comes later: its look can be a second old, and the stream speaks only of what changes. */
  #catchUp(): Heard | undefined {
    const { pool, isConnected } = this.#watched;
    if (typeof pool !== 'object' || !isConnected) return undefined;
    const { status, available, capacity, opens_at } = pool;
    const now = new Date(this.#clock.now()).toISOString();
    return {
      type: 'pool',
      data: JSON.stringify({ status, available, capacity, opens_at, now } satisfies News),
    };
  }

  #see({ status, available, capacity, opens_at }: Told, rules: Rules): void {
    this.#calm();
    this.#tell({ pool: { ...rules, status, available, capacity, opens_at }, isConnected: true });
  }

  #calm(): void {
    clearTimeout(this.#lostTimer);
    this.#lostTimer = undefined;
  }

  #tell(change: Partial<Watched>): void {
    this.#watched = { ...this.#watched, ...change };
    this.#onChange(this.#watched);
  }
}
