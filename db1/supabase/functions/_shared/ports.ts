// What every door needs from the runtime it runs on.

import { type TraceParent, writeTraceparent } from './traceparent.ts';

export interface Log {
  /** Asked before fields are put together, so that a silent debug log costs nothing. */
  readonly debugEnabled: boolean;
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/** Milliseconds since the epoch. */
export type Clock = () => number;

/** Resolves when the runtime has handed out all that it has received by now. */
export type Turn = () => Promise<void>;

/** What a runtime counts and times. Names and labels are those of docs/metrics.md. */
export interface Metrics {
  /** Adds `by`, which is 1 where left out. A gauge may be counted down too. */
  count(name: string, labels: Readonly<Record<string, string>>, by?: number): void;
  /** Seconds, or what the histogram's name says. */
  observe(name: string, labels: Readonly<Record<string, string>>, value: number): void;
}

/** For a process that collects no metrics. */
export const NO_METRICS: Metrics = { count: () => undefined, observe: () => undefined };

/** One stretch of the way of one claim or event, told when it is over. */
export interface TracedSpan {
  readonly name: string;
  /** The uuid of the claim or event. Without `caller` it is the trace's id too, so that no message has to carry one. */
  readonly subject: string;
  /** What the claim's caller sent: the span is of the caller's trace. The server's spans stand directly below the caller's. */
  readonly caller?: TraceParent;
  /** From `begin`; the tracer makes one where left out. */
  readonly spanId?: string;
  /** True for the first, which the others of the trace stand below. */
  readonly isRoot?: boolean;
  readonly kind: 'server' | 'consumer' | 'client';
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  /** What went wrong, where something did. */
  readonly failure?: string;
}

export interface Tracer {
  /** Asked before spans are put together, so that tracing nothing costs nothing. */
  readonly isOn: boolean;
  record(span: TracedSpan): void;
  /** For a call to others: the id of the span that is recorded when the call is over, and the header that the call goes with. */
  begin(subject: string, caller: TraceParent | undefined): BegunSpan;
}

/** Both are undefined where nothing is recorded and the claim's caller sent no header. */
export interface BegunSpan {
  readonly spanId: string | undefined;
  readonly traceparent: string | undefined;
}

/** For a process that records no traces. It passes on what the caller sent, so that a trace does not end here. */
export const NO_TRACER: Tracer = {
  isOn: false,
  record: () => undefined,
  begin: (_, caller) => ({ spanId: undefined, traceparent: caller && writeTraceparent(caller) }),
};
