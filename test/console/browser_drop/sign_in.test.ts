import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { putOnSale, token } from '../../server/support.ts';
import { ensureChromium } from '../chromium.ts';
import { assertAccessible, assertFits, openShop, type Shop, scene } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
const BUTTON = 'button.big';
const ANN = { role: 'authenticated', sub: '7b1e2a54-ann', email: 'ann@example.com' };

/** Sends people back as Supabase does: with the session in the fragment. */
class Login {
  readonly #server: Server = createServer((request, response) => {
    const asked = new URL(request.url ?? '', 'http://login');
    this.asked.push(asked);
    response.writeHead(303, { location: `${asked.searchParams.get('redirect_to')}#${this.fragment}` }).end();
  });
  readonly asked: URL[] = [];
  fragment = '';

  async listen(): Promise<URL> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    const { port } = this.#server.address() as AddressInfo;
    return new URL(`http://127.0.0.1:${port}/auth/v1/authorize?provider=google`);
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }
}

const fragmentOf = (accessToken: string): string =>
  new URLSearchParams({
    access_token: accessToken,
    expires_at: String(Math.floor(Date.now() / 1_000) + 3_600),
    expires_in: '3600',
    refresh_token: 'r-never-kept',
    token_type: 'bearer',
  }).toString();

describe('signing in on the drop page', { skip }, () => {
  let shop: Shop;
  const login = new Login();
  before(async () => {
    shop = await openShop('path' in chromium ? chromium.path : '', { loginUrl: await login.listen() });
  });
  after(async () => {
    await shop?.close();
    await login.close();
  });

  const open = async (path: string): Promise<Page> => {
    const page = await (await shop.visit()).newPage();
    await page.goto(`${shop.url}/drop/${path}`);
    return page;
  };
  const signIn = async (page: Page, accessToken: string): Promise<void> => {
    await scene(page, 'sign_in');
    login.fragment = fragmentOf(accessToken);
    await page.getByRole('link', { name: 'Sign in' }).click();
  };
  const stored = (page: Page): Promise<string> =>
    page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])') as Promise<string>;

  it('leads to the login and back, buys as who signed in, survives a reload and ends with signing out', async () => {
    await putOnSale(shop.db1, 'members', 5, { require_auth: true });
    const page = await open('members');
    await scene(page, 'sign_in');
    await page.getByRole('link', { name: 'Sign in' }).waitFor();
    await assertAccessible(page);
    await assertFits(page);
    await signIn(page, await token(ANN));
    await page.getByText('Signed in as ann@example.com').waitFor();
    assert.equal(login.asked.at(-1)?.searchParams.get('provider'), 'google');
    assert.equal(login.asked.at(-1)?.searchParams.get('redirect_to'), `${shop.url}/drop/members`);
    assert.equal(page.url(), `${shop.url}/drop/members`, 'the session is not in the address');
    await scene(page, 'open');
    await assertAccessible(page);
    await assertFits(page);
    await page.click(BUTTON);
    await scene(page, 'held');
    const [claim, ...more] = await shop.claims('members');
    assert.deepEqual([claim?.user_id, claim?.verified, more], [ANN.sub, true, []]);
    await page.reload();
    await scene(page, 'held');
    await page.getByText('Signed in as ann@example.com').waitFor();
    assert.doesNotMatch(await stored(page), /never-kept/, 'the refresh token is not kept');

    await page.getByRole('button', { name: 'Sign out' }).click();
    await scene(page, 'sign_in');
    assert.doesNotMatch(await stored(page), /eyJ/, 'no token stays');
    await page.goBack().catch(() => undefined);
    assert.doesNotMatch(page.url(), /access_token/, 'nor in the history');
    await page.goto(`${shop.url}/drop/members`);
    // Another person in the same browser sees nothing of it.
    await signIn(page, await token({ role: 'authenticated', sub: 'ben' }));
    await page.getByText('Signed in as ben').waitFor();
    await scene(page, 'open');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page, await token(ANN));
    await scene(page, 'held');
    assert.equal((await shop.claims('members')).length, 1);
    await page.context().close();
  });

  it('is over when its time is, or when the server does not take the token; both are said', async () => {
    await putOnSale(shop.db1, 'late', 5, { require_auth: true });
    const page = await open('late');
    await signIn(page, await token({ ...ANN, exp: Math.floor(Date.now() / 1_000) - 10 }));
    await page.getByText('Your sign-in has ended').waitFor();
    await scene(page, 'sign_in');
    await assertAccessible(page);
    await signIn(page, await token(ANN, 'another secret of at least thirty-two bytes'));
    await page.getByText('Signed in as ann@example.com').waitFor();
    await page.click(BUTTON);
    await page.getByText('Your sign-in has ended').waitFor();
    await scene(page, 'sign_in');
    assert.doesNotMatch(await stored(page), /eyJ/);
    assert.deepEqual(await shop.claims('late'), []);
    // The control: with a good one it goes on from here.
    await signIn(page, await token(ANN));
    await page.click(BUTTON);
    await scene(page, 'held');
    await page.context().close();
  });

  it('did not work where the login says so, or sends what is not a session', async () => {
    await putOnSale(shop.db1, 'refused', 5, { require_auth: true });
    for (const fragment of [
      'error=access_denied&error_description=%3Cb%3Ecall+0900%3C%2Fb%3E',
      'access_token=nonsense',
      'access_token=a.b.c',
    ]) {
      const page = await open(`refused#${fragment}`);
      await page.getByText('The sign-in did not work').waitFor();
      assert.doesNotMatch(await page.locator('main').innerText(), /0900/, 'no words of the link');
      assert.equal(page.url(), `${shop.url}/drop/refused`);
      await scene(page, 'sign_in');
      await page.context().close();
    }
  });

  it('asks first where a link brings a session that this browser did not go for', async () => {
    await putOnSale(shop.db1, 'trap', 5);
    const fragment = fragmentOf(
      await token({ role: 'authenticated', sub: 'mallory', email: 'mallory@example.com' }),
    );
    const page = await open(`trap#${fragment}`);
    await page.getByText('Is this you?').waitFor();
    assert.equal(page.url(), `${shop.url}/drop/trap`);
    await assertAccessible(page);
    await assertFits(page);
    await page.getByRole('button', { name: 'No', exact: true }).click();
    await page.getByText('Is this you?').waitFor({ state: 'detached' });
    await page.click(BUTTON);
    await scene(page, 'held');
    const [claim] = await shop.claims('trap');
    assert.equal(claim?.verified, false);
    assert.notEqual(claim?.user_id, 'mallory');
    await page.context().close();

    // A link in a mail opens like this too: who says yes goes on.
    const mail = await open(`trap#${fragment}`);
    await mail.getByRole('button', { name: 'Yes, go on as mallory@example.com' }).click();
    await mail.getByText('Signed in as mallory@example.com').waitFor();
    await mail.click(BUTTON);
    await scene(mail, 'held');
    assert.equal((await shop.claims('trap')).find(({ verified }) => verified)?.user_id, 'mallory');
    await mail.context().close();
  });

  it('says that a guest’s sign-in will not do where the pool wants accounts', async () => {
    await putOnSale(shop.db1, 'accounts', 5, { require_auth: true });
    const page = await open('accounts');
    await signIn(page, await token({ role: 'authenticated', sub: 'a-guest', is_anonymous: true }));
    await page.click(BUTTON);
    await page.getByText('does not sell seats to guests').waitFor();
    await page.getByRole('link', { name: 'Sign in' }).waitFor();
    await assertAccessible(page);
    assert.deepEqual(await shop.claims('accounts'), []);
    await page.context().close();
  });
});
