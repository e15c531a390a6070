// A self-signed certificate for 127.0.0.1, made by hand: enough of X.509 for a server that its callers should not trust.

import { generateKeyPairSync, sign } from 'node:crypto';

const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const OBJECT_ID = 0x06;
const UTF8 = 0x0c;
const UTC_TIME = 0x17;
const SEQUENCE = 0x30;
const SET = 0x31;
const VERSION = 0xa0;
const EXTENSIONS = 0xa3;
/** An IP address among the names of a certificate. */
const NAME_IS_ADDRESS = 0x87;

const ECDSA_SHA256 = '2a8648ce3d040302';
const COMMON_NAME = '550403';
const ALTERNATIVE_NAMES = '551d11';

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const { length } = body;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), body]);
}

const objectId = (hex: string): Buffer => der(OBJECT_ID, Buffer.from(hex, 'hex'));
/** As in 240601120000Z. */
const time = (at: Date): Buffer =>
  der(UTC_TIME, Buffer.from(at.toISOString().replace(/\.\d+/, '').replace(/[-:T]/g, '').slice(2)));

/** PEM texts for `https.createServer`. It was valid until `until`. */
export function selfSigned(until: Date): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = der(SEQUENCE, objectId(ECDSA_SHA256));
  const name = der(
    SEQUENCE,
    der(SET, der(SEQUENCE, objectId(COMMON_NAME), der(UTF8, Buffer.from('hooks.example')))),
  );
  const address = der(NAME_IS_ADDRESS, Buffer.from([127, 0, 0, 1]));
  const names = der(SEQUENCE, objectId(ALTERNATIVE_NAMES), der(OCTET_STRING, der(SEQUENCE, address)));
  const content = der(
    SEQUENCE,
    der(VERSION, der(INTEGER, Buffer.from([2]))),
    der(INTEGER, Buffer.from([1])),
    algorithm,
    name,
    der(SEQUENCE, time(new Date('2024-01-01T00:00:00Z')), time(until)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(EXTENSIONS, der(SEQUENCE, names)),
  );
  const signature = sign('sha256', content, privateKey);
  const whole = der(SEQUENCE, content, algorithm, der(BIT_STRING, Buffer.from([0]), signature));
  const lines = whole.toString('base64').replace(/.{64}/g, '$&\n').trimEnd();
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
  };
}
