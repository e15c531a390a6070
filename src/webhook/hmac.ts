// How signed deliveries are checked on Node.

import { createHash, createHmac } from 'node:crypto';
import type { Log, Metrics } from '#core/ports.ts';
import type { HashName, HmacPort } from '#core/webhook/hmac.ts';
import type { SecretSource } from '#core/webhook/ports.ts';

const NODE_NAMES: Record<HashName, string> = { 'SHA-1': 'sha1', 'SHA-256': 'sha256' };

/** node:crypto answers without a promise and without a key import. */
export const nodeHmac: HmacPort = {
  hmac: (hash, key, message) => createHmac(NODE_NAMES[hash], key).update(message).digest(),
  sha256: (bytes) => createHash('sha256').update(bytes).digest(),
};

const fromEnvironment: SecretSource = (name) => process.env[name];

/** What routes for signed deliveries need of Node. `secretOf` finds a secret by its name; without it the environment does. */
export function signaturePorts(metrics: Metrics, log: Log, secretOf: SecretSource = fromEnvironment) {
  return { hmac: nodeHmac, secretOf, metrics, log, now: Date.now };
}
