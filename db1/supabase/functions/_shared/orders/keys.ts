// Which key a tenant's payments are made with: that which its endpoint names, or the usual one. Keys are known for a minute, and for
// as long as DB2 is away: sessions can be made and ended without it.

import type { CallFunction } from '../call_function.ts';
import { inTime } from '../deadline.ts';
import { HttpError } from '../errors.ts';
import { canWait } from '../failure.ts';
import type { Clock, Log } from '../ports.ts';
import { keyNameOf } from '../webhook/backfill/sources.ts';
import { stripe as source } from '../webhook/backfill/stripe.ts';
import { createOperatorStore } from '../webhook/operators.ts';
import {
  createFindSecret,
  minSecretChars,
  SECRET_FAULTS,
  type SecretSource,
  Secrets,
} from '../webhook/secrets.ts';
import { PaymentError, type Payments, type PaymentsOf } from './ports.ts';
import { createPayments, type StripeClient } from './stripe.ts';

export interface KeyPorts {
  /** Functions of schema webhook of DB2. */
  readonly webhook: CallFunction;
  /** What the runtime knows by the name. */
  readonly secretOf: SecretSource;
  open(key: string): StripeClient | Promise<StripeClient>;
  readonly log: Log;
  readonly now: Clock;
}

const PROVIDER = 'stripe';
const KNOWN_MS = 60_000;
/** DB2 is not waited for longer: a buyer waits for a page to pay on. */
const ASK_MS = 2_000;
const KEY = /^[rs]k_(live|test)_\w+$/;

interface Known {
  readonly key: string;
  readonly payments: Payments;
  readonly untilMs: number;
}

export function createPaymentsOf(ports: KeyPorts): PaymentsOf {
  const known = new Map<string, Known>();
  const secrets = new Secrets({ ...ports, findSecret: createFindSecret(ports.webhook) });
  const find = async (tenant: string): Promise<Known> => {
    const before = known.get(tenant);
    if (before !== undefined && ports.now() < before.untilMs) return before;
    const key = await keyOf(tenant, before?.key, ports, secrets);
    const payments = before?.key === key ? before.payments : createPayments(await ports.open(key));
    const found = { key, payments, untilMs: ports.now() + KNOWN_MS };
    known.set(tenant, found);
    return found;
  };
  return async (tenant, livemode) => {
    const { key, payments } = await find(tenant);
    const kind = KEY.exec(key)?.[1];
    if (livemode === undefined || (kind === 'live') === livemode) return payments;
    throw new PaymentError(
      'key',
      `the key of tenant ${tenant} is a ${kind} key, and the pool takes ${livemode ? 'live' : 'test'} payments (payment_livemode)`,
    );
  };
}

async function keyOf(
  tenant: string,
  before: string | undefined,
  ports: KeyPorts,
  secrets: Secrets,
): Promise<string> {
  try {
    return await inTime(
      ASK_MS,
      readKey(tenant, ports.webhook, secrets),
      () => new HttpError('database_unavailable'),
    );
  } catch (error) {
    if (error instanceof PaymentError || !canWait(error)) throw error;
    const key = before ?? (tenant === PROVIDER ? ports.secretOf(source.keyName) : undefined);
    if (key === undefined) throw error;
    ports.log.debug('DB2 is away: the key that is known is used', { tenant });
    return checked(key, source.keyName);
  }
}

async function readKey(tenant: string, webhook: CallFunction, secrets: Secrets): Promise<string> {
  const endpoints = await createOperatorStore(webhook).listEndpoints();
  const own = endpoints.filter((one) => one.provider === PROVIDER && one.tenant === tenant);
  const named = own.find(({ api_key_name }) => api_key_name !== null) ?? own[0];
  const name = named && keyNameOf(named);
  if (name === undefined)
    throw new PaymentError('key', `no endpoint of tenant ${tenant} names a key of Stripe (--api-key-name)`);
  const read = await secrets.read(name, minSecretChars());
  if ('value' in read) return checked(read.value, name);
  throw new PaymentError('key', `${name} ${SECRET_FAULTS[read.fault]}`);
}

/** The secret of another service must not go to Stripe because its name was mistaken. */
function checked(key: string, name: string): string {
  if (KEY.test(key)) return key;
  throw new PaymentError(
    'key',
    `${name} is not a key of Stripe: its value begins with rk_live_, sk_live_, …`,
  );
}
