// Validation and commit by hook, each call with the same idempotency key and the claim's id.

import { NO_TRACER } from '../ports.ts';
import type { CommitContext } from './commit.ts';
import type { Delivery } from './delivery.ts';
import { labelOfTarget, tellCall } from './observe.ts';
import { Unreachable } from './ports.ts';
import { endByTicket } from './tickets.ts';

/**
 * What says "this claim, no": payment required, conflict, gone, unprocessable. Any other status may as well be of an address
 * that was mistyped, a key that is out of date or a gateway on the way (docs/decisions/0018).
 */
const REFUSAL_STATUS: ReadonlySet<number> = new Set([402, 409, 410, 422]);
const OUTAGE_STATUS: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** `tried` is one whose failure has been noted. */
type Answer = 'accepted' | 'outage' | 'tried' | { refused: string };

/**
 * Asks the pool's validation hook, and remembers a yes at once. A no frees the slot: where an earlier delivery may have
 * carried the claim, only if the ledger has no ticket of it.
 */
export async function validate(delivery: Delivery, context: CommitContext): Promise<void> {
  const answer = await ask('validation', delivery, delivery.config.validation_webhook_url ?? '', context);
  if (answer === 'accepted') await rememberValidated(delivery, context);
  else if (answer === 'outage') delivery.end('outage', 'hook unavailable');
  else if (answer !== 'tried') {
    const refuse = () => delivery.end('refused', `refused by validation: ${answer.refused}`);
    if (mayHaveTicket(delivery)) await endByTicket([delivery], context, refuse);
    else refuse();
  }
}

/** Its first delivery cannot have left one, and a commit hook leaves none. */
function mayHaveTicket({ config, readCt, payload }: Delivery): boolean {
  return config.commit_webhook_url === null && (readCt > 1 || payload.replayed_from !== undefined);
}

export async function commitByHook(delivery: Delivery, context: CommitContext): Promise<void> {
  const answer = await ask('commit', delivery, delivery.config.commit_webhook_url ?? '', context);
  if (answer === 'accepted') delivery.end('committed', 'hook');
  else if (answer === 'outage') delivery.end('outage', 'hook unavailable');
  // A commit target has no right to refuse: the claim was validated, so an operator has to look.
  else if (answer !== 'tried') delivery.end('retry', `refused by the commit hook: ${answer.refused}`);
}

/** Persisted before the commit: after a crash the hook is not asked again. A lost lease ends our part. */
async function rememberValidated(delivery: Delivery, { intake }: CommitContext): Promise<void> {
  const became = await intake.finish([
    { msg_id: delivery.msgId, read_ct: delivery.readCt, verdict: 'validated', reason: null, delay_ms: 0 },
  ]);
  if (became.get(delivery.msgId) === 'validated') delivery.validated();
  else delivery.end('gone', 'lost_lease');
}

async function ask(
  about: 'validation' | 'commit',
  delivery: Delivery,
  url: string,
  context: CommitContext,
): Promise<Answer> {
  const breaker = context.breakerOf(url);
  if (breaker.openUntilMs > 0) return 'outage';
  const startedMs = context.now();
  const { tracer = NO_TRACER } = context;
  const { spanId, traceparent } = tracer.begin(delivery.identity, delivery.caller);
  const call = { url, startedMs, spanId };
  try {
    const status = await context.hook.post({
      url,
      payload: delivery.payload,
      // A receiver that drops ids it has seen must not take the commit for a repeated validation.
      id: `${about}_${delivery.hookKey}`,
      idempotencyKey: delivery.hookKey,
      claimId: delivery.identity,
      traceparent,
      allowedHosts: delivery.config.allowed_hosts,
      signal: context.signal,
    });
    tellCall(delivery, call, status, context);
    if (status >= 200 && status < 300) {
      breaker.succeeded();
      return 'accepted';
    }
    if (OUTAGE_STATUS.has(status)) {
      breaker.outage(`status ${status}`);
      return 'outage';
    }
    if (status >= 500) {
      context.trouble.failed(delivery, breaker, `status ${status}`, `status ${status}`);
      return 'tried';
    }
    // The target works, and has not decided. Each try counts, so that in the end an operator sees a dead letter.
    breaker.succeeded();
    if (REFUSAL_STATUS.has(status)) return { refused: `status ${status}` };
    delivery.end('retry', `status ${status}`);
    return 'tried';
  } catch (error) {
    tellCall(delivery, call, error, context);
    if (context.signal.aborted) return 'outage';
    context.log.warn('a hook gave no answer', {
      ...delivery.names,
      target: labelOfTarget(url),
      cause: error,
    });
    if (error instanceof Unreachable) {
      breaker.outage(error.message);
      return 'outage';
    }
    const why = `no answer: ${String(error)}`;
    context.trouble.failed(delivery, breaker, why, why);
    return 'tried';
  }
}
