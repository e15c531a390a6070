// The live news of a drop page: the server asks once a second for each pool that a page shows, and sends all pages the same.

import { HttpError } from '#core/errors.ts';
import type { PoolStatus } from '#core/pool.ts';
import type { Clock } from '#core/ports.ts';
import { type HttpRequest, type HttpResponse, type Route, refuse } from '#core/router.ts';
import { EVENT_STREAM, eventText } from './live.ts';

/** What `event: pool` carries. All but `now` is null while the database does not answer. */
export interface PoolNews {
  readonly status: PoolStatus['status'] | null;
  readonly available: number | null;
  readonly capacity: number | null;
  readonly opens_at: string | null;
  /** The server's clock, for the countdown. */
  readonly now: string;
}

type News = Omit<PoolNews, 'now'>;

export interface PoolLivePorts {
  /** Undefined if the pool does not exist. */
  status(poolId: string): Promise<PoolStatus | undefined>;
  now: Clock;
}

const EVERY_MS = 1_000;
/** A silent connection says so now and then, or proxies and dead readers are never noticed. */
const SILENCE_MS = 15_000;
const COMMENT = ': still here\n\n';
/** Beyond this the page asks by itself; each stream holds a connection. */
const MAX_LISTENERS = 10_000;

interface Channel {
  readonly listeners: Set<(text: string) => boolean>;
  timer: NodeJS.Timeout;
  /** What was said last, without the time. */
  said: News;
  saidAt: number;
}

const UNKNOWN: News = { status: null, available: null, capacity: null, opens_at: null };

export class PoolLive {
  readonly #ports: PoolLivePorts;
  readonly #channels = new Map<string, Channel>();
  #listeners = 0;

  constructor(ports: PoolLivePorts) {
    this.#ports = ports;
  }

  routes(): Route[] {
    return [
      { method: 'GET', path: '/v1/pools/:pool/live', handle: (request, pool) => this.#open(request, pool) },
    ];
  }

  async #open(request: HttpRequest, poolId: string): Promise<HttpResponse> {
    if (this.#listeners >= MAX_LISTENERS) throw new HttpError('overloaded');
    const status = await this.#ports.status(poolId);
    if (status === undefined) return refuse('unknown_pool', request.requestId);
    return {
      status: 200,
      headers: EVENT_STREAM,
      body: '',
      follow: (send, closed) => this.#join(poolId, newsOf(status), send, closed),
    };
  }

  /** Every listener has heard what its channel said last, also one that asked before that and joins after it. */
  #join(poolId: string, news: News, send: (text: string) => boolean, closed: AbortSignal): void {
    let channel = this.#channels.get(poolId);
    if (channel === undefined) {
      const made: Channel = {
        listeners: new Set(),
        timer: setTimeout(() => void this.#tell(poolId, made), EVERY_MS),
        said: news,
        saidAt: this.#ports.now(),
      };
      channel = made;
      this.#channels.set(poolId, made);
    }
    const { listeners, said } = channel;
    const joined = channel;
    send(this.#textOf(said));
    listeners.add(send);
    this.#listeners++;
    closed.addEventListener('abort', () => {
      listeners.delete(send);
      this.#listeners--;
      if (listeners.size > 0) return;
      clearTimeout(joined.timer);
      this.#channels.delete(poolId);
    });
  }

  /** Sends what has changed, and does so again in a second while a page listens. */
  async #tell(poolId: string, channel: Channel): Promise<void> {
    const news = await this.#ports.status(poolId).then(newsOf, () => UNKNOWN);
    if (channel.listeners.size === 0) return;
    const isNew = JSON.stringify(news) !== JSON.stringify(channel.said);
    if (isNew || this.#ports.now() - channel.saidAt >= SILENCE_MS) {
      channel.said = news;
      channel.saidAt = this.#ports.now();
      const text = isNew ? this.#textOf(news) : COMMENT;
      for (const send of channel.listeners) send(text);
    }
    channel.timer = setTimeout(() => void this.#tell(poolId, channel), EVERY_MS);
  }

  #textOf(news: News): string {
    return eventText('pool', { ...news, now: new Date(this.#ports.now()).toISOString() } satisfies PoolNews);
  }
}

function newsOf(status: PoolStatus | undefined): News {
  if (status === undefined) return UNKNOWN;
  const { available, capacity, opens_at } = status;
  return { status: status.status, available, capacity, opens_at };
}
