// Idempotency keys (docs.stripe.com/api/idempotent_requests): the first answer is repeated for a day, a 500 among them; a request
// that was refused before it began is not kept.

import { createHash } from 'node:crypto';
import type { ApiAnswer, ApiRequest } from './api_server.ts';
import type { Books, SavedAnswer } from './books.ts';
import { Refusal, SERVER_ERROR } from './refusal.ts';

const KEPT_SEC = 24 * 60 * 60;
const MAX_KEY_CHARS = 255;

export class Idempotency {
  readonly #books: Books;

  constructor(books: Books) {
    this.#books = books;
  }

  /**
   * Does it once for a key. `failure` makes it fail with a 500: `done`, where Stripe had made the object before it failed, or
   * `undone`.
   */
  once(request: ApiRequest, work: () => ApiAnswer, failure: 'done' | 'undone' | undefined): ApiAnswer {
    const key = request.headers['idempotency-key'];
    const saved = typeof key === 'string' ? this.#find(key, request) : undefined;
    if (saved !== undefined)
      return { ...saved.answer, headers: { ...saved.answer.headers, 'idempotent-replayed': 'true' } };
    const answer = this.#try(work, failure);
    if (typeof key === 'string')
      this.#books.put('saved', {
        id: key,
        created: this.#books.nowSec,
        path: request.url.pathname,
        body: digest(request.body),
        answer,
      });
    return answer;
  }

  #try(work: () => ApiAnswer, failure: 'done' | 'undone' | undefined): ApiAnswer {
    if (failure === 'undone') return SERVER_ERROR;
    try {
      const answer = work();
      return failure === 'done' ? SERVER_ERROR : answer;
    } catch (error) {
      if (error instanceof Refusal && error.isSaved) return error.answer;
      throw error;
    }
  }

  #find(key: string, { url: { pathname }, body }: ApiRequest): SavedAnswer | undefined {
    if (key.length > MAX_KEY_CHARS)
      throw new Refusal(400, `Idempotency keys must be at most ${MAX_KEY_CHARS} characters long.`, {
        type: 'idempotency_error',
      });
    const saved = this.#books.find('saved', key);
    if (saved === undefined || saved.created + KEPT_SEC <= this.#books.nowSec) return undefined;
    const other =
      saved.path !== pathname
        ? `for the same endpoint they were first used for ('${saved.path}' vs '${pathname}')`
        : saved.body !== digest(body)
          ? 'with the same parameters they were first used with'
          : undefined;
    if (other === undefined) return saved;
    throw new Refusal(
      400,
      `Keys for idempotent requests can only be used ${other}. Try using a key other than '${key}' if you meant to execute a different request.`,
      { type: 'idempotency_error' },
    );
  }
}

function digest(body: string): string {
  return createHash('sha256').update(body).digest('hex');
}
