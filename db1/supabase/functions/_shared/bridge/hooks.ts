// Validation and commit by hook: some calls at a time, each with the claim's id as idempotency key.

import type { CommitContext } from './commit.ts';
import type { Delivery } from './delivery.ts';
import { labelOfTarget, tellCall } from './observe.ts';
import { Unreachable } from './ports.ts';
import { endByTicket } from './tickets.ts';

/** Calls to one step's hooks that run at the same time. */
const CALLS_AT_ONCE = 16;

/**
 * What says "this claim, no": payment required, conflict, gone, unprocessable. Any other status may as well be of an address
 * that was mistyped, a key that is out of date or a gateway on the way (docs/decisions/0018).
 */
const REFUSAL_STATUS: ReadonlySet<number> = new Set([402, 409, 410, 422]);
const OUTAGE_STATUS: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** `tried` is one whose failure has been noted. */
type Answer = 'accepted' | 'outage' | 'tried' | { refused: string };

/**
 * Asks the pool's validation hook about each delivery that nobody validated yet; remembers each yes at once. A no frees
 * the slot: where somebody may have carried the claim before, only if the ledger has no ticket of it.
 */
export async function validate(deliveries: readonly Delivery[], context: CommitContext): Promise<void> {
  const reasons = new Map<Delivery, string>();
  await each(
    deliveries.filter(
      (delivery) =>
        delivery.isOpen && delivery.config.validation_webhook_url !== null && !delivery.isValidated,
    ),
    context.signal,
    async (delivery) => {
      const answer = await ask(delivery, delivery.config.validation_webhook_url ?? '', context);
      if (answer === 'accepted') await rememberValidated(delivery, context);
      else if (answer === 'outage') delivery.end('outage', 'hook unavailable');
      else if (answer !== 'tried') reasons.set(delivery, `refused by validation: ${answer.refused}`);
    },
  );
  const refuse = (delivery: Delivery) => delivery.end('refused', reasons.get(delivery));
  const refused = [...reasons.keys()];
  for (const delivery of refused) if (!mayHaveTicket(delivery)) refuse(delivery);
  await endByTicket(refused.filter(mayHaveTicket), context, refuse);
}

/** Its first delivery cannot have left one, and a commit hook leaves none. */
function mayHaveTicket({ config, readCt, payload }: Delivery): boolean {
  return config.commit_webhook_url === null && (readCt > 1 || payload.replayed_from !== undefined);
}

export async function commitByHook(deliveries: readonly Delivery[], context: CommitContext): Promise<void> {
  await each(
    deliveries.filter((delivery) => delivery.isOpen && delivery.config.commit_webhook_url !== null),
    context.signal,
    async (delivery) => {
      const answer = await ask(delivery, delivery.config.commit_webhook_url ?? '', context);
      if (answer === 'accepted') delivery.end('committed', 'hook');
      else if (answer === 'outage') delivery.end('outage', 'hook unavailable');
      // A commit target has no right to refuse: the claim was validated, so somebody has to look.
      else if (answer !== 'tried') delivery.end('retry', `refused by the commit hook: ${answer.refused}`);
    },
  );
}

/** Persisted before the commit: after a crash the hook is not asked again. A lost lease ends our part. */
async function rememberValidated(delivery: Delivery, { intake }: CommitContext): Promise<void> {
  const became = await intake.finish([
    { msg_id: delivery.msgId, read_ct: delivery.readCt, verdict: 'validated', reason: null, delay_ms: 0 },
  ]);
  if (became.get(delivery.msgId) !== 'validated') delivery.end('gone', 'lost_lease');
}

async function ask(delivery: Delivery, url: string, context: CommitContext): Promise<Answer> {
  const breaker = context.breakerOf(url);
  if (breaker.openUntilMs > 0) return 'outage';
  const startedMs = context.now();
  try {
    const status = await context.hook.post({
      url,
      payload: delivery.payload,
      idempotencyKey: delivery.idempotencyKey,
      allowedHosts: delivery.config.allowed_hosts,
      signal: context.signal,
    });
    tellCall(delivery, url, status, startedMs, context);
    if (status >= 200 && status < 300) {
      breaker.succeeded();
      return 'accepted';
    }
    if (OUTAGE_STATUS.has(status)) {
      breaker.outage();
      return 'outage';
    }
    if (status >= 500) {
      context.trouble.failed(delivery, breaker, `status ${status}`);
      return 'tried';
    }
    // The target works, and has not decided. Each try counts, so that in the end an operator sees a dead letter.
    breaker.succeeded();
    if (REFUSAL_STATUS.has(status)) return { refused: `status ${status}` };
    delivery.end('retry', `status ${status}`);
    return 'tried';
  } catch (error) {
    tellCall(delivery, url, error, startedMs, context);
    if (context.signal.aborted) return 'outage';
    context.log.warn('a hook gave no answer', {
      ...delivery.names,
      target: labelOfTarget(url),
      cause: error,
    });
    if (error instanceof Unreachable) {
      breaker.outage();
      return 'outage';
    }
    context.trouble.failed(delivery, breaker, `no answer: ${String(error)}`);
    return 'tried';
  }
}

async function each(
  deliveries: Delivery[],
  signal: AbortSignal,
  work: (delivery: Delivery) => Promise<void>,
): Promise<void> {
  const waiting = deliveries.values();
  const failures: unknown[] = [];
  const lane = async (): Promise<void> => {
    for (const delivery of waiting) {
      if (signal.aborted || failures.length > 0) return;
      await work(delivery).catch((error: unknown) => failures.push(error));
    }
  };
  // Every lane has come to its end when this throws: none goes on calling hooks for a step that has failed.
  await Promise.all(Array.from({ length: Math.min(CALLS_AT_ONCE, deliveries.length) }, lane));
  if (failures.length > 0) throw failures[0];
}
