// A router that counts and times what it answers. Both together cost 0.7 µs, of the 33 that a
// claim over HTTP costs this process.

import type { HttpError } from '#core/errors.ts';
import type { Log, Metrics } from '#core/ports.ts';
import {
  type HttpRequest,
  type HttpResponse,
  type Match,
  type Refused,
  type Route,
  Router,
} from '#core/router.ts';
import type { RouteGroup } from '../metric_names.ts';

/** The first matching prefix wins; anything else is labelled `pages`. */
const GROUPS: readonly (readonly [path: string, group: RouteGroup])[] = [
  ['/v1/pools/:pool/claims', 'claims'],
  ['/v1/claims/', 'claims'],
  ['/v1/pools/', 'pools'],
  ['/webhooks/', 'webhooks'],
  ['/call-events', 'calls'],
  ['/admin/', 'admin'],
  ['/v1/tickets/', 'admin'],
  ['/healthz', 'health'],
  ['/readyz', 'health'],
  ['/metrics', 'metrics'],
];

/** Answers a request that no route takes, or leaves it to the router's own refusal. */
export type AnswerNotFound = (request: HttpRequest) => HttpResponse | undefined;

export class MeteredRouter extends Router {
  readonly #metrics: Metrics;
  readonly #groups: ReadonlyMap<string, RouteGroup>;
  readonly #answerNotFound: AnswerNotFound;

  constructor(routes: readonly Route[], log: Log, metrics: Metrics, answerNotFound: AnswerNotFound) {
    super(routes, log);
    this.#metrics = metrics;
    this.#groups = new Map(routes.map(({ path }) => [path, groupOf(path)]));
    this.#answerNotFound = answerNotFound;
  }

  override async handle(match: Match, request: HttpRequest): Promise<HttpResponse> {
    const startedMs = performance.now();
    const isNotFound = match.refusal?.kind.code === 'not_found';
    const answer = (isNotFound && this.#answerNotFound(request)) || (await super.handle(match, request));
    const route = this.#count(match, answer);
    this.#metrics.observe('sluice_http_request_seconds', { route }, (performance.now() - startedMs) / 1000);
    return answer;
  }

  override refuseEarly(match: Match, request: Refused, error: HttpError): HttpResponse {
    const answer = super.refuseEarly(match, request, error);
    this.#count(match, answer);
    return answer;
  }

  #count(match: Match, answer: HttpResponse): RouteGroup {
    // A label per path from outside would make metrics without end; the groups are few.
    const route = (match.refusal === undefined && this.#groups.get(match.route.path)) || 'none';
    const status = `${Math.floor(answer.status / 100)}xx`;
    this.#metrics.count('sluice_http_requests_total', { route, status });
    return route;
  }
}

export function groupOf(path: string): RouteGroup {
  return GROUPS.find(([start]) => path.startsWith(start))?.[1] ?? 'pages';
}
