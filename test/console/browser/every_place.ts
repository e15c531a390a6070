// A world in which each page of the console has something to show, and where each of them stands. The list of places is complete by its
// type: a new page cannot be left out of the tests that walk through it.

import { type Browser, chromium as browsers, type Page } from 'playwright-core';
import type { CONSOLE_PATHS } from '../../../console/paths.ts';
import { bury } from '../../admin/support.ts';
import { addOperator } from '../../operators/support.ts';
import { HandWorld, type Order } from '../../orders/hand_world.ts';
import { ADMIN_KEY, putOnSale } from '../../server/support.ts';
import { claimMany } from '../../work/support.ts';
import { CHROMIUM_ARGS } from '../chromium.ts';
import { type ContextOptions, DESKTOP } from './support.ts';

const PATIENCE_MS = 15_000;
/** More than three pages of them. */
export const CLAIMS = 160;

/** An address, and a text that stands on its page when all of it is there. */
export type Place = readonly [address: string, text: string];
type Places = Readonly<Record<(typeof CONSOLE_PATHS)[number], readonly Place[]>>;

export class EveryPlace {
  readonly world: HandWorld;
  readonly browser: Browser;
  readonly order: Order;
  /** Of pool members: two that lie there, and one that was replayed. */
  readonly letters: readonly number[];
  readonly viewerKey: string;

  private constructor(
    world: HandWorld,
    browser: Browser,
    made: Pick<EveryPlace, 'order' | 'letters' | 'viewerKey'>,
  ) {
    this.world = world;
    this.browser = browser;
    this.order = made.order;
    this.letters = made.letters;
    this.viewerKey = made.viewerKey;
  }

