// What one request for a slot is known by. Web globals only.

/** The same one in the same pool gives the same claim, however often it is sent. */
export interface SluiceRequest {
  readonly requestId: string;
  /** 16 to 200 characters that only the buyer knows. The claim is read, repeated and released with it alone. */
  readonly secret: string;
}

const ID_BYTES = 16;
const SECRET_BYTES = 24;

/** Keep it, in `localStorage` or with the order, where a person may press again or come back after a reload. */
export function createRequest(): SluiceRequest {
  return { requestId: randomHex(ID_BYTES), secret: randomHex(SECRET_BYTES) };
}

/** Not randomUUID: that one is missing where a phone opens the page over plain http. */
function randomHex(bytes: number): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
}
