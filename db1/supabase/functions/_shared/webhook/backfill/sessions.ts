// Stripe's checkout sessions of ours, beside what the intake knows of them. Both move while they are read, so what looks wrong is
// looked at again, and only what is still wrong in the same way is a difference.

import { isObject, type JsonObject } from '../read.ts';
import type { Ask } from './ask.ts';
import type { Stretch } from './source.ts';
import { listPages } from './stripe.ts';

/** A row of public.find_checkouts. */
export interface KnownCheckout {
  readonly session_id: string;
  readonly order_id: string;
  /** Its order has ended or was bought by another payment, and the grace is over: the session must not be open. */
  readonly is_over: boolean;
}

export type SessionDifferenceKind = 'session_unknown' | 'session_open' | 'session_undecided';

export interface SessionDifference {
  readonly kind: SessionDifferenceKind;
  readonly payment: string;
  readonly detail: string;
}

export interface SessionPorts {
  readonly ask: Ask;
  readonly tenant: string;
  readonly findCheckouts: (sessionIds: readonly string[]) => Promise<KnownCheckout[]>;
  /** Those of the payments (`tenant/payment`) that the intake has a decision for. */
  readonly decided: (paymentKeys: readonly string[]) => Promise<string[]>;
  /** How many sessions have been compared so far. */
  readonly onProgress: (compared: number) => void;
}

interface Session {
  readonly id: string;
  readonly order: string;
  readonly isOpen: boolean;
  /** The payment of a session that is paid. */
  readonly paid: string | undefined;
}

/** Sessions that we did not make are not ours to judge. */
export async function findSessionDifferences(
  ports: SessionPorts,
  stretch: Stretch,
): Promise<SessionDifference[]> {
  const suspects: Session[] = [];
  let compared = 0;
  for await (const page of listPages(ports.ask, '/v1/checkout/sessions', stretch, undefined)) {
    const sessions = page.flatMap((session) => readSession(session) ?? []);
    suspects.push(...(await differing(sessions, ports)).map(({ session }) => session));
    compared += page.length;
    ports.onProgress(compared);
  }
  const now: Session[] = [];
  for (const { id } of suspects)
    now.push(...(readSession(await ports.ask(`/v1/checkout/sessions/${encodeURIComponent(id)}`, {})) ?? []));
  return (await differing(now, ports)).map(({ difference }) => difference);
}

/** Ours say in `metadata.checkout` which checkout of which order they are. */
function readSession({
  id,
  metadata,
  status,
  payment_status,
  payment_intent,
}: JsonObject): Session[] | undefined {
  const { checkout, claim_id: order } = isObject(metadata) ? metadata : {};
  if (typeof id !== 'string' || typeof checkout !== 'string' || typeof order !== 'string') return undefined;
  const intent = isObject(payment_intent) ? payment_intent.id : payment_intent;
  const isPaid = payment_status === 'paid' && typeof intent === 'string';
  return [{ id, order, isOpen: status === 'open', paid: isPaid ? intent : undefined }];
}

async function differing(
  sessions: readonly Session[],
  { tenant, findCheckouts, decided }: SessionPorts,
): Promise<{ session: Session; difference: SessionDifference }[]> {
  if (sessions.length === 0) return [];
  const keyOf = (payment: string): string => `${tenant}/${payment}`;
  const rows = await findCheckouts(sessions.map(({ id }) => id));
  const known = new Map(rows.map((row) => [row.session_id, row]));
  const keys = new Set(
    await decided(sessions.flatMap(({ paid }) => (paid === undefined ? [] : keyOf(paid)))),
  );
  return sessions.flatMap((session) => {
    const isDecided = session.paid === undefined || keys.has(keyOf(session.paid));
    const difference = compareSession(session, known.get(session.id), isDecided);
    return difference === undefined ? [] : [{ session, difference }];
  });
}

/** What is wrong with one session, given what both sides say about it. Pure. */
export function compareSession(
  { id, order, isOpen, paid }: Session,
  checkout: KnownCheckout | undefined,
  isDecided: boolean,
): SessionDifference | undefined {
  const differ = (kind: SessionDifferenceKind, detail: string) => ({ kind, payment: paid ?? id, detail });
  if (!isDecided) return differ('session_undecided', `session ${id} of order ${order} is paid`);
  if (checkout === undefined && isOpen) return differ('session_unknown', `an open session of order ${order}`);
  if (checkout?.is_over && isOpen) return differ('session_open', `order ${order} is over`);
  return undefined;
}
