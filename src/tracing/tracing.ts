// Traces, where OTEL_EXPORTER_OTLP_ENDPOINT names a collector. Nothing of OpenTelemetry is loaded where it does not.

import { type Log, NO_TRACER, type Tracer } from '#core/ports.ts';
import { StackError } from '../failure.ts';

const PACKAGES = [
  '@opentelemetry/api',
  '@opentelemetry/sdk-trace-node',
  '@opentelemetry/exporter-trace-otlp-http',
];

export interface Tracing {
  readonly tracer: Tracer;
  /** Resolves when what was recorded is out, or could not be sent. */
  stop(): Promise<void>;
}

/** `service` is what this process is called where OTEL_SERVICE_NAME does not say otherwise. */
export async function openTracing(service: string, env: NodeJS.ProcessEnv, log: Log): Promise<Tracing> {
  const endpoint = env.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (!endpoint) return { tracer: NO_TRACER, stop: async () => undefined };
  const { openOtlpTracing } = await loadOtlp();
  return openOtlpTracing({
    endpoint,
    service: env.OTEL_SERVICE_NAME || service,
    share: readShare(env.OTEL_TRACES_SAMPLER_ARG, log),
    log,
  });
}

/** OpenTelemetry's packages are optional. Traces were asked for, so a process without them does not start untraced. */
async function loadOtlp(): Promise<typeof import('./otlp.ts')> {
  try {
    return await import('./otlp.ts');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new StackError(
      "OTEL_EXPORTER_OTLP_ENDPOINT asks for traces, and OpenTelemetry's packages are not installed",
      `run \`npm install ${PACKAGES.join(' ')}\`, or unset OTEL_EXPORTER_OTLP_ENDPOINT`,
      error,
    );
  }
}

/** All claims, unless told otherwise. */
function readShare(text: string | undefined, log: Log): number {
  const share = Number(text || 1);
  if (share >= 0 && share <= 1) return share;
  log.warn('OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1; tracing everything', { given: text });
  return 1;
}
