// Traces, where OTEL_EXPORTER_OTLP_ENDPOINT names a collector. Nothing of OpenTelemetry is loaded where it does not.

import { type Log, NO_TRACER, type Tracer } from '#core/ports.ts';

export interface Tracing {
  readonly tracer: Tracer;
  /** Resolves when what was recorded is out, or could not be sent. */
  stop(): Promise<void>;
}

/** `service` is what this process is called where OTEL_SERVICE_NAME does not say otherwise. */
export async function openTracing(service: string, env: NodeJS.ProcessEnv, log: Log): Promise<Tracing> {
  const endpoint = env.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (!endpoint) return { tracer: NO_TRACER, stop: async () => undefined };
  const { openOtlpTracing } = await import('./otlp.ts');
  return openOtlpTracing({
    endpoint,
    service: env.OTEL_SERVICE_NAME || service,
    share: readShare(env.OTEL_TRACES_SAMPLER_ARG, log),
    log,
  });
}

/** All claims, unless told otherwise. */
function readShare(text: string | undefined, log: Log): number {
  const share = Number(text || 1);
  if (share >= 0 && share <= 1) return share;
  log.warn('OTEL_TRACES_SAMPLER_ARG is no number from 0 to 1; tracing everything', { given: text });
  return 1;
}
