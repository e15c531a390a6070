// How signed deliveries are checked on Node.

import { createHash, createHmac } from 'node:crypto';
import type { Log, Metrics } from '#core/ports.ts';
import type { HashName, HmacPort } from '#core/webhook/hmac.ts';
import type { FindSecret, SecretSource } from '#core/webhook/secrets.ts';
import { endOfTurn } from '../turn.ts';

const NODE_NAMES: Record<HashName, string> = { 'SHA-1': 'sha1', 'SHA-256': 'sha256' };

/** node:crypto answers without a promise and without a key import. */
export const nodeHmac: HmacPort = {
  hmac: (hash, key, message) => createHmac(NODE_NAMES[hash], key).update(message).digest(),
  sha256: (bytes) => createHash('sha256').update(bytes).digest(),
};

/** What routes for signed deliveries need of Node. */
export function signaturePorts(metrics: Metrics, log: Log, findSecret: FindSecret, secretOf: SecretSource) {
  return { hmac: nodeHmac, findSecret, secretOf, metrics, log, now: Date.now, turn: endOfTurn };
}
