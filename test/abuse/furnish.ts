// What the doors are asked about, put into the databases behind their back.

import type pg from 'pg';
import { TicketTokens } from '#core/tickets/token.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';
import { bury } from '../admin/support.ts';
import { storeEvents } from '../admin/webhook_support.ts';
import { putOnSale } from '../server/support.ts';
import { writeTicket } from '../tickets/support.ts';
import { SITE } from './doors.ts';
import { type Things, TICKET_SECRET } from './place.ts';
import { endpointOf, FAMILIES, SCHEME } from './webhook_doors.ts';

const POOL = 'abuse';
const UNSEEN_POOL = 'abuse-unseen';
const SLOTS = 50;
const tickets = new TicketTokens([TICKET_SECRET], nodeHmac);

/** Of the claim that is looked at and released. */
export const CLAIM_SECRET = 'the-secret-of-the-claim';

export async function furnish(db1: pg.Client, db2: pg.Client, webhooksUrl: string): Promise<Things> {
  await putOnSale(db1, POOL, SLOTS);
  await putOnSale(db1, UNSEEN_POOL, 1);
  await putOnSale(db1, 'abuse-shut', 1, { is_active: false });
  await putOnSale(db1, 'abuse-empty', 0);
  await putOnSale(db1, 'abuse-members', 1, { require_auth: true });
  await putOnSale(db1, 'abuse-letters', 1);
  const [letterId = 0] = await bury(db1, 'abuse-letters', 1);
  const { rows } = await db1.query(
    `select claim_id from public.claim_batch(
       p_pool_ids => array[$1], p_user_ids => array['ann'], p_request_ids => array['first'], p_verified => array[false],
       p_proofs => jsonb_build_array(jsonb_build_object('secret_hash', encode(sha256($2), 'hex'))))`,
    [POOL, Buffer.from(CLAIM_SECRET)],
  );
  const [event] = await storeEvents(db2, ['evt_abuse'], { provider: 'stripe' });
  await addEndpoints(db2, webhooksUrl);
  await db2.query(
    `insert into public.call_sites (site_id, secret_names, require_signature, kinds)
     values ($1, '{OPS_SITE_SECRET}', true, '{ring}')`,
    [SITE],
  );
  return {
    pool: POOL,
    unseenPool: UNSEEN_POOL,
    claimId: rows[0].claim_id,
    orderId: await holdForPayment(db1),
    ticketToken: await tickets.tokenOf((await writeTicket(db2, POOL)).claimId),
    letterId,
    eventId: event?.id ?? '',
  };
}

/** An order whose session is open: asking for it once more changes nothing. */
async function holdForPayment(db1: pg.Client): Promise<string> {
  await putOnSale(db1, 'abuse-paid', 1, {
    confirm_by: 'payment',
    price: 700,
    currency: 'eur',
    payment_tenant: 'stripe',
    hold_sec: 86_400,
  });
  const { rows } = await db1.query(
    `select claim_id from public.claim_batch(
       p_pool_ids => array['abuse-paid'], p_user_ids => array['ann'], p_request_ids => array['first'], p_verified => array[false],
       p_proofs => jsonb_build_array(jsonb_build_object('secret_hash', encode(sha256($1), 'hex'))))`,
    [Buffer.from(CLAIM_SECRET)],
  );
  const [{ claim_id: orderId }] = rows;
  await db1.query(`select public.begin_checkout($1, 'ann', 'http://127.0.0.1', sha256($2))`, [
    orderId,
    Buffer.from(CLAIM_SECRET),
  ]);
  await db1.query(`select public.checkout_created($1, 1, 'cs_abuse', 'https://pay.example.com/cs_abuse')`, [
    orderId,
  ]);
  return orderId;
}

async function addEndpoints(db2: pg.Client, webhooksUrl: string): Promise<void> {
  const add = (name: string, provider: string, secret: string, mode: string, settings: object) =>
    db2.query(`select webhook.add_endpoint($1, $2, $3, $4, $5, 'test')`, [
      name,
      provider,
      [secret],
      mode,
      settings,
    ]);
  for (const { provider, secret } of FAMILIES) {
    const name = endpointOf(provider);
    await add(name, provider, secret, 'queued', {
      ...(provider === 'whatsapp' && { verify_token_name: 'WHATSAPP_VERIFY_TOKEN' }),
      ...(provider === 'hmac' && { scheme: SCHEME }),
      // Twilio signs the address, and a gateway in front shows the door another one.
      ...(provider === 'twilio' && { public_url: `${webhooksUrl}/${name}` }),
    });
  }
  await add('abuse-inline', 'stripe', 'STRIPE_WEBHOOK_SECRET', 'inline', {});
}
