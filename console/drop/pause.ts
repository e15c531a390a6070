// Waiting that grows, and that something can cut short.

export interface Pace {
  readonly firstMs: number;
  readonly factor: number;
  readonly mostMs: number;
}

/** How long to wait after so many tries. A fifth of it is random, so that a crowd that lost its connection does not return as one. */
export function delayOf({ firstMs, factor, mostMs }: Pace, tries: number): number {
  const delay = Math.min(mostMs, firstMs * factor ** tries);
  return delay * (0.8 + Math.random() * 0.2);
}

/** A wait that `wake` ends early: the connection is back, or the person is. */
export class Pause {
  #end: (() => void) | undefined;

  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#end = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  wake(): void {
    this.#end?.();
  }
}
