// What every program of a way does: it is told the databases, answers that it is ready, and ends when it is told to.

type Ready<Answer> = { answer: Answer; end(): Promise<void> };

export function serve<Order extends object, Answer>(start: (order: Order) => Promise<Ready<Answer>>): void {
  let started: Promise<Ready<Answer>> | undefined;
  process.on('message', async (message: Order | 'end') => {
    if (message !== 'end') {
      started = start(message);
      process.send?.((await started).answer);
      return;
    }
    await (await started)?.end();
    process.disconnect?.();
  });
}
