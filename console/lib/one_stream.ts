// One event stream for all tabs of a browser. Over HTTP/1.1 a browser opens six connections to a server and no more: with a
// stream for each tab, the seventh tab would never load and the sixth could never buy. So one tab holds the stream, by a lock
// of the browser, and tells the others; when it is closed, the next in line has the lock.

/** An event as it came. */
export interface Heard {
  readonly type: string;
  readonly data: string;
}

export interface StreamOptions {
  readonly path: string;
  /** Which events are listened for. */
  readonly events: readonly string[];
  /** Called in every tab, whichever of them holds the stream. */
  onEvent(heard: Heard): void;
  /** The connection was cut; the browser opens it again, or another tab takes over. */
  onLost(): void;
  /** The stream was ours and is over: the server refused it, or is away. */
  onEnd(): void;
  /** What a tab that comes later has missed. */
  catchUp?(): Heard | undefined;
}

export interface Following {
  /** True where the connection is this tab's. */
  isLeading(): boolean;
  /** For when the tab that has the stream says nothing more: browsers put tabs to sleep. */
  takeOver(): void;
  stop(): void;
}

type Message = { readonly kind: 'event'; readonly heard: Heard } | { readonly kind: 'lost' | 'hello' };

/** Missing where a page comes over plain http from another machine: there each tab is on its own, and hidden ones let go. */
export const canShare = (): boolean => 'locks' in navigator && 'BroadcastChannel' in globalThis;

export function followStream(options: StreamOptions): Following {
  const { path, events, onEvent, onLost, onEnd } = options;
  const name = `sluice.stream ${path}`;
  const channel = canShare() ? new BroadcastChannel(name) : undefined;
  const post = (message: Message) => channel?.postMessage(message);
  let isStopped = false;
  let waiting = new AbortController();
  let endLead: (() => void) | undefined;

  /** Holds the stream, and so the lock, until `endLead`. */
  const lead = (): Promise<void> =>
    new Promise((resolve) => {
      if (isStopped) return resolve();
      const source = new EventSource(path);
      endLead = () => {
        endLead = undefined;
        source.close();
        resolve();
      };
      for (const type of events)
        source.addEventListener(type, ({ data }: MessageEvent<string>) => {
          post({ kind: 'event', heard: { type, data } });
          onEvent({ type, data });
        });
      source.addEventListener('error', () => {
        post({ kind: 'lost' });
        onLost();
        if (source.readyState !== EventSource.CLOSED) return;
        endLead?.();
        if (!isStopped) onEnd();
      });
    });

  const queueUp = (steal: boolean): void => {
    waiting.abort();
    waiting = new AbortController();
    const { signal } = waiting;
    navigator.locks.request(name, steal ? { steal } : { signal }, lead).catch(() => {
      // Either we gave up waiting, or another tab took the lock from us: then we listen to that one.
      if (signal.aborted) return;
      endLead?.();
      if (!isStopped) queueUp(false);
    });
  };

  if (channel === undefined) void lead();
  else {
    channel.onmessage = ({ data }: MessageEvent<Message>) => {
      if (data.kind === 'event') onEvent(data.heard);
      else if (data.kind === 'lost') onLost();
      else {
        const heard = endLead && options.catchUp?.();
        if (heard) post({ kind: 'event', heard });
      }
    };
    queueUp(false);
    post({ kind: 'hello' });
  }
  return {
    isLeading: () => endLead !== undefined,
    takeOver() {
      if (channel !== undefined && endLead === undefined && !isStopped) queueUp(true);
    },
    stop() {
      isStopped = true;
      endLead?.();
      waiting.abort();
      channel?.close();
    },
  };
}