  static async open(executablePath: string): Promise<EveryPlace> {
    const world = await HandWorld.start();
    try {
      const made = { ...(await sell(world)), viewerKey: await addOperator(world.db1, 'vera', 'viewer') };
      return new EveryPlace(world, await browsers.launch({ executablePath, args: CHROMIUM_ARGS }), made);
    } catch (error) {
      await world.stop();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.browser.close();
    await this.world.stop();
  }

  async signIn(path: string, options: ContextOptions = {}, key = ADMIN_KEY): Promise<Page> {
    const context = await this.browser.newContext({ viewport: DESKTOP, locale: 'en-GB', ...options });
    context.setDefaultTimeout(PATIENCE_MS);
    const headers = { 'x-sluice-csrf': '1' };
    await context.request.post(`${this.world.server.url}/admin/session`, { data: { key }, headers });
    const page = await context.newPage();
    await page.goto(this.world.server.url + path);
    return page;
  }

  /** Until all of it is there. */
  async show(page: Page, [address, text]: Place): Promise<void> {
    await page.goto(this.world.server.url + address);
    await page.locator('main').getByText(text).first().waitFor();
    await page.locator('.skeleton').first().waitFor({ state: 'detached' });
  }

  async places(): Promise<Places> {
    const { world, order, letters } = this;
    const event = await idOf(
      world,
      `select id from public.webhook_events where status = 'success' order by id limit 1`,
    );
    const call = await idOf(world, 'select id from public.calls where event_id is not null');
    const buried = await world.db1.query('select claim_id from public.claims where msg_id = $1', [
      letters[0],
    ]);
    const issue = await world.db1.query(`select id from public.issue_list(p_lane => 'members')`);
    return {
      '/': [['/', 'taken in all']],
      '/history': [['/history?range=15m', 'What happened']],
      '/pools': [['/pools', 'many']],
      '/pools/:pool': [['/pools/opera', 'Commits by']],
      '/claims': [['/claims?pool_id=members', 'members']],
      '/claims/:claim': [
        [`/claims/${order.claims[0]}`, 'From the request to the ledger'],
        [`/claims/${buried.rows[0].claim_id}`, 'Dead letter'],
      ],
      '/orders': [['/orders', 'opera']],
      '/orders/:order': [[`/orders/${order.order_id}`, 'Seats']],
      '/tickets': [['/tickets', 'opera']],
      '/tickets/:ticket': [[`/tickets/${order.claims[0]}`, 'From the claim to the ticket']],
      '/payments': [['/payments', 'stripe/pi_3QhZ4aB1ann']],
      '/payments/:payment': [['/payments/stripe%2Fpi_3QhZ4aB1ann', 'What moved it']],
      '/credits': [['/credits', 'stripe/pi_3QhZ4aB1ann']],
      '/users': [
        ['/users', 'Which user?'],
        ['/users?name=an', 'ann'],
      ],
      '/users/:user': [['/users/ann', 'Balance']],
      '/search': [
        ['/search?q=ann', 'Users'],
        ['/search?q=nothing+is+called+this', 'Nothing found'],
      ],
      '/refunds': [['/refunds', 'second payment']],
      '/issues': [['/issues', 'members']],
      '/issues/:issue': [[`/issues/${issue.rows[0].id}`, 'Times opened']],
      '/dead-letters': [
        ['/dead-letters', 'members'],
        ['/dead-letters?kind=webhooks', 'No dead letters'],
        ['/dead-letters?kind=inbox', 'the ledger has another content'],
      ],
      '/dead-letters/:letter': [[`/dead-letters/${letters[0]}`, 'Payload']],
      '/webhooks': [['/webhooks', 'stripe']],
      '/endpoints/:endpoint': [
        ['/endpoints/stripe', 'Save settings'],
        ['/endpoints/lost', 'LOST_SECRET is not set'],
      ],
      '/events': [['/events', 'checkout.session']],
      '/events/:event': [[`/events/${event}`, 'Raw body']],
      '/calls': [['/calls', 'hotel']],
      '/calls/:call': [[`/calls/${call}`, 'Signature hash']],
      '/sites': [['/sites', 'hotel']],
      '/sites/:site': [['/sites/hotel', 'Save settings']],
      '/operators': [['/operators', 'vera']],
      '/audit': [
        ['/audit', 'dead letter replay'],
        ['/audit?db=2', 'ticket void'],
      ],
      '/health': [['/health', 'DB2 ledger']],
    };
  }
}

async function idOf({ db2 }: HandWorld, statement: string): Promise<string> {
  const { rows } = await db2.query(statement);
  return rows[0].id;
}

/** An order that is paid for twice, claims on their way, dead letters, a ticket that was taken back, and calls. */
async function sell(world: HandWorld): Promise<{ order: Order; letters: readonly number[] }> {
  await world.putOnSale('opera', 8);
  const order = await world.bought('opera', 'ann', 'pi_3QhZ4aB1ann', 2);
  const link = { metadata: { claim_id: order.order_id, user_id: 'ann', verified: 'false' } };
  await world.pay(order, 'cs_link', 'pi_3QhZ4aB1link', link);
  await world.carry();
  await putOnSale(world.db1, 'many', CLAIMS);
  await claimMany(world.db1, 'many', CLAIMS);
  await putOnSale(world.db1, 'members', 5);
  const letters = await bury(world.db1, 'members', 3);
  await world.post('/admin/dlq/replay', { msg_ids: [letters[2]], reason: 'repaired' });
  await world.post('/admin/claims/void', { claim_ids: [order.claims[1]], reason: 'rain', refund: true });
  await world.carry();
  await world.db2.query(`select calls.add_site('hotel', '{OPS_SITE_SECRET}', true, '{ring}', 'none', 'ann')`);
  await world.db2.query(`insert into webhook.secret_names (name) values ('LOST_SECRET')`);
  await world.db2.query(`select webhook.add_endpoint('lost', 'twilio', '{LOST_SECRET}', p_actor => 'ann')`);
  await world.db2.query(
    `select calls.record_calls(array['hotel', 'hotel'], array['call-1', null], array['ring', 'ring'], array['{}', '{}'],
       array[now(), now()], array['${'ab'.repeat(32)}', null])`,
  );
  const delivery = { kind: 'call', door: 'hotel', received_at: new Date(), ids: ['call-1'], tried: 1 };
  await world.db1.query(`insert into pgmq.q_event_inbox_dlq (vt, message) values (now(), $1)`, [
    { ...delivery, reason: 'the ledger has another content' },
  ]);
  return { order, letters };
}
