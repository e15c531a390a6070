// Two questions of an orchestrator: is the process alive, and should it get traffic?

import { type HttpRequest, type HttpResponse, jsonResponse, type Route, refuse } from './router.ts';

export interface HealthPorts {
  /** Throws while a database that is needed does not answer; returns what else there is to say. */
  checkDatabases(): Promise<Readonly<Record<string, unknown>> | undefined>;
  isDraining(): boolean;
}

export function healthRoutes(ports: HealthPorts): Route[] {
  return [
    { method: 'GET', path: '/healthz', handle: () => jsonResponse(200, { status: 'ok' }) },
    { method: 'GET', path: '/readyz', handle: (request) => ready(ports, request) },
  ];
}

async function ready(ports: HealthPorts, request: HttpRequest): Promise<HttpResponse> {
  if (ports.isDraining()) return refuse('shutting_down', request.requestId);
  return jsonResponse(200, { status: 'ready', ...(await ports.checkDatabases()) });
}
