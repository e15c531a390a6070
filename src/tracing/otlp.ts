// OpenTelemetry behind the core's tracer. A claim's uuid is its trace's id, and the last half of it the id of the first
// span: door and bridge agree on both without a word in the message between them. Whether a trace is kept is decided by
// its id alone, so they agree on that too. Where the caller of a claim named a trace, it is that trace, the message carries its
// name, and the caller has decided whether it is kept (docs/decisions/0038).

import {
  type DiagLogger,
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  BatchSpanProcessor,
  type IdGenerator,
  NodeTracerProvider,
  ParentBasedSampler,
  RandomIdGenerator,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-node';
import type { Log, TracedSpan } from '#core/ports.ts';
import { type TraceParent, writeTraceparent } from '#core/traceparent.ts';
import type { Tracing } from './tracing.ts';

export interface OtlpOptions {
  /** Where a collector takes OTLP over HTTP; spans go to /v1/traces below it. */
  readonly endpoint: string;
  readonly service: string;
  /** How many of the traces are kept, from 0 to 1. */
  readonly share: number;
  readonly log: Log;
}

/** Neither a batch nor a process that stops waits longer for a collector that is away. */
const SEND_TIMEOUT_MS = 2_000;

const KINDS = { server: SpanKind.SERVER, consumer: SpanKind.CONSUMER, client: SpanKind.CLIENT } as const;

/** Spans get the ids that are set here just before they start; nothing happens between the two. */
class GivenIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  traceId: string | undefined;
  spanId: string | undefined;

  generateTraceId(): string {
    return this.traceId ?? this.#random.generateTraceId();
  }

  generateSpanId(): string {
    return this.spanId ?? this.#random.generateSpanId();
  }
}

export function openOtlpTracing({ endpoint, service, share, log }: OtlpOptions): Tracing {
  diag.setLogger(warningsTo(log), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  const ids = new GivenIds();
  const newIds = new RandomIdGenerator();
  const byId = new TraceIdRatioBasedSampler(share);
  const provider = new NodeTracerProvider({
    resource: namedResource(service),
    sampler: new ParentBasedSampler({ root: byId }),
    idGenerator: ids,
    spanProcessors: [
      new BatchSpanProcessor(
        new OTLPTraceExporter({
          url: `${endpoint.replace(/\/+$/, '')}/v1/traces`,
          timeoutMillis: SEND_TIMEOUT_MS,
        }),
      ),
    ],
  });
  const tracer = provider.getTracer('sluice');
  /** The claim's first span, as the parent of the others. */
  const firstOf = (subject: string, caller: TraceParent | undefined): TraceParent => {
    const own = idsOf(subject);
    if (caller !== undefined) return { ...caller, spanId: own.spanId };
    const { decision } = byId.shouldSample(ROOT_CONTEXT, own.traceId);
    const isKept = decision === SamplingDecision.RECORD_AND_SAMPLED;
    return { ...own, flags: isKept ? '01' : '00' };
  };
  const record = (told: TracedSpan): void => {
    const first = firstOf(told.subject, told.caller);
    ids.traceId = first.traceId;
    ids.spanId = told.isRoot ? first.spanId : told.spanId;
    const above = told.kind === 'server' && told.caller !== undefined ? told.caller : first;
    const parent =
      told.isRoot && told.caller === undefined
        ? ROOT_CONTEXT
        : trace.setSpanContext(ROOT_CONTEXT, {
            traceId: above.traceId,
            spanId: above.spanId,
            traceFlags: Number.parseInt(above.flags, 16) & TraceFlags.SAMPLED,
            isRemote: true,
          });
    const options = { kind: KINDS[told.kind], startTime: told.startMs, attributes: told.attributes };
    const span = tracer.startSpan(told.name, options, parent);
    if (told.failure !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: told.failure });
    span.end(told.endMs);
  };
  return {
    tracer: {
      isOn: true,
      record,
      begin: (subject, caller) => {
        const spanId = newIds.generateSpanId();
        return { spanId, traceparent: writeTraceparent({ ...firstOf(subject, caller), spanId }) };
      },
    },
    stop: () => provider.shutdown().catch((error: unknown) => log.warn('traces lost', { cause: error })),
  };
}

/** A uuid's last half is never zero, which a span's id must not be: it begins with the variant's bit. */
function idsOf(uuid: string): { traceId: string; spanId: string } {
  const traceId = uuid.replaceAll('-', '').toLowerCase();
  return { traceId, spanId: traceId.slice(16) };
}

function warningsTo(log: Log): DiagLogger {
  const warn = (detail: string): void => log.warn('tracing is in trouble', { detail });
  const ignore = (): void => undefined;
  return { error: warn, warn, info: ignore, debug: ignore, verbose: ignore };
}

function namedResource(
  service: string,
): NonNullable<NonNullable<ConstructorParameters<typeof NodeTracerProvider>[0]>['resource']> {
  const attributes = { 'service.name': service };
  const resource = {
    attributes,
    merge: () => resource,
    getRawAttributes: () => Object.entries(attributes),
  };
  return resource;
}
