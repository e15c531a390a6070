// Processes that stop at every call: what a door, a closer, a courier, a refunder or a bridge asks of a database or of
// Stripe waits here until the history lets it happen. Between two calls a process can be overtaken, stall for ever or die.

import fc from 'fast-check';

/** Who is asked. */
export type Callee = 'db1' | 'db2' | 'stripe';

/**
 * What becomes of one call. `dies-before` and `dies-after`: the process is gone, and the call was not made, or was. `lost`:
 * the call did not arrive. `unanswered`: it did, and the process hears of neither. `late`: the process has given up, and the
 * call arrives whenever the history says so.
 */
export type Fate = 'done' | 'dies-before' | 'dies-after' | 'lost' | 'unanswered' | 'late';
const FAULTS = ['dies-before', 'dies-after', 'lost', 'unanswered', 'late'] as const;

/** Mostly nothing goes wrong: else hardly any history would come far. */
export const anyFate: fc.Arbitrary<Fate> = fc.oneof(
  { weight: 5, arbitrary: fc.constant<Fate>('done') },
  { weight: 3, arbitrary: fc.constantFrom<Fate>(...FAULTS) },
);

/** What a caller is told when its call got lost, or its answer. */
export class Outage extends Error {
  readonly code = 'ECONNRESET';
}

type Call = {
  to: Callee;
  what: string;
  make(): Promise<unknown>;
  answer(value: unknown): void;
  fail(error: unknown): void;
};

/** Lets a process make a call: it is made when the history says so. */
export type Ask = <Answer>(to: Callee, what: string, make: () => Promise<Answer>) => Promise<Answer>;

export type Body = (ask: Ask) => Promise<unknown>;

export class Actor {
  readonly name: string;
  /** In the order in which they were asked; more than one where the process does two things at once. */
  readonly #waiting: Call[] = [];
  #isDead = false;
  #isOver = false;
  /** What the process came to; undefined while it goes on, and where an outage ended it. */
  result: unknown;
  /** What ended it, where that was not an outage: a mistake of the product, or a promise that was broken. */
  failure: unknown;

  constructor(name: string) {
    this.name = name;
  }

  static async start(name: string, body: Body): Promise<Actor> {
    const actor = new Actor(name);
    void body(actor.#ask).then(
      (result) => {
        actor.result = result;
        actor.#isOver = true;
      },
      (error: unknown) => {
        if (!actor.#isDead && !isOutage(error)) actor.failure = error;
        actor.#isOver = true;
      },
    );
    await actor.#settle();
    return actor;
  }

  readonly #ask: Ask = (to, what, make) =>
    new Promise((resolve, reject) => {
      // A dead process does nothing more; what it waits for fails, so that it holds no timer.
      if (this.#isDead) reject(new Outage(`${this.name} is dead`));
      else this.#waiting.push({ to, what, make, answer: resolve as (value: unknown) => void, fail: reject });
    });

  /** What it waits for, or undefined where it has ended. */
  get next(): { to: Callee; what: string } | undefined {
    return this.#isDead || this.#isOver ? undefined : this.#waiting[0];
  }

  die(): void {
    this.#isDead = true;
    for (const { fail } of this.#waiting.splice(0)) fail(new Outage(`${this.name} is dead`));
  }

  /** Makes its next call, or lets it fail. Returns the call that arrives later, where there is one. */
  async step(fate: Fate): Promise<(() => Promise<unknown>) | undefined> {
    const call = this.#waiting.shift();
    if (call === undefined) throw new Error(`${this.name} waits for nothing`);
    if (fate === 'dies-before') {
      call.fail(new Outage(`${this.name} is dead`));
      this.die();
    } else if (fate === 'lost' || fate === 'late') call.fail(new Outage(`${call.what} got lost`));
    else {
      const made = await outcomeOf(call.make);
      if (fate === 'dies-after') this.die();
      if (fate === 'unanswered' || fate === 'dies-after')
        call.fail(new Outage(`the answer to ${call.what} got lost`));
      else if ('error' in made) call.fail(made.error);
      else call.answer(made.value);
    }
    await this.#settle();
    if (this.failure !== undefined) throw this.failure;
    return fate === 'late' ? call.make : undefined;
  }

  /** Until it waits for its next call, or has ended. All that it does in between are microtasks. */
  async #settle(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Also where the product says it in words of its own. */
function isOutage(error: unknown): boolean {
  if (error instanceof Outage) return true;
  return error instanceof Error && error.cause !== undefined && isOutage(error.cause);
}

async function outcomeOf(make: () => Promise<unknown>): Promise<{ value: unknown } | { error: unknown }> {
  try {
    return { value: await make() };
  } catch (error) {
    return { error };
  }
}
