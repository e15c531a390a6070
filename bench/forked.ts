import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { cleanUpOnExit } from '../test/support/databases.ts';

/** A program of ours that answers messages: it ends when it was told to, or when we do. */
export class Forked {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  readonly #forget: () => void;

  constructor(file: string) {
    this.#child = fork(file, { execArgv: ['--import', 'tsx'] });
    this.#forget = cleanUpOnExit(() => this.#child.kill('SIGKILL'));
    this.#ended = once(this.#child, 'exit');
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  async ask<Answer>(message: object | string): Promise<Answer> {
    const answered = once(this.#child, 'message') as Promise<[Answer]>;
    this.#child.send(message);
    const [answer] = await Promise.race([
      answered,
      this.#ended.then(() => Promise.reject(new Error('a program of the bench ended early'))),
    ]);
    return answer;
  }

  tell(message: object | string): void {
    this.#child.send(message);
  }

  async end(): Promise<void> {
    await this.#ended;
    this.#forget();
  }
}
