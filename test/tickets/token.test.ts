import assert from 'node:assert/strict';
import { createHmac, randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { TicketTokens } from '#core/tickets/token.ts';
import { webHmac } from '#core/webhook/hmac.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';

const SECRET = 'the ticket secret of these tests, long enough';
const OTHER = 'another secret, of another house, long enough';
const CLAIM = '0199b1f4-6c1e-7abc-8def-0123456789ab';

const tokens = new TicketTokens([SECRET], nodeHmac);

/** As the contract has it, by hand. */
function expected(claimId: string, secret: string): string {
  const id = Buffer.from(claimId.replaceAll('-', ''), 'hex');
  const signature = createHmac('sha256', secret).update(id).digest().subarray(0, 16);
  return Buffer.concat([id, signature]).toString('base64url');
}

/** Every other text of the same length that differs in one character. */
function* neighbours(token: string): Generator<string> {
  for (let at = 0; at < token.length; at++)
    for (const other of 'AQgw_-9z')
      if (other !== token[at]) yield token.slice(0, at) + other + token.slice(at + 1);
}

describe("a ticket's token", () => {
  it('is the claim and the first half of its HMAC, and names the claim again', async () => {
    const token = await tokens.tokenOf(CLAIM);
    assert.equal(token, expected(CLAIM, SECRET));
    assert.match(token, /^[\w-]{43}$/);
    assert.equal(await tokens.claimOf(token), CLAIM);
    assert.equal(await tokens.tokenOf(CLAIM.toUpperCase()), token);
  });

  it('is the same on Node and by WebCrypto', async () => {
    const web = new TicketTokens([SECRET], webHmac);
    for (let n = 0; n < 20; n++) {
      const claim = randomUUID();
      const token = await web.tokenOf(claim);
      assert.equal(token, await tokens.tokenOf(claim));
      assert.equal(await web.claimOf(token), claim);
    }
  });

  it('is refused when forged: other claim, other secret, a character changed, a second spelling', async () => {
    const token = await tokens.tokenOf(CLAIM);
    const foreign = Buffer.from(await tokens.tokenOf(randomUUID()), 'base64url');
    const swapped = Buffer.concat([Buffer.from(token, 'base64url').subarray(0, 16), foreign.subarray(16)]);
    assert.equal(await tokens.claimOf(swapped.toString('base64url')), undefined);
    assert.equal(await tokens.claimOf(expected(CLAIM, OTHER)), undefined);
    for (const forged of neighbours(token)) assert.equal(await tokens.claimOf(forged), undefined, forged);
    // The last character has two bits that are not used: the same 32 bytes, spelled in another way.
    const last = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const at = last.indexOf(token.at(-1) ?? '');
    const respelled = token.slice(0, -1) + last[at + 1];
    assert.deepEqual(Buffer.from(respelled, 'base64url'), Buffer.from(token, 'base64url'));
    assert.equal(await tokens.claimOf(respelled), undefined);
  });

  it('is refused when truncated, lengthened, padded, or not a token at all', async () => {
    const token = await tokens.tokenOf(CLAIM);
    for (let length = 0; length < token.length; length++)
      assert.equal(await tokens.claimOf(token.slice(0, length)), undefined, String(length));
    const zeros = Buffer.concat([Buffer.from(token, 'base64url').subarray(0, 16), Buffer.alloc(16)]);
    for (const other of [`${token}A`, `${token}=`, ` ${token}`, CLAIM, '%', zeros.toString('base64url')])
      assert.equal(await tokens.claimOf(other), undefined, other);
  });

  it('stays good through a rotation while its secret is in the list, and not after', async () => {
    const before = await tokens.tokenOf(CLAIM);
    const rotated = new TicketTokens([OTHER, SECRET], nodeHmac);
    assert.equal(await rotated.claimOf(before), CLAIM);
    assert.equal(await rotated.tokenOf(CLAIM), expected(CLAIM, OTHER));
    const afterwards = new TicketTokens([OTHER], nodeHmac);
    assert.equal(await afterwards.claimOf(before), undefined);
    assert.equal(await afterwards.claimOf(await rotated.tokenOf(CLAIM)), CLAIM);
  });

  it('cannot be made without a secret, or for what is not a claim', async () => {
    assert.throws(() => new TicketTokens([], nodeHmac), /need a secret/);
    await assert.rejects(tokens.tokenOf('not a claim'), TypeError);
  });
});
