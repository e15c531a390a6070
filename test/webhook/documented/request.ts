/** A request as a provider's documents show it. */
export interface Documented {
  readonly name: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly query?: string;
  /** Twilio's JSON: the address names the hash of the body. */
  readonly isHashed?: boolean;
  /** Of its events, in their order. */
  readonly types: readonly string[];
}

export const json = (name: string, body: unknown, ...types: string[]): Documented => ({
  name,
  body: typeof body === 'string' ? body : JSON.stringify(body),
  headers: { 'content-type': 'application/json' },
  types,
});
