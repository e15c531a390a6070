// Who is signed in. A Supabase login sends people back with their session in the fragment of the address; it is taken out of
// there at once, and kept for as long as the tab is open.

import type { Storage } from './store.ts';

export interface Session {
  /** Sent as Bearer. */
  readonly token: string;
  /** Whose claims these are. */
  readonly userId: string;
  /** For people: the email, or the id where there is none. */
  readonly name: string;
  readonly expiresAtMs: number;
}

export interface SignedIn {
  readonly session: Session | undefined;
  /**
   * A session that came although this browser did not go to sign in: by a link in a mail, or by the link of a stranger who wants
   * tickets bought in the stranger's name. The person says which.
   */
  readonly offered: Session | undefined;
  readonly trouble: 'ended' | 'failed' | undefined;
}

const SESSION_KEY = 'sluice.session';
/** In the storage that tabs share: a login may come back in another tab. */
const GOING_KEY = 'sluice.signing_in';
/** How long signing in may take. A session that comes later may be a stranger's link. */
const LOGIN_MS = 10 * 60_000;

export interface SessionPorts {
  /** The tab's own. */
  readonly storage: Storage;
  readonly shared: Storage;
  readonly now: () => number;
  readonly onChange: (signedIn: SignedIn) => void;
}

export class Sessions {
  readonly #ports: SessionPorts;
  #state: SignedIn = { session: undefined, offered: undefined, trouble: undefined };

  constructor(ports: SessionPorts) {
    this.#ports = ports;
    this.#state = { ...this.#state, session: sessionOf(ports.storage.getItem(SESSION_KEY) ?? '') };
  }

  get state(): SignedIn {
    return this.#state;
  }

  /** Takes what the login has put into the address; returns whether the address has to be cleaned. */
  arrive(fragment: string): boolean {
    const given = new URLSearchParams(fragment.replace(/^#/, ''));
    const token = given.get('access_token');
    if (token === null && given.get('error') === null) return false;
    const { shared } = this.#ports;
    const wasSent = this.#ports.now() - Number(shared.getItem(GOING_KEY) ?? Number.NaN) < LOGIN_MS;
    shared.removeItem(GOING_KEY);
    const session = sessionOf(token ?? '');
    if (session === undefined) this.#set({ trouble: 'failed' });
    else if (wasSent || session.userId === this.#state.session?.userId) this.#take(session);
    else this.#set({ offered: session, trouble: undefined });
    return true;
  }

  /** The person goes to sign in; a session that comes back is theirs. */
  leave(): void {
    this.#ports.shared.setItem(GOING_KEY, String(this.#ports.now()));
  }

  accept(): void {
    if (this.#state.offered !== undefined) this.#take(this.#state.offered);
  }

  /** Also for an offer that the person does not know. */
  signOut(): void {
    this.#forget(undefined);
  }

  /** The server does not take the token any more. */
  refused(): void {
    if (this.#state.session !== undefined) this.#forget('ended');
  }

  /** Now and then: a session has its time. */
  look(): void {
    const { session } = this.#state;
    if (session !== undefined && session.expiresAtMs <= this.#ports.now()) this.#forget('ended');
  }

  #take(session: Session): void {
    this.#ports.storage.setItem(SESSION_KEY, session.token);
    this.#set({ session, offered: undefined, trouble: undefined });
    this.look();
  }

  #forget(trouble: SignedIn['trouble']): void {
    this.#ports.storage.removeItem(SESSION_KEY);
    this.#set({ session: undefined, offered: undefined, trouble });
  }

  #set(change: Partial<SignedIn>): void {
    this.#state = { ...this.#state, ...change };
    this.#ports.onChange(this.#state);
  }
}

/** What a token says of itself. It is the server that checks it; here it is only shown. */
function sessionOf(token: string): Session | undefined {
  try {
    const payload = atob((token.split('.')[1] ?? '').replace(/-/g, '+').replace(/_/g, '/'));
    const bytes = Uint8Array.from(payload, (character) => character.charCodeAt(0));
    const { sub, email, exp } = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof sub !== 'string' || sub === '' || typeof exp !== 'number') return undefined;
    const name = typeof email === 'string' && email !== '' ? email : sub;
    return { token, userId: sub, name, expiresAtMs: exp * 1_000 };
  } catch {
    // Not a token.
    return undefined;
  }
}

/** The login's address, told where to send people back to. */
export function loginLink(loginUrl: string, here: Pick<Location, 'origin' | 'pathname'>): string {
  const link = new URL(loginUrl);
  link.searchParams.set('redirect_to', here.origin + here.pathname);
  return link.href;
}
